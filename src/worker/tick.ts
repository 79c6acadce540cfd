// A tick: for each job, what its schedule and its gaps ask for becomes a run and its work, decided under a lock on the job so
// that any number of workers ticking together decide it once.

import { randomUUID } from "node:crypto";
import { databaseNow } from "../db/database.ts";
import { dueSlices } from "../db/due-slices.ts";
import { type JobId, lockJob, markScheduled } from "../db/jobs.ts";
import { idOf, markNextDue } from "../db/series.ts";
import { insertRun, type RunningRun, runningRuns } from "../db/shared-runs.ts";
import { inTransaction, type Tx } from "../db/transaction.ts";
import { nextDueOf } from "../jobs/next-due.ts";
import type { RotationJob } from "../keys/policy.ts";
import { jitterMs } from "../schedule/jitter.ts";
import { latestOccurrence } from "../schedule/occurrences.ts";
import { planTick, type TickDecision } from "../schedule/plan-tick.ts";
import { dayOf } from "../usage/day.ts";
import {
  type ExportJob,
  type ExportPlan,
  planRun,
  requestsOfDays,
  seriesOf,
  type UsageRequest,
} from "../usage/plan.ts";
import { isRested } from "../usage/plan-catch-up.ts";
import { shareRun } from "./share-run.ts";
import type { WorkerWorld } from "./world.ts";

export type TickResult = {
  /** Whether there is new work in the queue. */
  readonly began: boolean;
  /** When a job's moment comes that has come, but for its jitter. */
  readonly wakeAt: Date | undefined;
};

type JobTick = { readonly began: boolean; readonly wakeAt?: Date; readonly skipped?: boolean };

export async function tick(world: WorkerWorld): Promise<TickResult> {
  const { exports, rotations } = world.config;
  const ticks: JobTick[] = [];
  for (const job of exports) ticks.push(told(world, "export", job.name, await tickExport(world, job)));
  for (const job of rotations) ticks.push(told(world, "rotation", job.name, await tickRotation(world, job)));
  const wakes = ticks.flatMap(({ wakeAt }) => wakeAt ?? []);
  return {
    began: ticks.some(({ began }) => began),
    wakeAt: wakes.length > 0 ? new Date(Math.min(...wakes.map(Number))) : undefined,
  };
}

function told({ app, metrics }: WorkerWorld, kind: JobId["kind"], job: string, ticked: JobTick): JobTick {
  if (ticked.skipped) {
    metrics.runEnded({ kind, job, trigger: "schedule", status: "skipped" });
    app.log.warn({ kind, job, reason: STILL_RUNNING }, "run skipped");
  }
  return ticked;
}

const NOTHING: JobTick = { began: false };
const STILL_RUNNING = "the run before it was still running";

async function tickExport(world: WorkerWorld, job: ExportJob): Promise<JobTick> {
  const now = await databaseNow(world.db);
  return inTransaction(world.db, async (tx) => {
    const looked = await look(tx, { kind: "export", name: job.name }, job, job.overlap, now);
    if (!looked) return NOTHING;
    const { decision, paused, runs } = looked;
    if (decision.kind === "wait") return { began: false, wakeAt: decision.until };
    if (decision.kind === "skip") {
      await skip(tx, { kind: "export", name: job.name }, decision.scheduledFor);
      await markNextDue(tx, nextDueOf(seriesOf(job), world.ids, world.config.exports, now));
      return { began: false, skipped: true };
    }
    // A day that another run is about to read is no gap yet.
    if (decision.kind === "none" && (paused || runs.length > 0)) return NOTHING;
    const today = dayOf(now);
    const isScheduled = decision.kind === "run";
    const night = isScheduled ? planRun(job, today) : { requests: [], runDay: today, due: undefined };
    const gaps = await gapRequests(tx, world, job, now, night);
    if (!isScheduled && gaps.length === 0) return NOTHING;
    const shared = await shareRun(tx, world, {
      job,
      trigger: isScheduled ? decision.trigger : "catchup",
      scheduledFor: isScheduled ? decision.scheduledFor : undefined,
      plan: { ...night, requests: [...night.requests, ...gaps] },
    });
    if (isScheduled) {
      await markScheduled(tx, { kind: "export", name: job.name }, decision.scheduledFor);
      await markNextDue(tx, nextDueOf(seriesOf(job), world.ids, world.config.exports, now));
    }
    if (!shared) return NOTHING;
    world.app.log.info({ job: job.name, ...shared, ...decision, gaps: gaps.length }, "run begun");
    return { began: true };
  });
}

