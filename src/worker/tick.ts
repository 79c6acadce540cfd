// A tick: one pass of planning over all jobs. It ends runs that lost their queue jobs, and starts runs for due scheduled times and missing
// days. A lock on the job's row keeps workers that tick at the same time from planning a job twice.

import { randomUUID } from "node:crypto";
import { keyName } from "../config/projects.ts";
import { isConnectionError } from "../db/connection/errors.ts";
import type { Tx } from "../db/connection/transaction.ts";
import type { JobId } from "../db/jobs/jobs.ts";
import { endRunsWithoutJobs, insertQueuedRun, type RunProject } from "../db/jobs/runs.ts";
import { dueSlices, incompleteSeries } from "../db/usage/coverage.ts";
import { extendDue, registerSeries, seriesIdOf } from "../db/usage/series.ts";
import { errorCode, errorText } from "../errors.ts";
import { warnOfLeftOut, withSeenValues } from "../jobs/discovery.ts";
import { nextOccurrence } from "../schedule/cron.ts";
import { isDueForRetry } from "../usage/backfill.ts";
import type { RunTrigger } from "../usage/counts.ts";
import { addDays, dayOf } from "../usage/days.ts";
import { configuredSeries, dueDays, type ExportJob, seriesOf, sliceCount, windowOf } from "../usage/plan.ts";
import type { Series } from "../usage/series.ts";
import type { WorkerContext } from "./context.ts";
import type { ProjectJob } from "./handle-project.ts";
import { rotationsToPlan, tickRotation } from "./rotation.ts";
import { NOTHING_DUE, reportRunEnd, type TickOutcome, tickJob } from "./runs.ts";

/** A failure of one job does not affect the others. Throws only if the database can't be reached. */
export async function tick(context: WorkerContext): Promise<TickOutcome> {
  const { exports } = context.config;
  // Before anything is planned: such a run keeps the next one from being started.
  for (const end of await endRunsWithoutJobs(context.db)) reportRunEnd(context, { ...end, kind: "export" });
  const outcomes: TickOutcome[] = [];
  for (const job of exports) {
    outcomes.push(await tickSafely(context, "export", job.name, () => tickExport(context, job)));
  }
  for (const job of await rotationsToPlan(context)) {
    outcomes.push(await tickSafely(context, "rotation", job.name, () => tickRotation(context, job)));
  }
  return { started: outcomes.some(({ started }) => started) };
}

/** The context with the values of fan-outs as stored usage has them now: a run may have brought new ones since the last tick. */
export async function withCurrentValues(opened: WorkerContext): Promise<WorkerContext> {
  const { app, config: configured, db } = opened;
  try {
    const config = await withSeenValues(configured, db);
    if (config === configured) return opened;
    return { ...opened, config, ids: await registerSeries(db, configuredSeries(config.exports)) };
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
    return await tickOne();
  } catch (error) {
    if (isConnectionError(error)) throw error;
    context.app.log.error({ kind, job, code: errorCode(error), reason: errorText(error) }, "tick failed");
    return NOTHING_DUE;
  }
}

async function tickExport(context: WorkerContext, job: ExportJob): Promise<TickOutcome> {
  let memo: ReadonlyMap<number, Series> | undefined;
  // Tens of thousands, and at most ticks nothing is due.
  const series = () => (memo ??= new Map(seriesOf(job).map((one) => [seriesIdOf(context.ids, one), one])));
  return tickJob(
    context.db,
    { ...job, kind: "export" },
    {
      async start(tx, { trigger, scheduledFor }, now) {
        warnOfLeftOut(context.app.log, job);
        const today = dayOf(now);
        const due = dueDays(job, today) ?? { through: addDays(today, -1) };
        await extendDue(tx, [...series().keys()], { ...due, nextAt: nextOccurrence(job, now) });
        const planned = Map.groupBy(series().values(), ({ project }) => project.id);
        const slices = sliceCount({ window: windowOf(job, today) });
        const projects = job.projects.map(({ id }) => ({
          ...{ projectId: id, planned: slices * (planned.get(id)?.length ?? 0) },
        }));
        return startRun(tx, context, job, { trigger, scheduledFor, projects });
      },
      async idle(tx, now) {
        const incomplete = job.window ? await incompleteSeries(tx) : [];
        if (incomplete.length === 0) return NOTHING_DUE;
        const own = incomplete.filter((id) => series().has(id));
        const due = (await dueSlices(tx, own)).filter((slice) => isDueForRetry(slice, now));
        const gaps = Map.groupBy(due, ({ seriesId }) => series().get(seriesId)?.project.id ?? "");
        if (gaps.size === 0) return NOTHING_DUE;
        const projects = [...gaps].map(([projectId, slices]) => ({ projectId, planned: slices.length }));
        return startRun(tx, context, job, { trigger: "catchup", scheduledFor: undefined, projects });
      },
    },
  );
}

type RunStart = {
  readonly trigger: RunTrigger;
  /** The scheduled time; undefined if missing days caused the run. */
  readonly scheduledFor: Date | undefined;
  readonly projects: readonly RunProject[];
};

/** Stores the run and its queue jobs, one for each project. Nothing if that scheduled time has a run already. */
async function startRun(
  tx: Tx,
  { app, config, queue }: WorkerContext,
  job: ExportJob,
  { trigger, scheduledFor, projects }: RunStart,
): Promise<TickOutcome> {
  const runId = randomUUID();
  const run = { runId, kind: "export", job: job.name, trigger, scheduledFor } as const;
  if (!(await insertQueuedRun(tx, run, projects))) return NOTHING_DUE;
  const keys = new Map(config.projects.map(({ id, key }) => [id, keyName(key)]));
  const jobs = projects.map(({ projectId }) => {
    const data: ProjectJob = { runId, projectId };
    // A scheduled run comes before one of missing days: people look at the newest days.
    return { data, priority: scheduledFor ? 1 : 0, group: { id: keys.get(projectId) ?? projectId } };
  });
  await queue.add(tx, "export", jobs);
  app.log.info({ job: job.name, runId, projects: projects.length, trigger, scheduledFor }, "run started");
  return { started: true };
}
