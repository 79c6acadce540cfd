// Makes the requests of a run, project by project: reads each answer, checks whether its numbers can be believed, and stores it, or records
// why there is none. A command makes all requests of a run, a worker those of the projects that it has claimed.

import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { inParallel } from "../async.ts";
import { judgePendingDays } from "../db/anomalies.ts";
import { databaseNow } from "../db/connection/database.ts";
import { isConnectionError, isDatabaseFailure } from "../db/connection/errors.ts";
import { dueSlices, type StoredDays, storedDays } from "../db/usage/due-slices.ts";
import { recordFailure } from "../db/usage/failures.ts";
import { markDue, seriesIdOf } from "../db/usage/stored-series.ts";
import type { StoredAnswer } from "../db/usage/writer.ts";
import { type ErrorCode, errorCode, errorText, unexpectedStack } from "../errors.ts";
import { nextOccurrence } from "../schedule/schedule.ts";
import { fetchBreakdown, groupingName } from "../service/breakdown.ts";
import { emptySlice, type NormalisedSlice, rowCount } from "../usage/answer-rows.ts";
import type { DueSlice } from "../usage/backfill.ts";
import { addCounts, NO_COUNTS, pickCounts, type RunCounts, type RunTrigger } from "../usage/counts.ts";
import { addDays, type Day, dayOf, daysOf, type Window } from "../usage/days.ts";
import type { Dialect, Source } from "../usage/dimensions.ts";
import { badAnswer, isObject } from "../usage/json-value.ts";
import { answerPeriod, emptiedDays, normalise } from "../usage/normalise.ts";
import {
  type DaysToReread,
  describeRequest,
  type ExportJob,
  type ExportPlan,
  requestsAtOnce,
  seriesOf,
  sliceCount,
  totalSliceCount,
  type UsageRequest,
} from "../usage/plan.ts";
import { seriesKey } from "../usage/series.ts";
import { dayOfUndated, type FilterDoubt } from "../usage/slice-decision.ts";
import type { ExportContext, ServiceContext } from "./context.ts";
import { fitsDialect } from "./dialects.ts";
import { FilterCheck } from "./filter-check.ts";
import { readProjectFacts } from "./project-facts.ts";
import { type RunOutcome, recordedRun } from "./recorded-run.ts";

/** How many projects a process works on at once: while a few wait because of their keys, others go on. */
export const PROJECTS_AT_ONCE = 32;

/** One project of a run. */
type ProjectRun = {
  readonly runId: string;
  readonly job: ExportJob;
  /** The day on which the run was planned. The failure of a request without a window is recorded under this day. */
  readonly runDay: Day;
  readonly log: Logger;
  readonly requests: readonly UsageRequest[];
  /** Whether a request that fails with this code is tried again by the same run. If so, the caller logs the failure. */
  readonly isRetried?: (code: FailedRequest["code"]) => boolean;
  /** Once it is aborted, no further request is started. Requests that were started are completed. */
  readonly stopStarting?: AbortSignal;
  /** Called with what each request adds to the counts. */
  readonly onCounted?: (added: RunCounts) => void;
};

/** Why a request has no answer that could be stored. */
type FailedRequest = { readonly reason: string; readonly code: ErrorCode | "internal" };

export type ExportResult = RunCounts & {
  readonly failures: readonly (FailedRequest & RequestReason)[];
  /** One for each suspect slice. */
  readonly doubts: readonly RequestReason[];
};
export type RequestReason = { readonly request: UsageRequest; readonly reason: string };

