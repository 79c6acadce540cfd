// Sweeps of one command: the test of each kind of fault injects it at some or all of the command's events. Cases run concurrently.
// Each violation is printed with the command that repeats its case.

import { expect, test } from "vitest";
import { randomFrom } from "../../src/emulator/usage.ts";
import { type CasePlan, faultOf, type Kind, nameOf, SQLSTATES } from "./case-plan.ts";
import type { FaultEvent } from "./fault-decision.ts";

/**
 * FAULTS=all takes as many cases as fit into an hour, FAULTS=ci (the default) as many as fit into minutes. FAULTS_SEED selects which.
 * FAULTS_STRIDE=n takes every n-th point of the sweeps, so 1 takes all. FAULTS_CASE=name takes one case.
 */
const { FAULTS = "ci", FAULTS_SEED = "1", FAULTS_CASE, FAULTS_STRIDE } = process.env;

export const IS_LONG_RUN = FAULTS === "all";
export const SEED = Number(FAULTS_SEED);
export const ONLY_CASE = FAULTS_CASE;

/** The time limit of a test that is a sweep. */
export const TIME_LIMIT = { timeout: 12 * 60 * 60_000 };

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
  /** Runs the case of this name, which contains everything that the case depends on. */
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
  test.concurrent.each(kinds)(`${swept.part}: $kind`, TIME_LIMIT, (kind) => sweepKind(swept, kind));
}

async function sweepKind(swept: Swept, cases: KindOfCases): Promise<void> {
  const part = `${swept.part}, ${cases.kind}`;
  const configured = IS_LONG_RUN ? cases.all : cases.ci;
  const strides = configured.map((stride) => (stride === 0 ? 0 : Number(FAULTS_STRIDE ?? stride)));
  if (ONLY_CASE === undefined && strides.every((stride) => stride === 0)) return;
  // A case starts fewer than eight programs. Each adds a listener for the end of this process.
  process.setMaxListeners(8 * cases.atOnce);
  const { names, among } =
    ONLY_CASE === undefined ? await casesOf(swept, cases, strides) : { names: [ONLY_CASE], among: 1 };
  process.stdout.write(`${part}: ${names.length} cases\n`);
  const startedMs = performance.now();
  let unreached = 0;
  const found: string[] = [];
  const waiting = names.values();
  const work = async () => {
    for (const name of waiting) {
      const { hit, violations } = await swept.run(name).catch(failedCase);
      if (!hit) unreached++;
      const at = hit ? `${hit.peer} ${hit.side}: ${hit.name}` : "not reached";
      const ofThisKind = `${swept.file} -t '${swept.part}: ${cases.kind}'`;
      const repeat = `FAULTS_CASE='${name}' npx vitest run --config test/faults/vitest.config.ts ${ofThisKind}`;
      const all = [...new Set(violations)].map((violation) => `${violation} [${name}; ${at}]\n  repeat: ${repeat}`);
      for (const violation of all) process.stdout.write(`${violation}\n`);
      found.push(...all);
    }
  };
  await Promise.all(Array.from({ length: Math.min(cases.atOnce, names.length) }, work));
  const points = strides.map((stride) => stride || "none").join(" / ");
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  process.stdout.write(
    `${part}: ${names.length} of ${among} cases, every ${points}, ${unreached} unreached, ${found.length} violations, ${seconds} s\n`,
  );
  expect(found).toEqual([]);
}

/** A case that can't be run to its end is a finding too. */
function failedCase(error: Error): Outcome {
  return { hit: undefined, violations: [`the case itself failed: ${error.stack}`] };
}

/** The names of the chosen cases, and the number of cases they were chosen from. */
async function casesOf({ points }: Swept, { kind, always = () => false }: KindOfCases, strides: Strides) {
  const forced = await points(1, always);
  const chosen = (await plansOf(points, kind, 1)).filter(({ point }) => forced.includes(point));
  let among = 0;
  for (const [index, stride] of strides.entries()) {
    if (stride === 0) continue;
    const plans = await plansOf(points, kind, index + 1);
    among += plans.length;
    chosen.push(...everyNth(stride, plans));
  }
  return { names: [...new Set(chosen.map(nameOf))], among };
}

/** All possible cases of a kind. */
async function plansOf(points: Swept["points"], kind: Kind, replicas: number): Promise<readonly CasePlan[]> {
  const all = await points(replicas, faultOf({ kind }, () => undefined).fits);
  return all.flatMap((point) => variantsOf({ replicas, kind, point }, all.length));
}

/** Each SQL error code at a point is a case. A second kill happens at a random event of the run that follows. */
function variantsOf(plan: CasePlan, events: number): readonly CasePlan[] {
  const { kind, point } = plan;
  if (kind.startsWith("SQL error")) return SQLSTATES.map((sqlstate) => ({ ...plan, sqlstate }));
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

/** Every n-th item, but at least one if there is any. The seed decides which. */
export function everyNth<T>(stride: number, all: readonly T[]): readonly T[] {
  const step = Math.min(stride, all.length);
  return all.filter((_, index) => index % step === SEED % step);
}

const highest = new Map<string, number>();

/** Prints a time if it is the longest of that name so far. */
export function reportHighest(name: string, ms: number, where: string): void {
  if (ms <= (highest.get(name) ?? 0)) return;
  highest.set(name, ms);
  process.stdout.write(`${name}: ${Math.round(ms / 100) / 10} s (${where})\n`);
}
