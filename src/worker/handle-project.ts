// Handles a queue job, which is one project of a run: rotates its key, or brings its days up to date. What is left to read is in coverage
// alone, so that a worker that takes the job over asks for nothing that is stored.

import { z } from "zod";
import { jobNameOf, type RotationConfig } from "../config/rotations.ts";
import type { ClaimedJob } from "../db/jobs/queue.ts";
import { type OpenProject, openProject, recordAttempt } from "../db/jobs/runs.ts";
import { hasVanished } from "../db/projects.ts";
import { type SettledSlice, settledSlices } from "../db/usage/due-slices.ts";
import { seriesIdOf } from "../db/usage/stored-series.ts";
import { AppError, errorCode, errorText } from "../errors.ts";
import { daysToReread, exportProject, readProjectFacts } from "../jobs/export.ts";
import { rotateKey, withRotationLease } from "../jobs/rotation.ts";
import { isDueInRun, RETRIED_CODES } from "../usage/backfill.ts";
import { addCounts, NO_COUNTS, type RunCounts } from "../usage/counts.ts";
import { type Day, dayOf } from "../usage/days.ts";
import { describeRequest, type ExportJob, planRun, seriesOf, type UsageRequest, windowOf } from "../usage/plan.ts";
import type { Series } from "../usage/series.ts";
import type { WorkerContext } from "./context.ts";
import { endProject, reportRunEnd } from "./runs.ts";

const ProjectJob = z.object({ runId: z.string(), projectId: z.string() });

export type ProjectJob = z.output<typeof ProjectJob>;

export type ProjectDeps = {
  /** Aborted when the worker stops: requests that were started are completed, and the job goes back to the queue. */
  readonly stopping: AbortSignal;
  /** Called for a project that is not in the configuration: another worker, which planned the run, may have a newer one. */
  readonly onUnknownProject: () => void;
  /** Whether this process has worked on no project of the run before. */
  readonly isNewRun: (runId: string) => boolean;
};

/** Throws if the job is to be tried again. */
export async function handleProject(context: WorkerContext, deps: ProjectDeps, claimed: ClaimedJob): Promise<void> {
  const { runId, projectId } = ProjectJob.parse(claimed.data);
  const run = await openProject(context.db, runId, projectId);
  if (!run) return;
  // A key that was refused in an earlier run may have been given the right since.
  if (deps.isNewRun(runId)) context.service.forgetRefusals();
  const { exports, rotations } = context.config;
  if (run.kind === "rotation") {
    const rotation = rotations.find((one) => jobNameOf(one) === run.job && one.project.id === projectId);
    return rotation ? rotateProject(context, rotation, run) : leaveToOthers(context, deps, claimed, run);
  }
  const job = exports.find(({ name }) => name === run.job);
  const project = job?.projects.find(({ id }) => id === projectId);
  return job && project
    ? readProject(context, deps, claimed, run, { ...job, projects: [project] })
    : leaveToOthers(context, deps, claimed, run);
}

function isLastAttempt({ retryCount, retryLimit }: ClaimedJob): boolean {
  return retryCount >= retryLimit;
}

/** Another worker may have a newer configuration, which has the project. */
async function leaveToOthers(
  context: WorkerContext,
  { onUnknownProject }: ProjectDeps,
  claimed: ClaimedJob,
  { runId, projectId, kind, job }: OpenProject,
): Promise<void> {
  const isGone = await hasVanished(context.db, projectId);
  onUnknownProject();
  const reason = `project ${projectId} of ${kind} ${job} is not in the configuration of the worker that has it`;
  if (!isGone && !isLastAttempt(claimed)) throw new AppError("config", reason);
  await endProject(context, { runId, projectId, counts: NO_COUNTS, error: isGone ? undefined : reason });
}

/**
 * A rotation that fails is not repeated before its next scheduled time, because each repeated create could make another key. If the attempt
 * could not be finished, this throws, and the worker that claims the queue job next continues from the ledger.
 */
async function rotateProject(context: WorkerContext, rotation: RotationConfig, run: OpenProject): Promise<void> {
  const { app, db } = context;
  const { runId, projectId, kind, trigger } = run;
  await withRotationLease(context, rotation, async (lease) => {
    // The queue may have delivered the job twice, and the other worker may have ended the project while this one waited for the lease.
    if (!(await openProject(db, runId, projectId))) return;
    const { did, errors } = await rotateKey(context, rotation, lease).catch((error: unknown) => {
      app.signal.throwIfAborted();
      if (!(error instanceof AppError) || error.code === "database" || error.code === "stopped") throw error;
      const reason = errorText(error);
      app.log.error({ rotation: rotation.name, code: errorCode(error), reason }, "rotation failed");
      return { did: [], errors: [reason] };
    });
    const [error] = errors;
    const status = error === undefined ? "ok" : "failed";
    const scrubbed = error === undefined ? null : app.scrubber.scrub(error);
    reportRunEnd(context, { runId, kind, trigger, job: rotation.name, status, did, error: scrubbed });
    await endProject(context, { runId, projectId, counts: NO_COUNTS, error });
  });
}

/** `job` has one project. */
async function readProject(
  context: WorkerContext,
  { stopping }: ProjectDeps,
  claimed: ClaimedJob,
  run: OpenProject,
  job: ExportJob,
): Promise<void> {
  const { runId, projectId } = run;
  const plan = await planOf(context, job, run);
  const log = context.app.log.child({ job: job.name, runId });
  const isLast = isLastAttempt(claimed);
  const result = await exportProject(context, {
    ...{ runId, job, requests: plan.requests, runDay: plan.runDay, log },
    stopStarting: AbortSignal.any([stopping, claimed.signal]),
    isRetried: (code) => !isLast && RETRIED_CODES.includes(code),
  });
  const retried = isLast ? undefined : result.failures.find(({ code }) => RETRIED_CODES.includes(code));
  const isStopped = result.requests < plan.requests.length;
  if (isStopped || retried) {
    await recordAttempt(context.db, runId, projectId, result);
    if (!retried) throw new AppError("stopped", "the worker stops");
    const { request, reason, code } = retried;
    const attempt = { attempt: claimed.retryCount + 1, attempts: claimed.retryLimit + 1 };
    log.warn({ code, reason, ...describeRequest(request), ...attempt }, "requests failed, to be tried again");
    throw new AppError("unavailable", reason);
  }
  const counts = addCounts(plan.settled, result);
  const { allowed } = result;
  await endProject(context, { runId, projectId, counts, error: result.failures[0]?.reason, allowed });
  const [project] = job.projects;
  if (project && allowed) await readProjectFacts(context, project, allowed);
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
  const requests = planRun(job, runDay, {}, { isSettled, toReread, readsWindow: scheduledFor !== null }).requests;
  return { requests, runDay, settled: settled.reduce(addSettled, { ...NO_COUNTS, planned: 0 }) };
}

function addSettled(counts: RunCounts, { status }: SettledSlice): RunCounts {
  return addCounts(counts, { ...NO_COUNTS, planned: 1, [status === "missing" ? "failed" : status]: 1 });
}
