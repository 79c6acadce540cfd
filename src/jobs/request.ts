// Makes one request of a run: reads the answer, checks whether its numbers can be believed, and stores it, or records why there is none.

import type { Logger } from "pino";
import { isDatabaseFailure } from "../db/connection/errors.ts";
import { type StoredDays, storedDays } from "../db/usage/due-slices.ts";
import { recordFailure } from "../db/usage/failures.ts";
import { seriesIdOf } from "../db/usage/stored-series.ts";
import type { StoredAnswer } from "../db/usage/writer.ts";
import { type ErrorCode, errorCode, errorText, unexpectedStack } from "../errors.ts";
import { groupingName } from "../service/usage.ts";
import { emptySlice, type NormalisedSlice, rowCount } from "../usage/answer-rows.ts";
import { type Day, dayOf, daysOf, type Window } from "../usage/days.ts";
import type { Dialect } from "../usage/dimensions.ts";
import { badAnswer, isObject } from "../usage/json-value.ts";
import { answerPeriod, emptiedDays, normalise } from "../usage/normalise.ts";
import { describeRequest, type ExportJob, type UsageRequest } from "../usage/plan.ts";
import { dayOfUndated, type FilterDoubt } from "../usage/slice-decision.ts";
import type { ExportContext, ServiceContext } from "./context.ts";
import { fitsDialect } from "./dialects.ts";
import type { FilterCheck } from "./filters.ts";

/** Why a request has no answer that could be stored. */
export type FailedRequest = { readonly reason: string; readonly code: ErrorCode | "internal" };

/** The run that a request belongs to. */
export type RequestRun = {
  readonly runId: string;
  readonly job: ExportJob;
  /** The day on which the run was planned. The failure of a request without a window is recorded under this day. */
  readonly runDay: Day;
  readonly log: Logger;
  /** Whether a request that fails with this code is tried again by the same run. If so, the caller logs the failure. */
  readonly isRetried?: ((code: FailedRequest["code"]) => boolean) | undefined;
};

/** Shared by all requests of one project in a run. `fetchNo` was taken before the first of them. */
type SharedByRequests = { readonly check: FilterCheck; readonly fetchNo: number };

/** Makes one request and stores its answer, or records why there is none. Throws errors that every other request would meet, too. */
export async function makeRequest(
  context: ExportContext,
  { runId, job, runDay, log, isRetried, check, fetchNo }: RequestRun & SharedByRequests,
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
      const { slices, doubt, period } = await readUsage(context, how, request);
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

type ReadUsage = {
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
export async function readUsage(
  { service, dialects }: Pick<ServiceContext, "service" | "dialects">,
  { check, job: { checkFeatures, undated }, runDay, stored, onPermit }: Reading,
  request: UsageRequest,
): Promise<ReadUsage> {
  const { series, window } = request;
  const read = async (dialect: Dialect, mayBeOther: boolean): Promise<ReadUsage> => {
    const answer = await check.fetchBreakdown(request, dialect, onPermit);
    const other = async () => (mayBeOther ? dialects.alternative(request, dialect) : undefined);
    const better = fitsDialect(request, answer) ? undefined : await other();
    if (better) return read(better, false);

    const readOn = undated === "snapshot" ? runDay : dayOf(service.serviceTime() ?? new Date());
    const asked = groupingName(series.grouping, dialect);
    const slices = normalise(request, answer, dayOfUndated(readOn, undated), asked);
    const doubt = await check.doubtOf(request, slices, dialect, checkFeatures, stored);
    const undoubted = doubt && (await other());
    if (undoubted) return read(undoubted, false);

    await check.requireThatServiceGroups(request, answer);
    return { slices, doubt, period: isObject(answer) ? answerPeriod(answer, window) : undefined };
  };

  await check.prefetchTotal(request, checkFeatures);
  const reading = read(await dialects.forRequest(request), true);
  check.useTotal(request, async () => (await reading).slices);
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
