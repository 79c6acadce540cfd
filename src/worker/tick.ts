// A tick: one pass of planning over all jobs. Ends runs that lost their queue jobs. Starts runs at scheduled times, for due days to read again,
// and for new projects of a rotation. A lock on the job's row keeps workers that tick at the same time from planning a job twice.

import { randomUUID } from "node:crypto";
import { type ConfiguredJob, jobsOf } from "../config/config.ts";
import { keyName } from "../config/projects.ts";
import type { RotationConfig } from "../config/rotations.ts";
import { databaseNow } from "../db/connection/database.ts";
import { isConnectionError } from "../db/connection/errors.ts";
import { inTransaction, type Tx } from "../db/connection/transaction.ts";
import { type JobId, lockJob, markScheduled } from "../db/jobs/jobs.ts";
import {
  endRunsWithoutJobs,
  insertRun,
  type NewRun,
  type ProjectJob,
  type RunProject,
  runningOrUnconfiguredProjects,
  runningRuns,
} from "../db/jobs/runs.ts";
import { begunRotations } from "../db/keys/lease.ts";
import { dueSlices, incompleteSeries } from "../db/usage/due-slices.ts";
import { extendDue, registerSeries, type SeriesIds, seriesIdOf } from "../db/usage/stored-series.ts";
import { errorCode, errorText } from "../errors.ts";
import { warnOfValuesLeftOut, withFanOutFilters } from "../jobs/fan-outs.ts";
import { nextOccurrence, planTick } from "../schedule/schedule.ts";
import { dayOf } from "../usage/days.ts";
import {
  configuredSeries,
  dueDays,
  type ExportJob,
  isDueForRetry,
  seriesOf,
  sliceCount,
  windowOf,
} from "../usage/export-plan.ts";
import { reportRunEnd } from "./handle-project.ts";
import type { WorkerContext } from "./worker-context.ts";

/** Returns whether a run was started. If a job fails, the others go on. Throws if the database is away or runs without queue jobs can't be ended. */
export async function tick(context: WorkerContext): Promise<boolean> {
  // Before anything is planned, because a run without queue jobs would keep the next run from being started.
  for (const end of await endRunsWithoutJobs(context.db)) reportRunEnd(context, end);
  // Read once for all exports: with many series this is the slowest statement of a tick.
  let incomplete: readonly number[] | undefined;
  const readIncomplete = async (tx: Tx) => (incomplete ??= await incompleteSeries(tx));
  let isAnyStarted = false;
  for (const job of jobsOf(context.config)) {
    try {
      if (await tickJob(context, job, readIncomplete)) isAnyStarted = true;
    } catch (error) {
      if (isConnectionError(error)) throw error;
      const { kind, name } = job;
      context.app.log.error({ kind, job: name, code: errorCode(error), reason: errorText(error) }, "tick failed");
    }
  }
  return isAnyStarted;
}

/** The context with the fan-outs' values found in stored usage now: a run may have added some since the last tick. */
export async function withCurrentValues(opened: WorkerContext): Promise<WorkerContext> {
  const { app, config: configured, db } = opened;
  try {
    const config = await withFanOutFilters(configured, db);
    if (config === configured) return opened;
    return { ...opened, config, ids: await registerSeries(db, configuredSeries(config.exports)) };
  } catch (error) {
    if (isConnectionError(error)) throw error;
    app.log.error({ code: errorCode(error), reason: errorText(error) }, "the values of fan-out filters were not read");
    return opened;
  }
}

