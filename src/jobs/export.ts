// Makes the requests of a run, project by project, for commands and workers. An answer goes through service/breakdown.ts, usage/normalise.ts,
// filter-check.ts, db/usage/writer.ts with usage/slice-decision.ts, and db/usage/stored-slices.ts to the table slice_row, which the views read
// as usage_export.visible_usage. If there is no answer, the reason is recorded.

import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { inParallel } from "../async.ts";
import { judgePendingDays } from "../db/anomalies.ts";
import { databaseNow } from "../db/connection/database.ts";
import { isConnectionError, isDatabaseFailure } from "../db/connection/errors.ts";
import { inTransaction } from "../db/connection/transaction.ts";
import { type RunOutcome, recordRun } from "../db/jobs/runs.ts";
import { storeBalances, storeLineItems, storeListedKeys } from "../db/project-facts.ts";
import { type StoredDays, storedDays } from "../db/usage/due-slices.ts";
import { recordFailure } from "../db/usage/failures.ts";
import { extendDue, seriesIdOf } from "../db/usage/stored-series.ts";
import type { StoredAnswer } from "../db/usage/writer.ts";
import { type ErrorCode, errorCode, errorText, unexpectedStack } from "../errors.ts";
import { nextOccurrence } from "../schedule/schedule.ts";
import type { Secret } from "../secret.ts";
import { hasStatus } from "../service/answer.ts";
import { fetchBreakdown } from "../service/breakdown.ts";
import type { Service } from "../service/client-types.ts";
import { listKeys } from "../service/keys.ts";
import { fetchBalances, fieldsReader } from "../service/projects.ts";
import { badAnswer } from "../usage/answer-checks.ts";
import { addCounts, NO_COUNTS, pickCounts, type RunCounts, type RunTrigger } from "../usage/counts.ts";
import { addDays, type Day, dayOf, daysOf, type Window } from "../usage/days.ts";
import type { Dialect, Source } from "../usage/dimensions.ts";
import {
  type DaysToReread,
  describeRequest,
  type ExportJob,
  type ExportPlan,
  isDueInRun,
  requestsAtOnce,
  seriesOf,
  sliceCount,
  totalSliceCount,
  type UsageRequest,
} from "../usage/export-plan.ts";
import { groupingEvidence, type NormalisedSlice, normalise, rowCount, sliceOf } from "../usage/normalise.ts";
import { type Project, seriesKey } from "../usage/series.ts";
import { type AnswerRules, type FilterDoubt, undatedEmptyProblem } from "../usage/slice-decision.ts";
import type { ExportContext, ServiceContext } from "./context.ts";
import { FilterCheck } from "./filter-check.ts";

/** Enough for projects with other keys to go on while the calls with one key wait. */
export const PROJECTS_AT_ONCE = 32;

type ProjectRun = {
  readonly runId: string;
  readonly job: ExportJob;
  /** When the run was planned. The failure of a request without a window is recorded under this day. */
  readonly runDay: Day;
  readonly log: Logger;
  readonly requests: readonly UsageRequest[];
  /** Whether the run repeats requests that fail with this code. If so, the caller logs the failure. */
  readonly isRetried?: (code: RequestFailure["code"]) => boolean;
  /** When aborted, no further request is started; those under way are completed. */
  readonly stopStarting?: AbortSignal;
  /** Called with what each request adds to the counts. */
  readonly onCounted?: ((added: RunCounts) => void) | undefined;
};

/** Why nothing could be stored for a request. */
type RequestFailure = { readonly reason: string; readonly code: ErrorCode | "internal" };

export type RequestReason = { readonly request: UsageRequest; readonly reason: string };
export type ExportResult = RunCounts & {
  readonly failures: readonly (RequestFailure & RequestReason)[];
  readonly doubts: readonly RequestReason[];
};