/** Makes the requests of the plan now and records the run, however it ends. `onCounted` is called with what each request adds. */
export async function runExportJob(
  context: ExportContext,
  job: ExportJob,
  trigger: RunTrigger,
  plan: ExportPlan,
  onCounted: (added: RunCounts) => void = () => {},
): Promise<ExportResult> {
  const { app, writer } = context;
  await markPlannedDue(context, job, plan);
  const runId = randomUUID();
  const log = app.log.child({ job: job.name, runId });
  const projects = Map.groupBy(plan.requests, ({ series }) => series.project.id);
  const planned = [...projects].map(([projectId, requests]) => ({ projectId, planned: totalSliceCount(requests) }));
  log.info({ requests: plan.requests.length }, "export started");
  const run = { runId, job, runDay: plan.runDay, log };
  const results: ExportResult[] = [];
  const exportOne = async ([projectId, requests]: [string, UsageRequest[]]) => {
    const result = await exportProject(context, { ...run, requests, onCounted });
    results.push(result);
    const { allowed, failures } = result;
    const error = failures[0] && app.scrubber.scrub(failures[0].reason);
    await writer.endProject({ runId, projectId, counts: result, error, allowed });
    const project = requests[0]?.series.project;
    if (project && allowed && !app.signal.aborted) await readProjectFacts(context, project, allowed);
  };
  const recorded = { runId, kind: "export", job: job.name, trigger } as const;
  const result = await recordedRun(context, recorded, planned, async () => {
    await inParallel([...projects], PROJECTS_AT_ONCE, exportOne, () => app.signal.aborted);
    const counts = results.reduce<RunCounts>(addCounts, NO_COUNTS);
    if (counts.requests < plan.requests.length) app.signal.throwIfAborted();
    const failures = results.flatMap((one) => one.failures);
    const doubts = results.flatMap((one) => one.doubts);
    const status: RunOutcome["status"] = counts.failed + counts.suspect === 0 ? "ok" : "failed";
    return { ...counts, failures, doubts, status, error: failures[0]?.reason };
  });
  await judgeDays(context);
  // On a terminal the command itself prints what failed.
  log[result.status === "ok" || app.terminal ? "info" : "warn"](pickCounts(result), "export finished");
  return result;
}

/** Marks the planned days as due before the first request: if the process ends in between, the days still show as missing. */
async function markPlannedDue(
  { db, ids }: ExportContext,
  job: ExportJob,
  { requests, runDay, due }: ExportPlan,
): Promise<void> {
  const seriesIds = [...new Set(requests.map(({ series }) => seriesIdOf(ids, series)))];
  // Without a window only the answers show which days are due. A series that has due days already gets those up to yesterday.
  const newlyDue = due ?? (job.window ? undefined : { through: addDays(runDay, -1) });
  if (newlyDue) await markDue(db, seriesIds, { ...newlyDue, nextAt: nextOccurrence(job, await databaseNow(db)) });
}

/**
 * Makes the requests of one project. A failed request is recorded on its slices and counted, and the others are made all the same. If the
 * program stops, returns what was done until then. `allowed` is what the key may read; undefined if all requests failed. Throws if the
 * database is lost.
 */
export async function exportProject(
  context: ExportContext,
  project: ProjectRun,
): Promise<ExportResult & { readonly allowed: Source | undefined }> {
  const { signal } = context.app;
  const { requests, stopStarting, onCounted } = project;
  const shared = { ...project, check: new FilterCheck(context), fetchNo: await context.fetchNumbers() };
  const failures: ExportResult["failures"][number][] = [];
  const doubts: RequestReason[] = [];
  let counts: RunCounts = { ...NO_COUNTS, planned: totalSliceCount(requests) };
  const makeAndCount = async (request: UsageRequest) => {
    const outcome = await makeRequest(context, shared, request);
    if ("reason" in outcome) failures.push({ request, ...outcome });
    else for (const { doubt } of outcome.slices) if (doubt !== undefined) doubts.push({ request, reason: doubt });
    const added = countOutcome(request, outcome);
    counts = addCounts(counts, added);
    onCounted?.(added);
  };
  const isOver = () => signal.aborted || stopStarting?.aborted === true;
  const { service, projects } = context.config;
  const atOnce = requestsAtOnce(service.maxConcurrent, projects.length);
  await inParallel(requests, atOnce, makeAndCount, isOver).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  const allowed = failures.length < counts.requests ? project.job.source : undefined;
  return { ...counts, failures, doubts, allowed };
}

