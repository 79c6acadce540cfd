// What the export pipeline of usage/ needs for its requests, wired to the service, the keys and the database.

import type { Logger } from "pino";
import { isDatabaseFailure } from "../db/connection/errors.ts";
import { type StoredDays, storedDays } from "../db/usage/coverage.ts";
import { recordFailure } from "../db/usage/failures.ts";
import type { Secret } from "../secret.ts";
import { fetchBreakdown, groupingName } from "../service/usage.ts";
import { type Day, dayOf, type Window } from "../usage/days.ts";
import type { Dialect } from "../usage/dimensions.ts";
import { type FetchedAnswer, type RequestDeps, rowCount } from "../usage/export.ts";
import { badAnswer, isObject } from "../usage/json-value.ts";
import { answerDates, emptiedDays, normalise } from "../usage/normalise.ts";
import type { AnswerPolicy, UsageRequest } from "../usage/plan.ts";
import { emptySlice, type NormalisedSlice } from "../usage/rows.ts";
import { dayOfUndated } from "../usage/slice.ts";
import type { ExportContext } from "./context.ts";
import type { FilterCheck } from "./filters.ts";

export type RequestContext = Omit<ExportContext, "config" | "ids">;

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
      return recordFailure(db, { seriesId: idOf(request), days, fetchNo, reason, code });
    },
  };
}

type CallOptions = { readonly signal: AbortSignal; readonly onPermit: () => Promise<void> };

/** Makes the request in the service's dialect, reads the answer into slices, and checks whether its numbers can be believed. */
async function fetchUsage(
  context: RequestContext,
  { check, policy, idOf }: RequestSettings,
  request: UsageRequest,
  runDay: Day,
  { signal, onPermit }: CallOptions,
): Promise<FetchedAnswer> {
  const { db, service, keys, dialects } = context;
  const { series, window } = request;
  const read = async (dialect: Dialect, mayBeOther: boolean): Promise<FetchedAnswer> => {
    const sent = await check.asSent(request, dialect);
    const call = (key: Secret) => fetchBreakdown(service, sent, key, signal, { dialect, beforeAttempt: onPermit });
    const answer = await keys.use(series.project, call);
    const other = async () => (mayBeOther ? dialects.alternative(request, dialect) : undefined);
    const better = dialects.fits(request, answer) ? undefined : await other();
    if (better) return read(better, false);

    const day = policy.undated === "snapshot" ? runDay : dayOf(service.serviceTime() ?? new Date());
    const asked = groupingName(series.grouping, dialect);
    const slices = normalise(request, answer, dayOfUndated(day, policy.undated), asked);
    const period = isObject(answer) ? answerDates(answer, window) : undefined;
    const stored = () => storedDays(db, idOf(request), period?.start);
    const doubt = await check.doubtOf(request, slices, dialect, policy.checkFeatures, stored);
    const undoubted = doubt && (await other());
    if (undoubted) return read(undoubted, false);

    await check.requireThatServiceGroups(request, answer);
    return { slices: window ? slices : withEmptiedDays(await stored(), period, slices, policy), doubt };
  };

  await check.prefetchTotal(request, policy.checkFeatures);
  const reading = read(await dialects.forRequest(request), true);
  check.useTotal(request, async () => (await reading).slices);
  return reading;
}

/**
 * Without a window an answer covers the days of its period, including days that had rows and now have none. Throws `bad_answer`
 * if the answer has neither rows nor a date, because it is unknown which days are empty.
 */
function withEmptiedDays(
  { oldest, hasRows }: StoredDays,
  period: Window | undefined,
  covered: readonly NormalisedSlice[],
  { emptyGuard, undated }: AnswerPolicy,
): readonly NormalisedSlice[] {
  const isEmpty = rowCount({ slices: covered }) === 0;
  if (isEmpty && !period && hasRows && undated === "snapshot" && emptyGuard === "confirm") {
    throw badAnswer(
      'the answer has no rows and names no day, though earlier ones had rows of days: nobody knows which of them are empty now; "emptyGuard": "off" takes it for a day without usage',
    );
  }
  const days = emptiedDays(
    covered.map(({ day }) => day),
    oldest,
  );
  return [...days.map(emptySlice), ...covered];
}
