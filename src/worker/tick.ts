// A tick: one pass of planning over all jobs. It ends runs that lost their queue jobs, starts runs for due scheduled times and missing
// days, and adds their queue jobs. A lock on the job's row keeps workers that tick at the same time from planning a job twice.

import { isConnectionError } from "../db/connection/errors.ts";
import type { Tx } from "../db/connection/transaction.ts";
import type { JobId } from "../db/jobs/jobs.ts";
import { endRunsWithoutJobs } from "../db/jobs/runs.ts";
import { dueSlices, incompleteSeries } from "../db/usage/coverage.ts";
import { markNextDue, registerIfChanged, seriesIdOf } from "../db/usage/series.ts";
import { errorCode, errorText } from "../errors.ts";
import { recoverFromClockSetBack } from "../jobs/clocks.ts";
import { warnOfLeftOut, withSeenValues } from "../jobs/seen-values.ts";
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
import { renewDueTimes, type WorkerContext } from "./context.ts";
import { rotationsToPlan, tickRotation } from "./rotation.ts";
import {
  enqueueRun,
  type NewQueuedRun,
  NOTHING_DUE,
  reportRunEnd,
  STILL_RUNNING_REASON,
  type TickOutcome,
  tickJob,
} from "./runs.ts";

/** A failure of one job does not affect the others. Throws only if the database can't be reached. */
export async function tick(opened: WorkerContext): Promise<TickOutcome> {
  const context = await withCurrentValues(opened);
  const { exports } = context.config;
  // The stored due times were computed before the clock was set back.
  if (await recoverFromClockSetBack(context.app, context.db)) await renewDueTimes(context);
  // Before anything is planned: a run without queue jobs keeps its requests from being queued for another run.
  for (const end of await endRunsWithoutJobs(context.db)) reportRunEnd(context, { ...end, kind: "export" });
  const outcomes: TickOutcome[] = [];
  for (const job of exports) {
    outcomes.push(await tickSafely(context, "export", job.name, () => tickExport(context, job)));
  }
  for (const job of await rotationsToPlan(context)) {
    outcomes.push(await tickSafely(context, "rotation", job.name, () => tickRotation(context, job)));
  }
  const waits = outcomes.flatMap(({ wakeInMs }) => wakeInMs ?? []);
  return {
    started: outcomes.some(({ started }) => started),
    ...(waits.length > 0 && { wakeInMs: Math.min(...waits) }),
  };
}

/** The context with the values of fan-outs as stored usage has them now: a run may have brought new ones since the last tick. */
async function withCurrentValues(opened: WorkerContext): Promise<WorkerContext> {
  const { app, config: configured, db } = opened;
  try {
    const config = await withSeenValues(configured, db);
    if (config === configured) return opened;
    const { ids, isChanged } = await registerIfChanged(db, configuredSeries(config.exports));
    const context = { ...opened, config, ids };
    if (isChanged) await renewDueTimes(context);
    return context;
  } catch (error) {
    if (isConnectionError(error)) throw error;
    app.log.error({ code: errorCode(error), reason: errorText(error) }, "the values of fan-out filters were not read");
    return opened;
  }
}

async function tickSafely(
  context: WorkerContext,
  kind: JobId["kind"],
  job: string,
  tickOne: () => Promise<TickOutcome>,
): Promise<TickOutcome> {
  try {
    const outcome = await tickOne();
    if (outcome.skipped) {
      reportRunEnd(context, { kind, job, trigger: "schedule", status: "skipped", error: STILL_RUNNING_REASON });
    }
    return outcome;
  } catch (error) {
    if (isConnectionError(error)) throw error;
    context.app.log.error({ kind, job, code: errorCode(error), reason: errorText(error) }, "tick failed");
    return NOTHING_DUE;
  }
}

async function tickExport(context: WorkerContext, job: ExportJob): Promise<TickOutcome> {
  return tickJob(
    context.db,
    { ...job, kind: "export" },
    {
      async start(tx, { trigger, scheduledFor }, now) {
        warnOfLeftOut(context.app.log, job);
        const planned = planRun(job, dayOf(now));
        const gaps = await gapRequests(tx, context, job, now, planned.due);
        const plan = { ...planned, requests: [...planned.requests, ...gaps] };
        const outcome = await startRun(tx, context, { job, trigger, scheduledFor, plan });
        // This comes last: missed days count as due only while the stored due time is in the past.
        await markNextDue(tx, nextDueOf(seriesOf(job), context.ids, context.config.exports, now));
        return outcome;
      },
      async idle(tx, now) {
        const requests = await gapRequests(tx, context, job, now, undefined);
        if (requests.length === 0) return NOTHING_DUE;
        const plan = { requests, runDay: dayOf(now), due: undefined };
        return startRun(tx, context, { job, trigger: "catchup", scheduledFor: undefined, plan });
      },
    },
  );
}

async function startRun(tx: Tx, context: WorkerContext, run: NewQueuedRun): Promise<TickOutcome> {
  const queued = await enqueueRun(tx, context, run);
  if (!queued) return NOTHING_DUE;
  const { job, trigger, scheduledFor } = run;
  context.app.log.info({ job: job.name, ...queued, trigger, scheduledFor }, "run started");
  return { started: true };
}

/**
 * Requests for due days that are missing or to be read again, except those that `planned` reads anyway. Without a window there are
 * none: the service chooses the days.
 */
async function gapRequests(
  tx: Tx,
  { ids }: WorkerContext,
  job: ExportJob,
  now: Date,
  planned: ExportPlan["due"],
): Promise<UsageRequest[]> {
  if (!job.window) return [];
  const incomplete = new Set(await incompleteSeries(tx));
  if (incomplete.size === 0) return [];
  const series = new Map(
    seriesOf(job)
      .map((one) => [seriesIdOf(ids, one), one] as const)
      .filter(([id]) => incomplete.has(id)),
  );
  const slices = await dueSlices(tx, [...series.keys()]);
  const gaps = slices.filter(
    (slice) => isDueForRetry(slice, now) && (planned === undefined || slice.day < planned.oldest.start),
  );
  const bySeries = Map.groupBy(gaps, ({ seriesId }) => seriesId);
  return [...series].flatMap(([id, one]) => {
    const days = (bySeries.get(id) ?? []).map(({ day }) => day);
    return requestsOfDays(one, days);
  });
}
