// Handles a queue job, which is one project of a run: rotates its key, or reads its due days. Coverage says which days are due, so a worker
// that takes the job over does not read again what is stored.

import { jobNameOf, type RotationConfig } from "../config/rotations.ts";
import type { ClaimedJob } from "../db/jobs/queue.ts";
import { type OpenProject, type ProjectEnd, type ProjectJob, recordAttempt, type StoredRun } from "../db/jobs/runs.ts";
import { hasVanished } from "../db/projects.ts";
import { seriesIdOf } from "../db/usage/stored-series.ts";
import { AppError, errorCode, errorText } from "../errors.ts";
import { daysToReread, exportProject, readKeysAndBalances } from "../jobs/export.ts";
import { rotateKey, withRotationLease } from "../jobs/rotation.ts";
import { counted, durationText, instantText, secondsTaken } from "../show/format.ts";
import { addCounts, NO_COUNTS } from "../usage/counts.ts";
import { type Day, dayOf } from "../usage/days.ts";
import { describeRequest, type ExportJob, planRun, RETRIED_CODES, seriesOf, windowOf } from "../usage/export-plan.ts";
import type { Series } from "../usage/series.ts";
import type { WorkerContext } from "./worker-context.ts";

export type ProjectDeps = {
  /** Aborted when the worker stops: requests that were started are completed, and the job goes back to the queue. */
  readonly stopping: AbortSignal;
  /** Called if the configuration lacks the project: the worker that planned the run may have a newer configuration. */
  readonly onUnknownProject: () => void;
  /** The ids of the runs that this process has begun to work on lately. */
  readonly begunRuns: Set<string>;
};

/** Throws if the job is to be tried again. */
export async function handleProject(context: WorkerContext, deps: ProjectDeps, claimed: ClaimedJob): Promise<void> {
  const { runId, projectId } = claimed.data as ProjectJob;
  const run = await context.reader.readOpenProject({ runId, projectId });
  if (!run) return;
  forgetRefusalsOfEarlierRuns(context, deps.begunRuns, runId);
  const { exports, rotations } = context.config;
  if (run.kind === "rotation") {
    const rotation = rotations.find((one) => jobNameOf(one) === run.job && one.project.id === projectId);
    if (rotation) return rotateProject(context, rotation, run);
  } else {
    const job = exports.find(({ name }) => name === run.job);
    const project = job?.projects.find(({ id }) => id === projectId);
    if (job && project) return readProject(context, deps, claimed, run, { ...job, projects: [project] });
  }
  return handleUnknownProject(context, deps, claimed, run);
}

const BEGUN_RUNS_MAX = 100;

/** A key that was refused in an earlier run may have got the scope since, so each run tries it once more. */
function forgetRefusalsOfEarlierRuns({ service }: WorkerContext, begunRuns: Set<string>, runId: string): void {
  if (begunRuns.has(runId)) return;
  if (begunRuns.size >= BEGUN_RUNS_MAX) begunRuns.clear();
  begunRuns.add(runId);
  service.forgetRefusals();
}

/** Throws, so that a worker that knows the project can try. The last try ends it with an error. A vanished project ends at once, without an error. */
async function handleUnknownProject(
  context: WorkerContext,
  { onUnknownProject }: ProjectDeps,
  claimed: ClaimedJob,
  { runId, projectId, kind, trigger, job }: OpenProject,
): Promise<void> {
  const isGone = await hasVanished(context.db, projectId);
  onUnknownProject();
  const reason = `project ${projectId} of ${kind} ${job} is not in the configuration of the worker that claimed it`;
  if (!isGone && claimed.retryCount < claimed.retryLimit) throw new AppError("config", reason);
  if (kind === "rotation" && !isGone)
    reportRunEnd(context, { runId, kind, trigger, job, status: "failed", error: reason });
  await endProject(context, { runId, projectId, counts: NO_COUNTS, error: isGone ? undefined : reason });
}