/** Makes the requests of the plan now. Records the run even if it fails or is aborted. */
export async function executePlan(
  context: ExportContext,
  job: ExportJob,
  trigger: RunTrigger,
  plan: ExportPlan,
  onCounted?: ProjectRun["onCounted"],
): Promise<ExportResult> {
  const { app, db, ids, writer } = context;
  const { runDay, due } = plan;
  // The days become due before the first request, so that unread days show as missing if the process dies.
  const seriesIds = new Set(plan.requests.map(({ series }) => seriesIdOf(ids, series)));
  if (due) {
    const nextAt = nextOccurrence(job, await databaseNow(db));
    await inTransaction(db, (tx) => extendDue(tx, [...seriesIds], due, nextAt));
  }
  const runId = randomUUID();
  const log = app.log.child({ job: job.name, runId });
  log.info({ requests: plan.requests.length }, "export started");
  const projects = [...Map.groupBy(plan.requests, ({ series }) => series.project)];
  const results: ExportResult[] = [];
  const runProject = async ([project, requests]: [Project, UsageRequest[]]) => {
    const result = await exportProject(context, { runId, job, runDay, log, requests, onCounted });
    results.push(result);
    const { readableSource, failures } = result;
    const error = failures[0] && app.scrubber.scrub(failures[0].reason);
    await writer.endProject({ runId, projectId: project.id, counts: result, error, readableSource });
    if (readableSource && !app.signal.aborted) await readKeysAndBalances(context, project, readableSource);
  };
  const run = { runId, kind: "export", job: job.name, trigger } as const;
  const planned = projects.map(([{ id }, requests]) => ({ projectId: id, planned: totalSliceCount(requests) }));
  const result = await recordRun(context, run, planned, async () => {
    await inParallel(projects, PROJECTS_AT_ONCE, runProject, () => app.signal.aborted);
    const counts = results.reduce<RunCounts>(addCounts, NO_COUNTS);
    if (counts.requests < plan.requests.length) app.signal.throwIfAborted();
    const failures = results.flatMap((one) => one.failures);
    const doubts = results.flatMap((one) => one.doubts);
    const status: RunOutcome["status"] = counts.failed + counts.suspect === 0 ? "ok" : "failed";
    return { ...counts, failures, doubts, status, error: failures[0]?.reason };
  });
  await judgeDays(context);
  // On a terminal the command itself prints what failed.
  log[result.status === "ok" || app.hasTerminal ? "info" : "warn"](pickCounts(result), "export finished");
  return result;
}

/**
 * Makes the requests of one project, and goes on after failed ones. If the program stops, returns what was done until then. Throws if the
 * database is lost. `readableSource` is the source that the key may read; undefined if no request succeeded.
 */
export async function exportProject(context: ExportContext, run: ProjectRun) {
  const { signal } = context.app;
  const { job, requests, stopStarting, onCounted } = run;
  const check = new FilterCheck(context, job);
  const shared = { ...run, check, fetchNo: await context.nextFetchNo() };
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
  const atOnce = requestsAtOnce(context.config.service.maxConcurrent, context.config.projects.length);
  await inParallel(requests, atOnce, makeAndCount, isOver).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  const readableSource = failures.length < counts.requests ? job.source : undefined;
  return { ...counts, failures, doubts, readableSource };
}

/** The counts that one request adds to its run, except `planned`, which is counted when the run begins. */
function countOutcome(request: UsageRequest, outcome: StoredAnswer | RequestFailure): RunCounts {
  if ("reason" in outcome) return { ...NO_COUNTS, requests: 1, failed: sliceCount(request) };
  const counts: Record<keyof RunCounts, number> = { ...NO_COUNTS, requests: 1, rowsChanged: outcome.rowsChanged };
  for (const { decision, undated } of outcome.slices) {
    if (decision === "suspect" || decision === "stale") counts[decision]++;
    else counts[undated ? "undated" : "complete"]++;
  }
  return counts;
}

/** `fetchNo` was taken before the first request of the project. */
type SharedByRequests = { readonly check: FilterCheck; readonly fetchNo: number };