/** The counts that one request adds to its run, except `planned`, which is counted when the run begins. */
function countOutcome(request: UsageRequest, outcome: StoredAnswer | FailedRequest): RunCounts {
  if ("reason" in outcome) return { ...NO_COUNTS, requests: 1, failed: sliceCount(request) };
  const counts: Record<keyof RunCounts, number> = { ...NO_COUNTS, requests: 1, rowsChanged: outcome.rowsChanged };
  for (const { decision, undated } of outcome.slices) {
    if (decision === "suspect" || decision === "stale") counts[decision]++;
    else counts[undated ? "undated" : "complete"]++;
  }
  return counts;
}

/** What all requests of one project in a run share. `fetchNo` was taken before the first of them. */
type SharedByRequests = { readonly check: FilterCheck; readonly fetchNo: number };

/** Makes one request and stores its answer, or records why there is none. Throws errors that every other request would meet, too. */
export async function makeRequest(
  context: ExportContext,
  { runId, job, runDay, log, isRetried, check, fetchNo }: Omit<ProjectRun, "requests"> & SharedByRequests,
  request: UsageRequest,
): Promise<StoredAnswer | FailedRequest> {
  const { app, db, fetchNumbers, writer } = context;
  const { series, window } = request;
  const seriesId = seriesIdOf(context.ids, series);
  const stored = (from?: Day) => storedDays(db, seriesId, from);
  // A failure before the call has the number of the run, so that it does not count as newer than what another process stored meanwhile.
  let attempt = { fetchNo, askedMs: performance.now() };
  // The number of a call is taken right before it: the answer then never replaces a later one, and does not count as older than answers
  // that came while it waited for its permit.
  const onPermit = async () => {
    attempt = { fetchNo: await fetchNumbers(), askedMs: performance.now() };
  };
  try {
    const how = { check, job, runDay, stored, onPermit };
    const answer = await writer.whileAsking(async () => {
      const { slices, doubt, period } = await readBreakdown(context, how, request);
      const emptied = window ? [] : emptiedSlices(await stored(period?.start), period, slices, job);
      return { slices: [...emptied, ...slices], doubt };
    });
    const target = { seriesId, grouping: series.grouping, serviceChoosesDays: window === undefined, runId };
    const result = await writer.store({ rules: job, ...answer, ...attempt, ...target });
    log.debug(describeRequest(request), `${series.source} request done`);
    return result;
  } catch (error) {
    app.signal.throwIfAborted();
    // Any other error, also a mistake in this program, fails this request alone: the others of the run may not meet it.
    if (isDatabaseFailure(error) || errorCode(error) === "stopped") throw error;
    const failed = { reason: errorText(error), code: errorCode(error) };
    const days = window ? daysOf(window) : [runDay];
    const recorded = { ...failed, reason: app.scrubber.scrub(failed.reason) };
    await recordFailure(db, { seriesId, days, fetchNo: attempt.fetchNo, ...recorded });
    if (isRetried?.(failed.code)) return failed;
    const stack = unexpectedStack(error);
    log.error({ ...failed, ...describeRequest(request), ...(stack && { stack }) }, `${series.source} request failed`);
    return failed;
  }
}

type Reading = {
  readonly check: FilterCheck;
  readonly job: Pick<ExportJob, "checkFeatures" | "undated">;
  readonly runDay: Day;
  /** What is stored of the series. */
  readonly stored: () => Promise<StoredDays>;
  /** Awaited before each attempt, once the rate limiter permits it. */
  readonly onPermit?: () => Promise<void>;
};

type ReadBreakdown = {
  readonly slices: readonly NormalisedSlice[];
  /** Why the numbers of the answer may not be those of the filter. */
  readonly doubt: FilterDoubt | undefined;
  /** The period that the answer names. */
  readonly period: Window | undefined;
};

/**
 * Makes the call in the service's dialect, reads the answer into slices, and checks whether its numbers can be believed. Throws
 * `bad_answer` if it can't be read.
 */
