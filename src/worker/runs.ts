// A run that workers share, from the decision at a tick through its queue jobs to the report of its end.

import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { inTransaction, type Tx } from "../db/connection/transaction.ts";
import { type JobId, lockJob, markScheduled } from "../db/jobs/jobs.ts";
import { openQueue, type Queue } from "../db/jobs/queue.ts";
import { insertRun, type RunningRun, recordQueuedRequests, runningRuns } from "../db/jobs/runs.ts";
import { takeFetchNo } from "../db/usage/fetch-numbers.ts";
import { extendDue, registerSeries, type SeriesIds, seriesIdOf } from "../db/usage/series.ts";
import { counted } from "../report/format.ts";
import { latestOccurrence, type Schedule } from "../schedule/cron.ts";
import { jitterMs } from "../schedule/due.ts";
import { planTick, type TickDecision } from "../schedule/plan-tick.ts";
import type { BackfillPlan } from "../usage/backfill.ts";
import { DAY_MS, type Day, startOfDay } from "../usage/days.ts";
import type { RunCounts, RunTrigger } from "../usage/export.ts";
import {
  configuredSeries,
  type ExportJob,
  type ExportPlan,
  FEATURE_CHECKS,
  type Overlap,
  totalSliceCount,
  type UsageRequest,
} from "../usage/plan.ts";
import { DIMENSIONS, GROUPINGS } from "../usage/series.ts";
import { GUARD_MODES, UNDATED } from "../usage/slice.ts";
import type { WorkerContext } from "./context.ts";

export type TickOutcome = {
  /** Whether there is new work in the queue. */
  readonly began: boolean;
  /**
   * Time left until the jitter of a job that is already due is over. It is measured by the database's clock, which may differ
   * from this machine's.
   */
  readonly wakeInMs?: number;
  readonly skipped?: boolean;
};

export const NOTHING_DUE: TickOutcome = { began: false };

export const STILL_RUNNING_REASON = "the run before it was still running";

export type ScheduledJob = JobId & Schedule & { readonly jitterSeconds: number; readonly overlap: Overlap };

export type TickPlan = {
  readonly decision: TickDecision;
  readonly paused: boolean;
  readonly runs: readonly RunningRun[];
};

/** Undefined where the job is not registered. */
export async function lockAndPlanJob(tx: Tx, job: ScheduledJob, now: Date): Promise<TickPlan | undefined> {
  const stored = await lockJob(tx, job);
  if (!stored) return undefined;
  const runs = await runningRuns(tx, job.kind, job.name);
  const latest = latestOccurrence(job, now);
  const { overlap } = job;
  const moment = { latest, jitterMs: latest ? jitterMs(job.name, latest, job.jitterSeconds) : 0, overlap };
  const state = {
    scheduledThrough: stored.scheduledThrough,
    paused: stored.pause !== undefined,
    // A person's export or backfill is no reason to leave a night out.
    running: runs.some(({ trigger }) => trigger === "schedule" || trigger === "catchup"),
  };
  return { decision: planTick(moment, state, now), paused: state.paused, runs };
}

/** Notes a run that should have been. */
export async function recordSkippedRun(tx: Tx, id: JobId, scheduledFor: Date): Promise<TickOutcome> {
  const run = { runId: randomUUID(), kind: id.kind, job: id.name, trigger: "schedule", scheduledFor } as const;
  await insertRun(tx, { ...run, status: "skipped", error: STILL_RUNNING_REASON });
  await markScheduled(tx, id, scheduledFor);
  return { began: false, skipped: true };
}

// Begins a run whose requests the workers share: the run, its work and what it makes due are one transaction.

export type NewQueuedRun = {
  readonly job: ExportJob;
  readonly trigger: RunTrigger;
  /** The moment of its schedule; undefined where a gap or a person began it. */
  readonly scheduledFor: Date | undefined;
  readonly plan: ExportPlan;
};

export type QueuedRun = { readonly runId: string; readonly requests: number };

/** Undefined where there is a run for that moment already. What another run is reading is left to it. */
export async function enqueueRun(
  tx: Tx,
  { queue, ids }: { readonly queue: Queue; readonly ids: SeriesIds },
  { job, trigger, scheduledFor, plan }: NewQueuedRun,
): Promise<QueuedRun | undefined> {
  const runId = randomUUID();
  const run = { runId, kind: "export", job: job.name, trigger, scheduledFor, status: "running" } as const;
  if (!(await insertRun(tx, run))) return undefined;
  const { requests, runDay, due } = plan;
  const seriesIds = new Set(requests.map(({ series }) => seriesIdOf(ids, series)));
  if (due) await extendDue(tx, [...seriesIds], due);
  const fetchNo = await takeFetchNo(tx);
  const works = requests.map((request) => {
    const { series, window } = request;
    const data: QueuedRequest = {
      ...{ runId, fetchNo, runDay, job: job.name, seriesId: seriesIdOf(ids, series) },
      ...{ emptyGuard: job.emptyGuard, cliffGuard: job.cliffGuard },
      ...{ checkFeatures: job.checkFeatures, undated: job.undated },
      ...series,
      ...(window && { window }),
    };
    return { key: requestKey(data), priority: priorityOf(data), data, request };
  });
  const added = await queue.add(tx, "usage_request", works);
  await recordQueuedRequests(tx, runId, {
    requests: added.length,
    slices: totalSliceCount(added.map(({ request }) => request)),
  });
  return { runId, requests: added.length };
}