/** Makes one request, and stores its answer or records why there is none. Throws only what would make every other request fail, too. */
export async function makeRequest(
  context: ExportContext,
  { runId, job, runDay, log, isRetried, check, fetchNo }: Omit<ProjectRun, "requests"> & SharedByRequests,
  request: UsageRequest,
): Promise<StoredAnswer | RequestFailure> {
  const { app, db, nextFetchNo, writer } = context;
  const { series, window } = request;
  const seriesId = seriesIdOf(context.ids, series);
  const stored = (from?: Day) => storedDays(db, seriesId, from);
  // For a failure before the call. This number is lower than those of later calls, so a slice that one of them has stored is not marked as failed.
  let attempt = { fetchNo, askedMs: performance.now() };
  // Each call takes its number right before it is sent. So its answer replaces those of earlier calls, and never a later one's.
  const onPermit = async () => {
    attempt = { fetchNo: await nextFetchNo(), askedMs: performance.now() };
  };
  try {
    const options = { check, job, runDay, stored, onPermit };
    const answer = await writer.trackRequest(async () => {
      const { slices, doubt, period } = await readBreakdown(context, options, request);
      const emptied = window ? [] : emptiedSlices(await stored(period?.start), period, slices, job);
      return { slices: [...emptied, ...slices], doubt };
    });
    const target = { seriesId, grouping: series.grouping, serviceChoosesDays: window === undefined, runId };
    const result = await writer.store({ rules: job, ...answer, ...attempt, ...target });
    log.debug(describeRequest(request), `${series.source} request done`);
    return result;
  } catch (error) {
    app.signal.throwIfAborted();
    if (isDatabaseFailure(error) || errorCode(error) === "stopped") throw error;
    // Any other error, even a bug in this program, may concern only this request, so the other requests are still made.
    const failed = { reason: errorText(error), code: errorCode(error) };
    const days = window ? daysOf(window) : [runDay];
    const reason = app.scrubber.scrub(failed.reason);
    await recordFailure(db, { seriesId, days, fetchNo: attempt.fetchNo, ...failed, reason });
    if (isRetried?.(failed.code)) return failed;
    const stack = unexpectedStack(error);
    log.error({ ...failed, ...describeRequest(request), ...(stack && { stack }) }, `${series.source} request failed`);
    return failed;
  }
}

type RequestOptions = {
  readonly check: FilterCheck;
  readonly job: Pick<ExportJob, "undated">;
  readonly runDay: Day;
  readonly stored: () => Promise<StoredDays>;
  /** Awaited before each attempt, once the rate limiter permits it. */
  readonly onPermit?: () => Promise<void>;
};

/** `doubt`: why the numbers may not be those of the filter. */
type CheckedAnswer = ReturnType<typeof normalise> & { readonly doubt: FilterDoubt | undefined };

/** Makes the call in the service's dialect, reads the answer, and checks whether its numbers can be believed. Throws `bad_answer`. */
export async function readBreakdown(
  { app, service, keyRing, dialects }: Pick<ServiceContext, "app" | "service" | "keyRing" | "dialects">,
  { check, job: { undated }, runDay, stored, onPermit }: RequestOptions,
  request: UsageRequest,
): Promise<CheckedAnswer> {
  const { series } = request;
  const read = async (dialect: Dialect, mayTryOther: boolean): Promise<CheckedAnswer> => {
    const sent = await check.withModelId(request, dialect);
    const options = { dialect, beforeAttempt: onPermit };
    const answer = await keyRing.use(series.project, (key) => fetchBreakdown(service, sent, key, app.signal, options));
    const otherDialect = async () => (mayTryOther ? dialects.alternative(request, dialect) : undefined);
    // Rows without any model show that the service did not understand the grouping.
    const isUnderstood = series.grouping !== "model" || groupingEvidence("model", answer) !== "no value";
    const dialectToTry = isUnderstood ? undefined : await otherDialect();
    if (dialectToTry) return read(dialectToTry, false);

    // `undated` says what rows without a date are: a snapshot, whose rows are stored without a day, or usage of the service's today or yesterday.
    const readOn = undated === "snapshot" ? runDay : dayOf(service.serviceTime() ?? new Date());
    const undatedDay = undated === "day-before" ? addDays(readOn, -1) : readOn;
    const { slices, period } = normalise(request, answer, undatedDay, dialect);
    const doubt = await check.doubtOf(request, slices, { dialect, stored });
    // The numbers in the other dialect may leave no doubt.
    const other = doubt && (await otherDialect());
    if (other) return read(other, false);

    await check.requireThatServiceGroups(request, answer);
    return { slices, period, doubt };
  };
  // The total is all usage, without filter and grouping. The answers to filtered requests are compared with it.
  await check.prefetchTotal(request);
  const reading = read(await dialects.forRequest(request), true);
  check.offerTotal(request, async () => (await reading).slices);
  return reading;
}