export async function readBreakdown(
  { app, service, keys, dialects }: Pick<ServiceContext, "app" | "service" | "keys" | "dialects">,
  { check, job: { checkFeatures, undated }, runDay, stored, onPermit }: Reading,
  request: UsageRequest,
): Promise<ReadBreakdown> {
  const { series, window } = request;
  const read = async (dialect: Dialect, mayTryOther: boolean): Promise<ReadBreakdown> => {
    const sent = await check.withModelId(request, dialect);
    const options = { dialect, beforeAttempt: onPermit };
    const answer = await keys.use(series.project, (key) => fetchBreakdown(service, sent, key, app.signal, options));
    const otherDialect = async () => (mayTryOther ? dialects.alternative(request, dialect) : undefined);
    const fitting = fitsDialect(request, answer) ? undefined : await otherDialect();
    if (fitting) return read(fitting, false);

    // A snapshot belongs to the day of its run; the usage of a day to the day at the service when it was read.
    const readOn = undated === "snapshot" ? runDay : dayOf(service.serviceTime() ?? new Date());
    const slices = normalise(request, answer, dayOfUndated(readOn, undated), groupingName(series.grouping, dialect));
    const doubt = await check.doubtOf(request, slices, dialect, checkFeatures, stored);
    // The other dialect may give numbers without a doubt.
    const other = doubt && (await otherDialect());
    if (other) return read(other, false);

    await check.requireThatServiceGroups(request, answer);
    return { slices, doubt, period: isObject(answer) ? answerPeriod(answer, window) : undefined };
  };

  await check.prefetchTotal(request, checkFeatures);
  const reading = read(await dialects.forRequest(request), true);
  check.offerTotal(request, async () => (await reading).slices);
  return reading;
}

/**
 * Without a window an answer covers the days of its period. Returns an empty slice for each of these days that had rows and now has none.
 * Throws `bad_answer` if the answer has neither rows nor a date, because it is unknown which days are empty.
 */
function emptiedSlices(
  { oldest, hasRows }: StoredDays,
  period: Window | undefined,
  covered: readonly NormalisedSlice[],
  { emptyGuard, undated }: ExportJob,
): readonly NormalisedSlice[] {
  if (rowCount(covered) === 0 && !period && hasRows && undated === "snapshot" && emptyGuard === "confirm") {
    throw badAnswer(
      'the answer has no rows and names no day, though earlier ones had rows of days: so it is unknown which days are empty; "emptyGuard": "off" takes it for a day without usage',
    );
  }
  const days = covered.map(({ day }) => day);
  return emptiedDays(days, oldest).map(emptySlice);
}

/** By seriesKey, the due days of the job that need another reading and that `isWanted` accepts. */
export async function daysToReread(
  { db, ids }: Pick<ExportContext, "db" | "ids">,
  job: ExportJob,
  isWanted: (slice: DueSlice) => boolean = () => true,
): Promise<DaysToReread> {
  if (!job.window) return new Map();
  const keys = new Map(seriesOf(job).map((series) => [seriesIdOf(ids, series), seriesKey(series)]));
  const due = await dueSlices(db, [...keys.keys()]);
  return Map.groupBy(due.filter(isWanted), ({ seriesId }) => keys.get(seriesId) ?? "");
}

/**
 * Judges the days that were read first or became final, and logs the unusual ones. Throws only if the database can't be reached: no run
 * fails because its days could not be judged.
 */
export async function judgeDays({ app, db, config }: Pick<ExportContext, "app" | "db" | "config">): Promise<void> {
  try {
    for (const { verdict, ...day } of await judgePendingDays(db, config.anomalies)) {
      if (verdict === "high" || verdict === "low") app.log.warn({ ...day, verdict }, "unusual usage");
    }
  } catch (error) {
    if (isConnectionError(error)) throw error;
    app.log.warn({ reason: errorText(error) }, "days not judged");
  }
}
