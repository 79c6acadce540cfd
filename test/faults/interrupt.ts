// Interrupts a command that does its work and ends, at one event of it, and lets one ordinary run of it follow.

import { type Armed, arm } from "./arm.ts";
import type { Caps } from "./case-evidence.ts";
import { type CasePlan, exemptOf, faultOf, nameOf, planOf, REPLICAS, VICTIM } from "./case-plan.ts";
import { violations } from "./check.ts";
import { type FaultEvent, PASS } from "./gate.ts";
import { type Case, type Lab, openCase, type Running } from "./lab.ts";
import { every } from "./sweep.ts";

export type Interruption = {
  readonly lab: Lab;
  readonly command: readonly string[];
  readonly caps: Omit<Caps, "exempt">;
  /** What this command promises beside what holds of all; called before the healing run, and what it returns after it. */
  readonly promise?: (world: Case) => Promise<() => readonly string[]>;
};

/** Of each case so many leave behind a log of the database server to be searched for secrets, which is long. */
const SERVER_LOG_EVERY = 20;

export async function interrupted(interruption: Interruption, name: string): Promise<readonly string[]> {
  const { lab, command, promise = async () => () => [] } = interruption;
  const plan = planOf(name);
  await using world = await openCase(lab);
  let victim: Running | undefined;
  const fault = arm({ who: VICTIM, point: plan.point, ...faultOf(plan.kind, () => victim) });
  world.gate = fault.gate;

  victim = await world.start(VICTIM, command);
  const others = await Promise.all(REPLICAS.slice(1, plan.replicas).map((who) => world.start(who, command)));
  if (plan.kind === "stop") await wakeAfterAnother(world, victim, command, fault.happened);
  await Promise.all([victim, ...others].map(world.end));
  world.gate = () => PASS;

  const caps = { ...interruption.caps, exempt: exemptOf(plan.kind) };
  const before = violations(await world.evidence(undefined, caps));
  const kept = await promise(world);
  await world.end(await world.start("healer", command));
  const after = violations(await world.evidence("healer", caps));
  const leaks = await world.leaks(plan.point % SERVER_LOG_EVERY === 1);
  return [...new Set([...before, ...after, ...kept(), ...leaks])].map((one) => `${one} [${name}; ${placeOf(fault)}]`);
}

/** Whoever was stopped goes on when another run has done all, and must not undo it. */
async function wakeAfterAnother(
  world: Case,
  victim: Running,
  command: readonly string[],
  happened: Promise<void>,
): Promise<void> {
  const over = victim.program.ended.then(() => "over");
  if ((await Promise.race([happened.then(() => "stopped"), over])) === "over") return;
  await world.end(await world.start("other", command));
  victim.program.kill("SIGCONT");
}

export function placeOf(fault: Armed): string {
  const hit = fault.hit();
  return hit ? `${hit.peer} ${hit.side}: ${hit.name}` : "not reached";
}

/** The numbers from 1 of the events at which a fault can be, of a program that nothing happens to beside others like it. */
export function calibration({ lab, command }: Interruption) {
  const known = new Map<number, Promise<readonly FaultEvent[]>>();
  const calibrate = async (replicas: number): Promise<readonly FaultEvent[]> => {
    await using world = await openCase(lab);
    const events: FaultEvent[] = [];
    world.gate = (event) => {
      if (event.who === VICTIM) events.push(event);
      return PASS;
    };
    const running = await Promise.all(REPLICAS.slice(0, replicas).map((who) => world.start(who, command)));
    for (const { status, output } of await Promise.all(running.map(world.end))) {
      if (status !== 0) throw new Error(`the run that nothing happens to ended with ${status}: ${output}`);
    }
    return events;
  };
  return async (replicas: number, fits: (event: FaultEvent) => boolean): Promise<readonly number[]> => {
    const events = known.get(replicas) ?? calibrate(replicas);
    known.set(replicas, events);
    return (await events).flatMap((event, index) => (fits(event) ? [index + 1] : []));
  };
}

export type PointsOf = ReturnType<typeof calibration>;

/** The names of cases: with one program, two, three, every so many points of each. */
export async function casesOf(
  points: PointsOf,
  { kind, strides }: Pick<CasePlan, "kind"> & { readonly strides: readonly number[] },
): Promise<readonly string[]> {
  const { fits } = faultOf(kind, () => undefined);
  const cases: string[] = [];
  for (const [index, stride] of strides.entries()) {
    const replicas = index + 1;
    const chosen = every(stride, await points(replicas, fits));
    cases.push(...chosen.map((point) => nameOf({ replicas, kind, point })));
  }
  return cases;
}