/** A rotation that failed is not tried again: each try could make a key. After an interruption it throws, and the next try continues. */
async function rotateProject(context: WorkerContext, rotation: RotationConfig, run: OpenProject): Promise<void> {
  const { app } = context;
  const { runId, projectId, kind, trigger } = run;
  await withRotationLease(context, rotation, async (lease) => {
    // During the wait for the lease, another worker that also has the job may have ended the project.
    if (!(await context.reader.readOpenProject(run))) return;
    const { status, did, errors } = await rotateKey(context, rotation, lease).catch((error: unknown) => {
      app.signal.throwIfAborted();
      if (!(error instanceof AppError) || error.code === "database" || error.code === "stopped") throw error;
      const reason = errorText(error);
      app.log.error({ rotation: rotation.name, code: errorCode(error), reason }, "rotation failed");
      return { status: "failed" as const, did: [], errors: [reason] };
    });
    const error = errors[0] && app.scrubber.scrub(errors[0]);
    reportRunEnd(context, { runId, kind, trigger, job: rotation.name, status, did, error: error ?? null });
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
  const { requests, runDay, settledCounts } = await remainingRequests(context, job, run);
  const log = context.app.log.child({ job: job.name, runId });
  const stopStarting = AbortSignal.any([stopping, claimed.signal]);
  const isRetried = (code: string) => claimed.retryCount < claimed.retryLimit && RETRIED_CODES.includes(code);
  const result = await exportProject(context, { runId, job, requests, runDay, log, stopStarting, isRetried });
  const retried = result.failures.find(({ code }) => isRetried(code));
  const isStopped = result.requests < requests.length;
  if (isStopped || retried) {
    await recordAttempt(context.db, runId, projectId, result);
    if (!retried) throw new AppError("stopped", "the worker stops or has lost the job");
    const { request, reason, code } = retried;
    const attempt = { attempt: claimed.retryCount + 1, attempts: claimed.retryLimit + 1 };
    log.warn({ code, reason, ...describeRequest(request), ...attempt }, "requests failed, to be tried again");
    throw new AppError("unavailable", reason);
  }
  // `readableSource` is undefined if no request succeeded.
  const { readableSource, failures } = result;
  const counts = addCounts(settledCounts, result);
  await endProject(context, { runId, projectId, counts, error: failures[0]?.reason, readableSource });
  const [project] = job.projects;
  if (project && readableSource) await readKeysAndBalances(context, project, readableSource);
}

/** The requests that are left, and the counts of settled slices, which need none. A scheduled run reads all of its window, others only due days. */
async function remainingRequests({ ids, reader }: WorkerContext, job: ExportJob, run: OpenProject) {
  const { scheduledFor, startedAt } = run;
  const runDay = dayOf(startedAt);
  const seriesIds = seriesOf(job).map((series) => seriesIdOf(ids, series));
  const window = windowOf(job, runDay);
  const settled = scheduledFor ? await reader.settledSlices({ ...run, seriesIds, window }) : [];
  const toReread = await daysToReread({ ids, reader }, job, startedAt);
  const sliceKey = (seriesId: number, day: Day | undefined | null) => `${seriesId} ${day ?? ""}`;
  const settledKeys = new Set(settled.map(({ seriesId, day }) => sliceKey(seriesId, day)));
  const isSettled = (series: Series, day: Day | undefined) => settledKeys.has(sliceKey(seriesIdOf(ids, series), day));
  const { requests } = planRun(job, runDay, {}, { isSettled, toReread, readsWindow: scheduledFor !== null });
  const settledCounts = { ...NO_COUNTS, planned: settled.length };
  for (const { status } of settled) settledCounts[status]++;
  return { requests, runDay, settledCounts };
}

/** Ends one project of a run. If it was the last one of an export, the run has ended and is reported. */
async function endProject(context: WorkerContext, { error, ...project }: ProjectEnd): Promise<void> {
  const run = await context.writer.endProject({ ...project, error: error && context.app.scrubber.scrub(error) });
  // A rotation has reported each project by itself.
  if (run?.kind === "export") reportRunEnd(context, run);
}

/** A rotation has no counts; `did` are its actions, in order. */
export type EndedRun = Pick<StoredRun, "kind" | "job" | "trigger" | "status"> &
  Partial<StoredRun> & { readonly did?: readonly string[] };

export function reportRunEnd({ app }: Pick<WorkerContext, "app">, run: EndedRun): void {
  const { startedAt: _, finishedAt: _end, error, ...rest } = run;
  const facts = { ...rest, seconds: secondsTaken(run), ...(error != null && { error }) };
  if (app.hasTerminal) app.write(`${runLine(run, new Date())}\n`);
  else app.log[run.status === "ok" ? "info" : "warn"](facts, "run finished");
}

export function runLine(run: EndedRun, at: Date): string {
  const { kind, job, trigger, status, requests, complete, planned, rowsChanged = 0, error, did = [] } = run;
  const parts: string[] = [status, ...did];
  if (requests !== undefined) {
    const slices = `${complete} of ${planned} slices complete`;
    parts.push(counted(requests, "request"), slices, `${counted(rowsChanged, "row")} changed`);
  }
  const seconds = secondsTaken(run);
  if (seconds !== undefined) parts.push(durationText(seconds));
  const reason = error == null ? "" : `: ${error}`;
  return `${instantText(at)} ${kind} ${job} (${trigger}) ${parts.join(", ")}${reason}`;
}
