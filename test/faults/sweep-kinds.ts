// The sweeps of one command: a test for each kind of fault, with as many points of each as the run takes.

import { test } from "vitest";
import { randomFrom } from "../../src/emulator/usage.ts";
import { type CasePlan, faultOf, type Kind, nameOf, SQLSTATES } from "./case-plan.ts";
import type { FaultEvent } from "./fault-decision.ts";
import { ONLY_CASE, SEED, STRIDE, TAKES_ALL } from "./scope.ts";
import { everyNth, LIMIT, sweep } from "./sweep.ts";

export type Outcome = {
  /** The event at which the fault happened; undefined if it did not happen. */
  readonly hit: FaultEvent | undefined;
  readonly violations: readonly string[];
};

/** A stride of n takes every n-th point, 0 none. The first stride is for one program, the next for one beside another, and so on. */
type Strides = readonly number[];

export type Swept = {
  readonly part: string;
  readonly file: string;
  /** The numbers, from 1, of the victim's events at which the fault can happen, if `replicas` programs run. */
  readonly points: (replicas: number, fits: (event: FaultEvent) => boolean) => Promise<readonly number[]>;
  readonly run: (name: string) => Promise<Outcome>;
};

type KindOfCases = {
  readonly kind: Kind;
  readonly ci: Strides;
  readonly all: Strides;
  readonly atOnce: number;
  /** The events at which the fault is always tested, for a program that runs alone. */
  readonly always?: (event: FaultEvent) => boolean;
};

/** The kinds run concurrently, because many cases mostly wait. */
export function sweepKinds(swept: Swept, kinds: readonly KindOfCases[]): void {
  test.concurrent.each(kinds)(`${swept.part}: $kind`, LIMIT, (kind) => sweepKind(swept, kind));
}

async function sweepKind({ part, file, points, run }: Swept, of: KindOfCases): Promise<void> {
  const { kind, ci, all, atOnce, always = () => false } = of;
  const strides = (TAKES_ALL ? all : ci).map((stride) => (stride === 0 ? 0 : (STRIDE ?? stride)));
  if (ONLY_CASE === undefined && strides.every((stride) => stride === 0)) return;
  let unreached = 0;
  let among = 0;
  await sweep({
    part: `${part}, ${kind}`,
    points: strides.map((stride) => (stride === 0 ? "none" : `${stride}`)).join(" / "),
    file,
    test: `${part}: ${kind}`,
    async cases() {
      const chosen = (await plansOf(points, kind, 1)).filter(ofPoints(await points(1, always)));
      for (const [index, stride] of strides.entries()) {
        if (stride === 0) continue;
        const plans = await plansOf(points, kind, index + 1);
        among += plans.length;
        chosen.push(...everyNth(stride, plans));
      }
      return [...new Set(chosen.map(nameOf))];
    },
    among: () => among,
    atOnce,
    run: async (name) => {
      const { hit, violations } = await run(name);
      if (!hit) unreached++;
      const at = hit ? `${hit.peer} ${hit.side}: ${hit.name}` : "not reached";
      return [...new Set(violations)].map((violation) => `${violation} [${name}; ${at}]`);
    },
    unreached: () => unreached,
  });
}

/** All possible cases of a kind. */
async function plansOf(points: Swept["points"], kind: Kind, replicas: number): Promise<readonly CasePlan[]> {
  const all = await points(replicas, faultOf({ kind }, () => undefined).fits);
  return all.flatMap((point) => variantsOf({ replicas, kind, point }, all.length));
}

function ofPoints(points: readonly number[]): (plan: CasePlan) => boolean {
  return ({ point }) => points.includes(point);
}

/** Each SQL error code at a point is a case. A second kill happens at a random event of the run that follows. */
function variantsOf(plan: CasePlan, events: number): readonly CasePlan[] {
  const { kind, point } = plan;
  if (kind === "SQL error before" || kind === "SQL error after") {
    return SQLSTATES.map((sqlstate) => ({ ...plan, sqlstate }));
  }
  if (kind !== "kill twice") return [plan];
  return [{ ...plan, secondPoint: 1 + Math.floor(randomFrom(kind, SEED, point)() * events) }];
}

/** Calls `eventsOf` once for each number of programs. */
export function pointsAmong(eventsOf: (replicas: number) => Promise<readonly FaultEvent[]>): Swept["points"] {
  const known = new Map<number, Promise<readonly FaultEvent[]>>();
  return async (replicas, fits) => {
    const events = known.get(replicas) ?? eventsOf(replicas);
    known.set(replicas, events);
    return (await events).flatMap((event, index) => (fits(event) ? [index + 1] : []));
  };
}
