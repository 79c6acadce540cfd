// Interrupts a worker at every request, answer and database message of its first run, alone and beside one or two others. The
// work must continue by itself: another worker takes it over, or one that is started anew, or the interrupted worker itself.

import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { farSchedule } from "../cli/small-config.ts";
import { AWAY_MS, type CasePlan, exemptOf, planOf, REPLICAS, SECOND, VICTIM } from "./case-plan.ts";
import { violations } from "./check.ts";
import { statuses } from "./evidence.ts";
import type { FaultEvent } from "./fault-decision.ts";
import { isLogSearched, RECOVERY, type Running, recorded, reportRecovery, startArmed } from "./interrupt.ts";
import { type Case, openCase, openLab } from "./lab.ts";
import { type Outcome, pointsAmong, reportHighest, sweepKinds } from "./sweep.ts";

const PART = "worker";
const COMMAND = ["start"];
/** Another worker continues the work after the time of a lease and a tick. */
const RECOVERY_MS_MAX = 40_000;
/** Work that the database refused at a tick is tried again at the next one, a minute later. */
const REFUSED_MS_MAX = 75_000;
const POLL_MS = 250;
/** How long a continued worker is watched, in case it does what it must not do. */
const WAKING_MS = 1_500;
/** How long a case waits: longer than is promised, so that it can tell how long the work took on a slow machine. */
const PATIENCE_MS = 90_000;

/** Six series of two days, with nothing stored yet, and a scheduled time that is far away. */
const lab = await openLab({
  days: 2,
  groupings: ["none", "endpoint", "tags"],
  filters: [{ name: "all" }, { name: "listen", dimensions: { endpoint: "listen" } }],
  caps: { concurrent: 2, attempts: 10 },
  requestsPerSecond: 20,
  job: { schedule: farSchedule() },
  rest: { monitor: { port: 0 }, worker: { drainSeconds: 8 } },
});

/** When every due slice had an accepted status; undefined if that did not happen within PATIENCE_MS. */
async function allCompleteAt({ db }: Case, accepted = ["complete"]): Promise<number | undefined> {
  const untilMs = performance.now() + PATIENCE_MS;
  while (performance.now() < untilMs) {
    const stored = await statuses(db, lab.filters);
    if (lab.due.every((slice) => accepted.includes(stored.get(slice) ?? ""))) return performance.now();
    await sleep(POLL_MS);
  }
  return undefined;
}

/** A worker does not end by itself, so only its events until all slices are complete are points. */
async function calibrate(replicas: number): Promise<readonly FaultEvent[]> {
  await using context = await openCase(lab);
  const events = recorded(context);
  const running = await Promise.all(REPLICAS.slice(0, replicas).map((who) => context.start(who, COMMAND)));
  if ((await allCompleteAt(context)) === undefined) throw new Error("the workers that nothing happens to do not work");
  const seen = [...events];
  await stopAll(context, running);
  return seen;
}

async function stopAll(context: Case, running: readonly Running[]): Promise<void> {
  // A worker that was just started does not handle SIGTERM yet: the signal would kill it.
  const recoveries = running.filter(({ who }) => who === RECOVERY);
  await Promise.all(recoveries.map(({ program }) => program.waitFor("worker started").catch(() => {})));
  for (const { program } of running) program.kill("SIGTERM");
  await Promise.all(running.map(context.end));
}

async function runCase(name: string): Promise<Outcome> {
  const plan = planOf(name);
  await using context = await openCase(lab, { timeoutMs: 3 * PATIENCE_MS });
  const { fault, running: victim } = await startArmed(context, VICTIM, plan, plan.point, COMMAND);
  const running = [victim];
  for (const who of REPLICAS.slice(1, plan.replicas)) running.push(await context.start(who, COMMAND));
  // A slice that the database refused is for a person to look at: it stays failed, and is tried again only after an hour.
  const allComplete = allCompleteAt(context, plan.sqlstate === undefined ? ["complete"] : ["complete", "failed"]);
  let lastFault = fault;
  let happened = await isBefore(fault.happened, allComplete);
  if (plan.secondPoint !== undefined && happened) {
    // A worker in place of the killed one is killed too.
    const second = await startArmed(context, SECOND, plan, plan.secondPoint, COMMAND);
    running.push(second.running);
    lastFault = second.fault;
    happened = await isBefore(lastFault.happened, allComplete);
  }
  const sinceMs = performance.now();
  if (happened && plan.replicas === 1) running.push(...(await startAnew(context, plan, victim, allComplete)));
  const atMs = await allComplete;
  const lastedMs = plan.kind === "database away" ? AWAY_MS : 0;
  const tookMs = atMs === undefined ? undefined : Math.max(0, atMs - sinceMs - lastedMs);
  if (plan.kind === "stop and continue") {
    victim.program.kill("SIGCONT");
    await sleep(WAKING_MS);
  }
  if (tookMs !== undefined) report(tookMs, plan, name);
  await stopAll(context, running);
  if (plan.sqlstate !== undefined) await context.end(await context.start(RECOVERY, ["export"]));

  const late = tookMs === undefined || tookMs > (plan.sqlstate === undefined ? RECOVERY_MS_MAX : REFUSED_MS_MAX);
  const took = tookMs === undefined ? "never" : `only after ${Math.round(tookMs / 1000)} s`;
  return {
    hit: lastFault.hit(),
    violations: [
      ...violations(await context.evidence(happened ? RECOVERY : undefined, exemptOf(plan.kind))),
      ...(late ? [`I8: all slices were complete ${took}`] : []),
      ...(await context.leaks(isLogSearched(plan))),
    ],
  };
}

/** Starts another worker if the only one does not work any more, as its operator would. */
async function startAnew(
  context: Case,
  { kind, sqlstate }: CasePlan,
  { program }: Running,
  allComplete: Promise<unknown>,
): Promise<readonly Running[]> {
  if (kind === "stop and continue") return [await context.start(SECOND, COMMAND)];
  // An error of the database that would be the same in a minute may end the worker.
  const isOver = kind.startsWith("kill") || (sqlstate !== undefined && (await isBefore(program.ended, allComplete)));
  return isOver ? [await context.start(sqlstate === undefined ? RECOVERY : SECOND, COMMAND)] : [];
}

/** Whether the event comes before all is complete. */
async function isBefore(event: Promise<unknown>, allComplete: Promise<unknown>): Promise<boolean> {
  return Promise.race([event.then(() => true), allComplete.then(() => false)]);
}

function report(tookMs: number, { kind }: CasePlan, name: string): void {
  if (kind.startsWith("kill")) reportRecovery(tookMs, PART, name);
  else reportHighest(`worker, ${kind}: all complete within`, tookMs, name);
}

sweepKinds(
  { part: PART, file: "worker.faults.ts", points: pointsAmong(calibrate), run: runCase },
  // The cases mostly wait: for limits, and until the heartbeat of a worker that is gone is too old.
  [
    { kind: "kill", ci: [97, 197, 307], all: [11, 19, 29], atOnce: 6 },
    { kind: "kill twice", ci: [193], all: [23], atOnce: 6 },
    { kind: "stop and continue", ci: [197], all: [23, 41], atOnce: 4 },
    { kind: "cut", ci: [197], all: [19, 31], atOnce: 3 },
    { kind: "black hole", ci: [197], all: [23, 41], atOnce: 8 },
    { kind: "database away", ci: [197], all: [23, 41], atOnce: 8 },
    { kind: "SQL error before", ci: [2003], all: [199], atOnce: 4 },
    { kind: "SQL error after", ci: [2003], all: [199], atOnce: 4 },
  ],
);