/** Decides under a lock whether the job runs now, and starts the run in the same transaction. Returns whether it started one. */
async function tickJob(context: WorkerContext, job: ConfiguredJob, readIncomplete: typeof incompleteSeries) {
  const now = await databaseNow(context.db);
  return inTransaction(context.db, async (tx) => {
    const stored = await lockJob(tx, job);
    const runs = await runningRuns(tx, job);
    // A scheduled run does not wait for a person's export or backfill.
    const isRunning = runs.some(({ trigger }) => trigger === "schedule" || trigger === "catchup");
    const due = planTick(job, stored, isRunning, now);
    if (due) {
      const projects =
        job.kind === "export" ? await makeDaysDue(tx, context, job, now) : job.rotations.map(toRunProject);
      const isStarted = await queueRun(tx, context, job, due, projects);
      await markScheduled(tx, job, due.scheduledFor);
      return isStarted;
    }
    // A paused job does not catch up. An export with a run in progress may already be reading what is missing.
    if (stored.pause || (job.kind === "export" && runs.length > 0)) return false;
    const wanted =
      job.kind === "rotation"
        ? await projectsToBegin(tx, job)
        : await projectsWithGaps(tx, context.ids, job, job.window ? await readIncomplete(tx) : [], now);
    if (wanted.length === 0) return false;
    const excluded = await runningOrUnconfiguredProjects(tx, job);
    const projects = wanted.filter(({ projectId }) => !excluded.has(projectId));
    return projects.length > 0 && queueRun(tx, context, job, { trigger: "catchup", scheduledFor: undefined }, projects);
  });
}

/** Makes the days of the scheduled run due, and from its next time on each day as soon as it is over. Returns the projects of the run. */
async function makeDaysDue(tx: Tx, { app, ids }: WorkerContext, job: ExportJob, now: Date): Promise<RunProject[]> {
  warnOfValuesLeftOut(app.log, job);
  const today = dayOf(now);
  const series = seriesOf(job);
  const seriesIds = series.map((one) => seriesIdOf(ids, one));
  await extendDue(tx, seriesIds, dueDays(job, today), nextOccurrence(job, now));
  const seriesByProject = Map.groupBy(series, ({ project }) => project.id);
  const slices = sliceCount({ window: windowOf(job, today) });
  return job.projects.map(({ id }) => ({ projectId: id, planned: slices * (seriesByProject.get(id)?.length ?? 0) }));
}

/** The projects with due days to read again now. Without a window there are none, as the service chooses the days of each answer. */
async function projectsWithGaps(tx: Tx, ids: SeriesIds, job: ExportJob, incomplete: readonly number[], now: Date) {
  // Most ticks end here, before they list the job's series, of which there may be tens of thousands.
  if (incomplete.length === 0) return [];
  const series = new Map(seriesOf(job).map((one) => [seriesIdOf(ids, one), one]));
  const incompleteOfJob = incomplete.filter((id) => series.has(id));
  const due = (await dueSlices(tx, incompleteOfJob)).filter((slice) => isDueForRetry(slice, now));
  const gaps = Map.groupBy(due, ({ seriesId }) => series.get(seriesId)?.project.id ?? "");
  return [...gaps].map(([projectId, slices]) => ({ projectId, planned: slices.length }));
}

/** In a rotation for many projects, those whose key no process has begun to rotate: a new project does not wait for the next scheduled time. */
async function projectsToBegin(tx: Tx, { isForMany, rotations }: Extract<ConfiguredJob, { kind: "rotation" }>) {
  if (!isForMany || rotations.length === 0) return [];
  const names = rotations.map(({ name }) => name);
  const begun = await begunRotations(tx, names);
  return rotations.filter(({ name }) => !begun.has(name)).map(toRunProject);
}

/** A rotation reads no slices. */
function toRunProject({ project }: RotationConfig): RunProject {
  return { projectId: project.id, planned: 0 };
}

/** Stores the run and its queue jobs, one for each project. False if the scheduled time has a run already. */
async function queueRun(
  tx: Tx,
  { app, config, queue }: WorkerContext,
  { kind, name }: JobId,
  { trigger, scheduledFor }: Pick<NewRun, "trigger" | "scheduledFor">,
  projects: readonly RunProject[],
): Promise<boolean> {
  const runId = randomUUID();
  if (!(await insertRun(tx, { runId, kind, job: name, trigger, scheduledFor }, projects))) return false;
  const keys = new Map(config.projects.map(({ id, key }) => [id, keyName(key)]));
  const jobs = projects.map(({ projectId }) => {
    const data: ProjectJob = { runId, projectId };
    // Projects with the same key are one group of pg-boss: the queue limits how many of them run at once.
    // A scheduled run comes before a catch-up run, because people look at the newest days.
    return { data, priority: scheduledFor ? 1 : 0, group: { id: keys.get(projectId) ?? projectId } };
  });
  await queue.add(tx, kind, jobs);
  app.log.info({ kind, job: name, runId, projects: projects.length, trigger, scheduledFor }, "run started");
  return true;
}
