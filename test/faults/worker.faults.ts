// Interrupts a worker at every request, answer and database message of its first run, alone and beside one or two others. The
// work must go on by itself: others take it over, or the worker that is started anew, or the one that was cut off itself.

import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, test } from "vitest";
import { addDays, dayOf } from "../../src/emulator/days.ts";
import { farSchedule } from "../cli/workers.ts";
import { arm } from "./arm.ts";
import { sliceName } from "./case-evidence.ts";
import { AWAY_MS, exemptOf, faultOf, nameOf, planOf, REPLICAS, VICTIM } from "./case-plan.ts";
import { violations } from "./check.ts";
import { statuses } from "./evidence.ts";
import { reportFigure } from "./figures.ts";
import { type FaultEvent, PASS } from "./gate.ts";
import { placeOf } from "./interrupt.ts";
import { type Case, openCase, openLab, PROJECT_ID, type Running } from "./lab.ts";
import { every, LIMIT, sweep } from "./sweep.ts";

const FILE = "worker.faults.ts";
const COMMAND = ["start"];
const GROUPINGS = ["none", "endpoint", "tags"];
const FILTERS = { all: "", listen: "endpoint=listen" };
const CAPS = { concurrent: 2, attempts: 10 };
const DRAIN_SECONDS = 8;
/** A lease and a tick. */
const RECOVERY_MS_MAX = 40_000;
/** After so long a connection that swallows everything is given up, and this fault is over. */
const STATEMENT_MS_MAX = 30_000;
const LOOK_MS = 250;
/** How long a worker that wakes up has to do what it must not. */
const WAKING_MS = 1_500;
/** As much as a slow machine needs beyond what is promised, so that the case can tell how long it took. */
const PATIENCE_MS = 90_000;

const today = dayOf(new Date());
const days = [addDays(today, -2), addDays(today, -1)];

const lab = await openLab({
  filters: FILTERS,
  due: Object.values(FILTERS).flatMap((conditions) =>
    GROUPINGS.flatMap((grouping) => days.map((day) => sliceName(`${grouping} / ${conditions}`, day))),
  ),
  before: [],
  config: (baseUrl) => ({
    service: { baseUrl, requestsPerSecond: 20, maxConcurrent: CAPS.concurrent, timeoutSeconds: 2 },
    projects: [{ id: PROJECT_ID, name: "production", key: { env: "USAGE_EXPORT_KEY" } }],
    exports: [
      {
        name: "nightly",
        schedule: farSchedule(),
        projects: ["production"],
        window: { days: days.length },
        groupings: GROUPINGS,
        filters: [{ name: "all" }, { name: "listen", dimensions: { endpoint: "listen" } }],
      },
    ],
    monitor: { port: 0 },
    worker: { drainSeconds: DRAIN_SECONDS },
  }),
});
afterAll(() => lab[Symbol.asyncDispose]());

/** Whether every slice that is due is complete, and by when; undefined where that was waited for in vain. */
async function wholeAt({ db }: Case): Promise<number | undefined> {
  const untilMs = performance.now() + PATIENCE_MS;
  while (performance.now() < untilMs) {
    const stored = await statuses(db, FILTERS);
    if (lab.options.due.every((slice) => stored.get(slice) === "complete")) return performance.now();
    await sleep(LOOK_MS);
  }
  return undefined;
}

/** A worker goes on after its run for ever: only the events until then are points. */
async function calibrate(replicas: number): Promise<number> {
  await using world = await openCase(lab);
  let events = 0;
  world.gate = ({ who }: FaultEvent) => {
    if (who === VICTIM) events++;
    return PASS;
  };
  const running = await Promise.all(REPLICAS.slice(0, replicas).map((who) => world.start(who, COMMAND)));
  if ((await wholeAt(world)) === undefined) throw new Error("the workers that nothing happens to do not work");
  const seen = events;
  await stopAll(world, running);
  return seen;
}

async function stopAll(world: Case, running: readonly Running[]): Promise<void> {
  for (const { program } of running) program.kill("SIGTERM");
  await Promise.all(running.map(world.end));
}

const slowest = new Map<string, number>();

async function runCase(name: string): Promise<readonly string[]> {
  const plan = planOf(name);
  await using world = await openCase(lab, { timeoutMs: 3 * PATIENCE_MS });
  let victim: Running | undefined;
  const fault = arm({ who: VICTIM, point: plan.point, ...faultOf(plan.kind, () => victim) });
  world.gate = fault.gate;
  victim = await world.start(VICTIM, COMMAND);
  const running = [victim];
  for (const who of REPLICAS.slice(1, plan.replicas)) running.push(await world.start(who, COMMAND));
  const whole = wholeAt(world);
  const happened = await Promise.race([fault.happened.then(() => true), whole.then(() => false)]);
  const sinceMs = performance.now();
  // Whoever looks after the only worker starts it anew.
  if (happened && plan.kind === "kill" && plan.replicas === 1) running.push(await world.start("healer", COMMAND));
  if (happened && plan.kind === "stop" && plan.replicas === 1) running.push(await world.start("other", COMMAND));
  const atMs = await whole;
  const lastedMs = plan.kind === "away" ? AWAY_MS : 0;
  const tookMs = atMs === undefined ? undefined : Math.max(0, atMs - sinceMs - lastedMs);
  if (plan.kind === "stop") {
    victim.program.kill("SIGCONT");
    await sleep(WAKING_MS);
  }
  if (tookMs !== undefined) slowest.set(plan.kind, Math.max(tookMs, slowest.get(plan.kind) ?? 0));
  await stopAll(world, running);

  const exempt = exemptOf(plan.kind);
  const found = violations(await world.evidence(happened ? "healer" : undefined, { ...CAPS, exempt }));
  const late = tookMs === undefined || tookMs > RECOVERY_MS_MAX + (plan.kind === "hole" ? STATEMENT_MS_MAX : 0);
  const took = tookMs === undefined ? "never" : `only after ${Math.round(tookMs / 1000)} s`;
  return [
    ...found,
    ...(late ? [`I8: all was complete ${took}`] : []),
    ...(await world.leaks(plan.point % 20 === 1)),
  ].map((one) => `${one} [${name}; ${placeOf(fault)}]`);
}

test.each([
  { kind: "kill", strides: [29, 41, 83] },
  { kind: "stop", strides: [61, 83] },
  { kind: "cut", strides: [41, 83] },
  { kind: "hole", strides: [61, 97] },
  { kind: "away", strides: [61, 97] },
])("worker: $kind", LIMIT, async ({ kind, strides }) => {
  const cases = async () => {
    const names: string[] = [];
    for (const [index, stride] of strides.entries()) {
      const replicas = index + 1;
      const all = Array.from({ length: await calibrate(replicas) }, (_, i) => i + 1);
      names.push(...every(stride, all).map((point) => nameOf({ replicas, kind, point })));
    }
    return names;
  };
  // They mostly wait: for the heartbeat of who is gone, for limits.
  await sweep({ part: `worker, ${kind}`, file: FILE, test: `worker: ${kind}`, cases, atOnce: 8, run: runCase });
  reportFigure(`worker, ${kind}: all complete within`, `${Math.round((slowest.get(kind) ?? 0) / 1000)} s`);
});
