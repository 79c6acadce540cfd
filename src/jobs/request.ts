// What the export pipeline of usage/ needs for its requests, wired to the service, the keys and the database.

import type { Logger } from "pino";
import type { Database } from "../db/connection/database.ts";
import { isDatabaseFailure } from "../db/connection/errors.ts";
import { storedDays } from "../db/usage/coverage.ts";
import { recordFailure } from "../db/usage/failures.ts";
import { isNewestEmpty } from "../db/usage/slices.ts";
import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { Service } from "../service/service.ts";
import { type BreakdownOptions, fetchBreakdown, groupingName } from "../service/usage.ts";
import { type Day, dayOf, type Window } from "../usage/days.ts";
import type { Dialect } from "../usage/dimensions.ts";
import { type FetchedAnswer, type RequestDeps, rowCount } from "../usage/export.ts";
import { isObject } from "../usage/json-value.ts";
import { answerDates, emptiedDays, normalise } from "../usage/normalise.ts";
import type { AnswerPolicy, UsageRequest } from "../usage/plan.ts";
import { emptySlice, type NormalisedSlice } from "../usage/rows.ts";
import { dayOfUndated, type FilterDoubt } from "../usage/slice.ts";
import type { ExportContext } from "./context.ts";
import type { FilterCheck } from "./filters.ts";

export type RequestContext = Omit<ExportContext, "config" | "ids" | "firstDays">;

/** How the requests of a run are checked, and how its answers are stored. */
export type RequestSettings = {
  readonly runId: string;
  readonly policy: AnswerPolicy;
  readonly idOf: (request: UsageRequest) => number;
  readonly check: FilterCheck;
  readonly log: Logger;
  /** Whether a request that fails for this reason is tried again by the same run. */
  readonly isRetried?: (code: string) => boolean;
};

export function requestDeps(context: RequestContext, settings: RequestSettings): RequestDeps {
  const { app, db, fetchNumbers, writer } = context;
  const { runId, policy, idOf, log, isRetried } = settings;
  const { emptyGuard, cliffGuard, undated } = policy;
  return {
    nextFetchNo: fetchNumbers,
    log,
    isRetried,
    isDatabaseFailure,
    fetch: (request, runDay, signal, onPermit) =>
      writer.whileAsking(() => fetchUsage(context, settings, request, runDay, { signal, onPermit })),
    store(request, attempt, answer) {
      const { series, window } = request;
      const target = { seriesId: idOf(request), grouping: series.grouping, ownDays: window === undefined };
      const how = { runId, emptyGuard, cliffGuard, undated };
      return writer.store({ ...answer, ...attempt, ...target, ...how });
    },
    fail(request, fetchNo, days, { reason: unscrubbed, code }) {
      const reason = app.scrubber.scrub(unscrubbed);
      const isRepeated = isRetried?.(code) ?? false;
      return recordFailure(db, { seriesId: idOf(request), days, fetchNo, reason, code, isRetried: isRepeated });
    },
  };
}

type CallOptions = { readonly signal: AbortSignal; readonly onPermit: () => Promise<void> };