/**
 * Slices for days that are empty now. Without a window, an answer counts for its whole period: the days of the period that are stored, but
 * before the answer's first day, have no usage any more. Throws `bad_answer` if it has no row and no date: the empty days are unknown.
 */
function emptiedSlices(
  { oldest, hasRows }: StoredDays,
  period: Window | undefined,
  covered: readonly NormalisedSlice[],
  rules: AnswerRules,
): readonly NormalisedSlice[] {
  const problem = rowCount(covered) === 0 && !period && hasRows && undatedEmptyProblem(rules);
  if (problem) throw badAnswer(problem);
  const [first] = covered;
  const emptied = first && oldest ? daysOf({ start: oldest, end: addDays(first.day, -1) }) : [];
  return emptied.map((day) => sliceOf(day, []));
}

/** A reading that takes longer is abandoned, even if it waits because the service asked for that (Retry-After). */
const READING_MS_MAX = 10_000;

type Fetch<T> = (service: Service, projectId: string, key: Secret, signal: AbortSignal) => Promise<T>;

/** Stores the names of keys while the service still lists them; for billing, also balances and line items. Never throws: the run has succeeded. */
export async function readKeysAndBalances(context: ExportContext, project: Project, source: Source): Promise<void> {
  const { app, db, service, keyRing } = context;
  const log = app.log.child({ project: project.name });
  const signal = AbortSignal.any([app.signal, AbortSignal.timeout(READING_MS_MAX)]);
  const read = async <T>(what: string, fetch: Fetch<T>, store: (answer: T) => Promise<void>) => {
    try {
      await store(await keyRing.use(project, (key) => fetch(service, project.id, key, signal)));
    } catch (error) {
      // Balances are numbers that a person wants to see; the rest only adds names. Many keys may not read balances.
      const levelOfBalances = hasStatus(error, 401, 403, 404) ? "info" : "warn";
      log[what === "balances" ? levelOfBalances : "debug"]({ reason: errorText(error) }, `${what} not read`);
    }
  };
  const readings = [read("list of keys", listKeys, (listed) => storeListedKeys(db, project.id, listed ?? []))];
  if (source === "billing") {
    readings.push(read("balances", fetchBalances, (listed) => storeBalances(db, project, listed)));
    readings.push(read("line items", fieldsReader("billing"), (listed) => storeLineItems(db, listed?.labels ?? [])));
  }
  await Promise.all(readings);
}

/** The due days of the job to read again, by seriesKey. With `runStartedAt`, only those that a run that began then has to read. */
export async function daysToReread(
  { ids, reader }: Pick<ExportContext, "ids" | "reader">,
  job: ExportJob,
  runStartedAt?: Date,
): Promise<DaysToReread> {
  if (!job.window) return new Map();
  const keys = new Map(seriesOf(job).map((series) => [seriesIdOf(ids, series), seriesKey(series)]));
  const due = await reader.dueSlices([...keys.keys()]);
  const wanted = runStartedAt ? due.filter((slice) => isDueInRun(slice, runStartedAt)) : due;
  return Map.groupBy(wanted, ({ seriesId }) => keys.get(seriesId) ?? "");
}

/** Logs the days that turn out to have unusual usage. Throws only if the database can't be reached. */
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