async function tickRotation(world: WorkerWorld, job: RotationJob): Promise<JobTick> {
  const id: JobId = { kind: "rotation", name: job.name };
  const now = await databaseNow(world.db);
  return inTransaction(world.db, async (tx) => {
    const looked = await look(tx, id, job, "skip", now);
    if (!looked || looked.decision.kind === "none") return NOTHING;
    const { decision } = looked;
    if (decision.kind === "wait") return { began: false, wakeAt: decision.until };
    await markScheduled(tx, id, decision.scheduledFor);
    const { scheduledFor } = decision;
    const trigger = decision.kind === "run" ? decision.trigger : "schedule";
    const runId = randomUUID();
    const work = { key: job.name, priority: 0, data: { runId, job: job.name, trigger } };
    const [added] = decision.kind === "run" ? await world.queue.add(tx, "rotation", [work]) : [];
    if (!added) {
      await skip(tx, id, scheduledFor);
      return { began: false, skipped: true };
    }
    await insertRun(tx, { runId, kind: "rotation", job: job.name, trigger, scheduledFor, status: "running" });
    return { began: true };
  });
}

type Scheduled = { readonly schedule: string; readonly timezone: string; readonly jitterSeconds: number };

type Look = {
  readonly decision: TickDecision;
  readonly paused: boolean;
  readonly runs: readonly RunningRun[];
};

/** Locks the job for the transaction. Undefined where it is not registered. */
async function look(
  tx: Tx,
  id: JobId,
  job: Scheduled,
  overlap: "skip" | "queue",
  now: Date,
): Promise<Look | undefined> {
  const stored = await lockJob(tx, id);
  if (!stored) return undefined;
  const runs = await runningRuns(tx, id.kind, id.name);
  const latest = latestOccurrence(job, now);
  const moment = { latest, jitterMs: latest ? jitterMs(id.name, latest, job.jitterSeconds) : 0, overlap };
  const state = {
    scheduledThrough: stored.scheduledThrough,
    paused: stored.pause !== undefined,
    // A person's export or backfill is no reason to leave a night out.
    running: runs.some(({ trigger }) => trigger === "schedule" || trigger === "catchup"),
  };
  return { decision: planTick(moment, state, now), paused: state.paused, runs };
}

async function skip(tx: Tx, id: JobId, scheduledFor: Date): Promise<void> {
  const run = { runId: randomUUID(), kind: id.kind, job: id.name, trigger: "schedule", scheduledFor } as const;
  await insertRun(tx, { ...run, status: "skipped", error: STILL_RUNNING });
  await markScheduled(tx, id, scheduledFor);
}

/** The days that are due and not there, but those that the run of this day reads anyway. Without a window the service chooses the days. */
async function gapRequests(
  tx: Tx,
  { ids }: WorkerWorld,
  job: ExportJob,
  now: Date,
  { due }: ExportPlan,
): Promise<UsageRequest[]> {
  if (!job.window) return [];
  const series = new Map(seriesOf(job).map((one) => [idOf(ids, one), one]));
  const gaps = (await dueSlices(tx, [...series.keys()])).filter(
    (slice) => isRested(slice, now) && (due === undefined || slice.day < due.oldest.start),
  );
  const days = Map.groupBy(gaps, ({ seriesId }) => seriesId);
  return [...series].flatMap(([id, one]) =>
    requestsOfDays(
      one,
      (days.get(id) ?? []).map(({ day }) => day),
    ),
  );
}