/** Makes the request in the service's dialect, reads the answer into slices, and checks whether its numbers can be believed. */
async function fetchUsage(
  context: RequestContext,
  settings: RequestSettings,
  request: UsageRequest,
  runDay: Day,
  { signal, onPermit }: CallOptions,
): Promise<FetchedAnswer> {
  const { db, service, keys, dialects, groupings } = context;
  const { check, policy, idOf } = settings;
  const ask = async (one: UsageRequest, dialect: Dialect, options: BreakdownOptions = {}) => {
    const sent = await check.asSent(one, dialect);
    const call = (key: Secret) => fetchBreakdown(service, sent, key, signal, { ...options, dialect });
    return keys.use(one.series.project, call);
  };
  const askAndRead = async (dialect: Dialect) => {
    let askedMs = performance.now();
    const beforeAttempt = async () => {
      await onPermit();
      askedMs = performance.now();
    };
    const answer = await ask(request, dialect, { beforeAttempt });
    // A snapshot belongs to no day, so the day under which it is passed on makes no difference.
    const asked = policy.undated === "snapshot" ? oneDay(runDay) : daysOfReading(service, askedMs);
    const day = dayOfUndated(asked.end, policy.undated);
    const slices = valueOrAppError(() => {
      const read = normalise(request, answer, day, groupingName(request.series.grouping, dialect));
      if (asked.start !== asked.end && read.some(({ undated }) => undated)) throw readAcrossMidnight(asked);
      return read;
    });
    const doubt = slices instanceof AppError ? undefined : await doubtOf(context, settings, request, slices, dialect);
    return { answer, slices, doubt, isFit: dialects.fits(request, answer) && doubt === undefined };
  };

  await check.readTotal(request, policy.checkFeatures);
  const dialect = await dialects.forRequest(request);
  const reading = askAndRead(dialect);
  check.useTotal(request, async () => orThrow((await reading).slices));
  const first = await reading;
  const other = first.isFit ? undefined : await dialects.alternative(request, dialect);
  const { answer, slices, doubt } = other === undefined ? first : await askAndRead(other);
  // `onPermit` is not passed, because it takes a new fetch number: these requests use the number of the request itself.
  await groupings.require(request, answer, async (one) => ask(one, await dialects.forRequest(one)));
  const read = orThrow(slices);
  if (request.window) return { slices: read, doubt };
  return { slices: await withEmptiedDays(db, idOf(request), answer, read, policy), doubt };
}

function oneDay(day: Day): Window {
  return { start: day, end: day };
}

/**
 * The days on which the service was asked and answered, by its own clock where that is known. A day that is in progress counts until
 * the moment of the answer, and a run may read it on a later day than the one on which it was planned.
 */
function daysOfReading(service: Service, askedMs: number): Window {
  const answeredAt = service.serviceTime() ?? new Date();
  const askedAt = new Date(answeredAt.getTime() - (performance.now() - askedMs));
  return { start: dayOf(askedAt), end: dayOf(answeredAt) };
}

function readAcrossMidnight({ start, end }: Window): AppError {
  return new AppError(
    "bad_answer",
    `the answer has no date, and was asked for on ${start} and came on ${end}, so nobody knows which of these days it counts; the next run asks again`,
  );
}

/** Returns the error for an answer that can't be read: the caller throws it only if the other dialect does not help. */
function valueOrAppError<T>(read: () => T): T | AppError {
  try {
    return read();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

function orThrow<T>(value: T | AppError): T {
  if (value instanceof AppError) throw value;
  return value;
}

async function doubtOf(
  { db }: RequestContext,
  { check, policy, idOf }: RequestSettings,
  request: UsageRequest,
  slices: readonly NormalisedSlice[],
  dialect: Dialect,
): Promise<FilterDoubt | undefined> {
  const hasRows = async () => (await storedDays(db, idOf(request), undefined)).hasRows;
  const doubt = await check.doubtOf(request, slices, dialect, policy.checkFeatures, hasRows);
  // An earlier run has already confirmed that the days before have no usage.
  return doubt?.kind === "filter-empty" && (await isNewestEmpty(db, idOf(request))) ? undefined : doubt;
}

/**
 * Without a window an answer covers the days of its period, including days that had rows and now have none. Throws `bad_answer`
 * if the answer has neither rows nor a date, because it is unknown which days are empty.
 */
async function withEmptiedDays(
  db: Database,
  seriesId: number,
  answer: unknown,
  covered: readonly NormalisedSlice[],
  { emptyGuard, undated }: AnswerPolicy,
): Promise<readonly NormalisedSlice[]> {
  const period = isObject(answer) ? answerDates(answer, undefined) : undefined;
  const { oldest, hasRows } = await storedDays(db, seriesId, period?.start);
  const isEmpty = rowCount({ slices: covered }) === 0;
  if (isEmpty && !period && hasRows && undated === "snapshot" && emptyGuard === "confirm") {
    throw new AppError(
      "bad_answer",
      'the answer has no rows and names no day, though earlier ones had rows of days: nobody knows which of them are empty now; "emptyGuard": "off" takes it for a day without usage',
    );
  }
  const days = emptiedDays(
    covered.map(({ day }) => day),
    oldest,
  );
  return [...days.map(emptySlice), ...covered];
}
