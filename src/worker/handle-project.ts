// Handles a queue job: brings the days of one project up to date for one run. What is left to read is in coverage alone, so that a worker
// that takes the job over asks for nothing that is stored.

import { z } from "zod";
import type { ClaimedJob } from "../db/jobs/queue.ts";
import { type OpenProject, openProject, type ProjectEnd, recordAttempt } from "../db/jobs/runs.ts";
import { hasVanished } from "../db/projects.ts";
import { type SettledSlice, settledSlices } from "../db/usage/coverage.ts";
import { seriesIdOf } from "../db/usage/series.ts";
import { AppError } from "../errors.ts";
import { daysToReread, exportProject, readProjectFacts } from "../jobs/export.ts";
import { isDueInRun, RETRIED_CODES } from "../usage/backfill.ts";
import { addCounts, NO_COUNTS, type RunCounts } from "../usage/counts.ts";
import { type Day, dayOf } from "../usage/days.ts";
import { describeRequest, type ExportJob, planRun, seriesOf, type UsageRequest, windowOf } from "../usage/plan.ts";
import type { Series } from "../usage/series.ts";
import type { WorkerContext } from "./context.ts";
import { reportRunEnd } from "./runs.ts";

const ProjectJob = z.object({ runId: z.string(), projectId: z.string() });

export type ProjectJob = z.output<typeof ProjectJob>;

export type ProjectDeps = {
  /** Aborted when the worker stops: requests that were started are completed, and the job goes back to the queue. */
  readonly stopping: AbortSignal;
  /** Called for a project that is not in the configuration: another worker, which planned the run, may have a newer one. */
  readonly onUnknownProject: () => void;
};

/** Throws if the job is to be tried again. */
export async function handleProject(context: WorkerContext, deps: ProjectDeps, claimed: ClaimedJob): Promise<void> {
  const { db, config } = context;
  const { runId, projectId } = ProjectJob.parse(claimed.data);
  const run = await openProject(db, runId, projectId);
  if (!run) return;
  // A key that was refused may have been given the right since then.
  context.service.forgetAuthFailures();
  const job = config.exports.find(({ name }) => name === run.job);
  const project = job?.projects.find(({ id }) => id === projectId);
  const isLast = claimed.retryCount >= claimed.retryLimit;
  if (!job || !project) {
    const isGone = await hasVanished(db, projectId);
    deps.onUnknownProject();
    const reason = `project ${projectId} of export ${run.job} is not in the configuration of the worker that has it`;
    if (!isGone && !isLast) throw new AppError("config", reason);
    await end(context, { runId, projectId, counts: NO_COUNTS, error: isGone ? undefined : reason });
    return;
  }
  const plan = await planOf(context, { ...job, projects: [project] }, run);
  const log = context.app.log.child({ job: job.name, runId });
  const result = await exportProject(context, {
    ...{ runId, job, requests: plan.requests, runDay: plan.runDay, log },
    stopStarting: AbortSignal.any([deps.stopping, claimed.signal]),
    isRetried: (code) => !isLast && RETRIED_CODES.includes(code),
  });
  const retried = isLast ? undefined : result.failures.find(({ code }) => RETRIED_CODES.includes(code));
  const isStopped = result.requests < plan.requests.length;
  if (isStopped || retried) {
    await recordAttempt(db, runId, projectId, result);
    if (!retried) throw new AppError("stopped", "the worker stops");
    const { request, reason, code } = retried;
    const attempt = { attempt: claimed.retryCount + 1, attempts: claimed.retryLimit + 1 };
    log.warn({ code, reason, ...describeRequest(request), ...attempt }, "requests failed, to be tried again");
    throw new AppError("unavailable", reason);
  }
  const isAllowed = result.failures.length < result.requests;
  const counts = addCounts(plan.settled, result);
  const error = result.failures[0]?.reason;
  await end(context, { runId, projectId, counts, error, allowed: isAllowed ? job.source : undefined });
  if (isAllowed) await readProjectFacts(context, project, job.source);
}

async function end(context: WorkerContext, { error, ...project }: ProjectEnd): Promise<void> {
  const ended = await context.writer.endProject({ ...project, error: error && context.app.scrubber.scrub(error) });
  if (ended) reportRunEnd(context, { ...ended, kind: "export" });
}

type ProjectPlan = {
  readonly requests: readonly UsageRequest[];
  readonly runDay: Day;
  /** The slices of the window that earlier attempts of this run have read, or another run since it began. */
  readonly settled: RunCounts;
};

/** `job` has one project. */
async function planOf(
  { db, ids }: WorkerContext,
  job: ExportJob,
  { scheduledFor, startedAt, fetchNo }: OpenProject,
): Promise<ProjectPlan> {
  const runDay = dayOf(startedAt);
  const seriesIds = seriesOf(job).map((series) => seriesIdOf(ids, series));
  const since = { fetchNo, startedAt, retriedCodes: RETRIED_CODES };
  const settled = scheduledFor ? await settledSlices(db, seriesIds, windowOf(job, runDay), since) : [];
  const toReread = await daysToReread({ db, ids }, job, (slice) => isDueInRun(slice, startedAt));
  const settledKeys = new Set(settled.map(({ seriesId, day }) => `${seriesId} ${day ?? ""}`));
  const isSettled = (series: Series, day: Day | undefined) =>
    settledKeys.has(`${seriesIdOf(ids, series)} ${day ?? ""}`);
  const requests = planRun(job, runDay, {}, { isSettled, toReread, readsWindow: scheduledFor !== undefined }).requests;
  return { requests, runDay, settled: settled.reduce(addSettled, { ...NO_COUNTS, planned: 0 }) };
}

function addSettled(counts: RunCounts, { status }: SettledSlice): RunCounts {
  return addCounts(counts, { ...NO_COUNTS, planned: 1, [status === "missing" ? "failed" : status]: 1 });
}
