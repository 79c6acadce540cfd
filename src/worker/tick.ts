// A tick: one pass of planning over all jobs. What schedules and gaps ask for becomes runs and queue jobs. Workers that tick at
// the same time decide each job once, under a lock on its row.

import { databaseNow } from "../db/connection/database.ts";
import { isConnectionError } from "../db/connection/errors.ts";
import { inTransaction, type Tx } from "../db/connection/transaction.ts";
import { type JobId, markScheduled } from "../db/jobs/jobs.ts";
import { dueSlices } from "../db/usage/coverage.ts";
import { markNextDue, renewNextDue, seriesIdOf } from "../db/usage/series.ts";
import { errorCode, errorText } from "../errors.ts";
import { recoverFromClockSetBack } from "../jobs/clocks.ts";
import { nextDueOf } from "../schedule/due.ts";
import { isDueForRetry } from "../usage/backfill.ts";
import { dayOf } from "../usage/days.ts";
import {
  configuredSeries,
  type ExportJob,
  type ExportPlan,
  planRun,
  requestsOfDays,
  seriesOf,
  type UsageRequest,
} from "../usage/plan.ts";
import type { WorkerContext } from "./context.ts";
import { tickRotation } from "./rotation.ts";
import {
  enqueueRun,
  lockAndPlanJob,
  type NewQueuedRun,
  NOTHING_DUE,
  recordSkippedRun,
  reportRunEnd,
  STILL_RUNNING_REASON,
  type TickOutcome,
} from "./runs.ts";

export type TickResult = {
  /** Whether there is new work in the queue. */
  readonly began: boolean;
  /** Time left until the jitter of the first job that is already due is over. */
  readonly wakeInMs: number | undefined;
};

/** What goes wrong with one job does not keep the others. Throws only where the database is away. */
export async function tick(world: WorkerContext): Promise<TickResult> {
  const { exports, rotations } = world.config;
  if (await recoverFromClockSetBack(world.app, world.db)) await renewDueTimes(world);
  const ticks: TickOutcome[] = [];
  for (const job of exports) ticks.push(await tickSafely(world, "export", job.name, () => tickExport(world, job)));
  for (const job of rotations)
    ticks.push(await tickSafely(world, "rotation", job.name, () => tickRotation(world, job)));
  const wakes = ticks.flatMap(({ wakeInMs }) => wakeInMs ?? []);
  return {
    began: ticks.some(({ began }) => began),
    wakeInMs: wakes.length > 0 ? Math.min(...wakes) : undefined,
  };
}

/** The stored due times of series were computed by the clock before it was set back. */
async function renewDueTimes({ db, config, ids }: WorkerContext): Promise<void> {
  const series = configuredSeries(config.exports).map((one) => one.series);
  await renewNextDue(db, nextDueOf(series, ids, config.exports, await databaseNow(db)));
}

async function tickSafely(
  world: WorkerContext,
  kind: JobId["kind"],
  job: string,
  tickJob: () => Promise<TickOutcome>,
): Promise<TickOutcome> {
  const { app } = world;
  try {
    const ticked = await tickJob();
    if (ticked.skipped) {
      reportRunEnd(world, { kind, job, trigger: "schedule", status: "skipped", error: STILL_RUNNING_REASON });
    }
    return ticked;
  } catch (error) {
    if (isConnectionError(error)) throw error;
    app.log.error({ kind, job, code: errorCode(error), reason: errorText(error) }, "tick failed");
    return NOTHING_DUE;
  }
}

// Decides what an export does at a tick: its night, and the days that are due and not there.

async function tickExport(world: WorkerContext, job: ExportJob): Promise<TickOutcome> {
  const scheduled = { ...job, kind: "export" } as const;
  const now = await databaseNow(world.db);
  return inTransaction(world.db, async (tx) => {
    const looked = await lockAndPlanJob(tx, scheduled, now);
    if (!looked) return NOTHING_DUE;
    const { decision, paused, runs } = looked;
    if (decision.kind === "wait") return { began: false, wakeInMs: decision.until.getTime() - now.getTime() };
    if (decision.kind === "none") {
      // A day that another run is about to read is no gap yet.
      return paused || runs.length > 0 ? NOTHING_DUE : enqueueGaps(tx, world, job, now);
    }
    // The day it would have read stays due, and is a gap as soon as the run before it is over.
    if (decision.kind === "skip") return recordSkippedRun(tx, scheduled, decision.scheduledFor);
    const night = planRun(job, dayOf(now));
    const gaps = await gapRequests(tx, world, job, now, night.due);
    const { trigger, scheduledFor } = decision;
    const plan = { ...night, requests: [...night.requests, ...gaps] };
    const begun = await beginRun(tx, world, { job, trigger, scheduledFor, plan });
    await markScheduled(tx, scheduled, scheduledFor);
    // Last: until then what was missed is due because this moment is past.
    await markNextDue(tx, nextDueOf(seriesOf(job), world.ids, world.config.exports, now));
    return begun;
  });
}

async function enqueueGaps(tx: Tx, world: WorkerContext, job: ExportJob, now: Date): Promise<TickOutcome> {
  const requests = await gapRequests(tx, world, job, now, undefined);
  if (requests.length === 0) return NOTHING_DUE;
  const plan = { requests, runDay: dayOf(now), due: undefined };
  return beginRun(tx, world, { job, trigger: "catchup", scheduledFor: undefined, plan });
}

async function beginRun(tx: Tx, world: WorkerContext, run: NewQueuedRun): Promise<TickOutcome> {
  const shared = await enqueueRun(tx, world, run);
  if (!shared) return NOTHING_DUE;
  const { job, trigger, scheduledFor } = run;
  world.app.log.info({ job: job.name, ...shared, trigger, scheduledFor }, "run begun");
  return { began: true };
}

/** The days that are due and not there, but for those that the night reads anyway. Without a window the service chooses the days. */
async function gapRequests(
  tx: Tx,
  { ids }: WorkerContext,
  job: ExportJob,
  now: Date,
  night: ExportPlan["due"],
): Promise<UsageRequest[]> {
  if (!job.window) return [];
  const series = new Map(seriesOf(job).map((one) => [seriesIdOf(ids, one), one]));
  const slices = await dueSlices(tx, [...series.keys()]);
  const gaps = slices.filter(
    (slice) => isDueForRetry(slice, now) && (night === undefined || slice.day < night.oldest.start),
  );
  const bySeries = Map.groupBy(gaps, ({ seriesId }) => seriesId);
  return [...series].flatMap(([id, one]) => {
    const days = bySeries.get(id) ?? [];
    return requestsOfDays(
      one,
      days.map(({ day }) => day),
    );
  });
}