// Hands a backfill to the workers that run: they share its requests as those of any other run, after what is newer.

export type QueuedBackfill = QueuedRun & { readonly job: string };

/** A run a job. What waits for the workers already, or is with one, is not asked for again. */
export async function enqueueBackfill(
  app: App,
  config: Config,
  db: Database,
  plans: readonly BackfillPlan[],
): Promise<readonly QueuedBackfill[]> {
  const ids = await registerSeries(db, configuredSeries(config.exports));
  const queue = await openQueue(db, app.log);
  try {
    const enqueued: QueuedBackfill[] = [];
    for (const { job, plan } of plans) {
      const run = { job, trigger: "backfill", scheduledFor: undefined, plan } as const;
      const shared = await inTransaction(db, (tx) => enqueueRun(tx, { queue, ids }, run));
      if (shared) enqueued.push({ job: job.name, ...shared });
    }
    return enqueued;
  } finally {
    await queue.stop();
  }
}

// A usage request as it waits in the queue: all that its work needs, so that a worker with another configuration does the same.

const Text = z.string();

const QueuedRequest = z.object({
  runId: Text,
  job: Text,
  seriesId: z.int(),
  /** A number taken before the run was begun: a slice with a higher one was read since. */
  fetchNo: z.number(),
  /** The day on which the run was planned. */
  runDay: Text,
  emptyGuard: z.enum(GUARD_MODES),
  /** Missing in requests that an earlier version queued. */
  cliffGuard: z.enum(GUARD_MODES).default("confirm"),
  checkFeatures: z.enum(FEATURE_CHECKS),
  /** Missing in requests of an older version. */
  undated: z.enum(UNDATED).default("snapshot"),
  project: z.object({ id: Text, name: Text }),
  grouping: z.enum(GROUPINGS),
  filter: z.object({
    name: Text,
    features: z.record(Text, Text),
    dimensions: z.partialRecord(z.enum(DIMENSIONS), Text),
  }),
  window: z.object({ start: Text, end: Text }).optional(),
});

export type QueuedRequest = z.output<typeof QueuedRequest>;

export function parseQueuedRequest(data: unknown): QueuedRequest {
  return QueuedRequest.parse(data);
}

export function requestOf({ project, grouping, filter, window }: QueuedRequest): UsageRequest {
  return { series: { project, grouping, filter }, window };
}

/** Two requests for the same days of a series are the same work, whichever run wants them. */
function requestKey({ seriesId, window }: Pick<QueuedRequest, "seriesId" | "window">): string {
  return window ? `${seriesId} ${window.start} ${window.end}` : `${seriesId}`;
}

/** The newest days first: what people look at, and the nightly run before a backfill. */
function priorityOf({ window, runDay }: Pick<QueuedRequest, "window" | "runDay">): number {
  const day: Day = window?.end ?? runDay;
  return Math.floor(startOfDay(day).getTime() / DAY_MS);
}

// Reports that a run ended: in the metrics, and in the log or, on a terminal, in a line for a person.

export type EndedRun = {
  readonly kind: "export" | "rotation";
  readonly job: string;
  readonly trigger: string;
  readonly status: string;
  readonly runId?: string;
  readonly seconds?: number;
  /** The first error of the run. */
  readonly error?: string | null | undefined;
  /** Set for an export. */
  readonly counts?: RunCounts;
  /** Set for a rotation: its actions, in order. */
  readonly did?: readonly string[];
};

export function reportRunEnd({ app, metrics }: Pick<WorkerContext, "app" | "metrics">, run: EndedRun): void {
  metrics.runEnded(run);
  if (app.terminal) {
    app.write(`${runLine(run, new Date())}\n`);
    return;
  }
  const { counts, error, ...rest } = run;
  const facts = { ...rest, ...counts, ...(error != null && { error }) };
  if (run.status === "ok") app.log.info(facts, "run finished");
  else app.log.warn(facts, run.status === "skipped" ? "run skipped" : "run finished");
}

export function runLine({ kind, job, trigger, status, seconds, error, counts, did = [] }: EndedRun, at: Date): string {
  const parts = [
    ...(counts ? countParts(counts) : did),
    ...(seconds === undefined ? [] : [seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`]),
  ];
  const reason = error == null ? "" : `: ${error}`;
  const moment = at.toISOString().slice(0, 19).replace("T", " ");
  return `${moment} UTC ${kind} ${job} (${trigger}) ${[status, ...parts].join(", ")}${reason}`;
}

function countParts(counts: RunCounts): readonly string[] {
  const { requests, planned, complete, suspect, failed, undated, stale, rowsChanged } = counts;
  return [
    counted(requests, "request"),
    `${complete} of ${planned} slices complete`,
    ...(suspect > 0 ? [`${suspect} suspect`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(undated > 0 ? [`${undated} undated`] : []),
    ...(stale > 0 ? [`${stale} stale`] : []),
    `${counted(rowsChanged, "row")} changed`,
  ];
}
