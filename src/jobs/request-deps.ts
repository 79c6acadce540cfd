// What the export pipeline of usage/ needs for its requests, wired to the service, the keys and the database.

import { raiseSequencesOf } from "../app.ts";
import type { Database } from "../db/connection/database.ts";
import type { InSameTransaction } from "../db/usage/batches.ts";
import { storedDays } from "../db/usage/coverage.ts";
import { recordFailure } from "../db/usage/failures.ts";
import { isNewestEmpty } from "../db/usage/slices.ts";
import { AppError } from "../errors.ts";
import { fetchBreakdown, groupingName } from "../service/usage.ts";
import { dayOf } from "../usage/days.ts";
import type { FetchedAnswer, RequestDeps } from "../usage/export.ts";
import { isObject } from "../usage/json-value.ts";
import { emptiedDays, normalise } from "../usage/normalise.ts";
import type { UsageRequest } from "../usage/plan.ts";
import { type Dialect, filterKey, NO_CONDITIONS } from "../usage/series.ts";
import type { FilterDoubt, Guards, Undated } from "../usage/slice.ts";
import { DEFAULT_DIALECT } from "./dialects.ts";
import type { ExportContext } from "./export-context.ts";
import type { FilterCheck, Strictness } from "./filter-check.ts";

/** What is stored for which run, and how. */
export type StoreSettings = Guards & {
  readonly runId: string;
  readonly idOf: (request: UsageRequest) => number;
  readonly undated: Undated;
  /** What is known about the names in filters, and how strictly they are checked. */
  readonly check?: NameCheck;
  /** Committed together with the answer, or not at all. */
  readonly inSameTransaction?: InSameTransaction;
  /** Whether a request that fails for this reason is tried again by the same run. */
  readonly isRetried?: (code: string) => boolean;
};

type NameCheck = {
  readonly features: Pick<FilterCheck, "asSent" | "readTotal" | "doubtOf">;
  readonly strictness: Strictness;
};

const NO_NAME_CHECK: NameCheck = {
  features: { asSent: async (request) => request, readTotal: async () => {}, doubtOf: async () => undefined },
  strictness: "off",
};

/** The dialect of the request, and why the answer may be wrong. */
type AskedWith = { readonly dialect: Dialect; readonly doubt: FilterDoubt | undefined };

export function requestDeps(
  { app, db, service, keys, dialects, groupings, fetchNumbers, writer, backlog }: Omit<ExportContext, "config" | "ids">,
  {
    runId,
    idOf,
    check = NO_NAME_CHECK,
    emptyGuard,
    cliffGuard,
    undated,
    inSameTransaction: also,
    isRetried = () => false,
  }: StoreSettings,
): Omit<RequestDeps, "log" | "refusalOf"> {
  const { features, strictness } = check;
  const askedFor = new WeakMap<object, AskedWith>();
  return {
    nextFetchNo: fetchNumbers,
    isRetried,
    backlog,
    async fetch(request, signal, onTurn) {
      const ask = async (one: UsageRequest, dialect: Dialect, onItsTurn?: () => Promise<void>) => {
        const sent = await features.asSent(one, dialect);
        const answer = await keys.use(one.series.project, (key) =>
          fetchBreakdown(service, sent, key, signal, { dialect, ...(onItsTurn && { beforeAttempt: onItsTurn }) }),
        );
        return answer;
      };
      const askAndCompare = async (dialect: Dialect) => {
        const answer = await ask(request, dialect, onTurn);
        const doubt = await doubtOf(request, answer, dialect);
        if (isObject(answer)) askedFor.set(answer, { dialect, doubt });
        return { answer, isFit: dialects.fits(request, answer) && doubt === undefined };
      };
      await features.readTotal(request, strictness);
      const dialect = await dialects.forRequest(request);
      const { answer, isFit } = await askAndCompare(dialect);
      const other = isFit ? undefined : await dialects.alternative(request, dialect);
      const used = other === undefined ? answer : (await askAndCompare(other)).answer;
      // Without `onTurn`: these requests share the fetch number of the request itself.
      await groupings.require(request, used, async (one) => ask(one, await dialects.forRequest(one)));
      return used;
    },
    askedAs: ({ series }, answer) => groupingName(series.grouping, asked(answer)?.dialect ?? DEFAULT_DIALECT),
    doubtOf: (answer) => asked(answer)?.doubt,
    undated,
    store: async (request, fetchNo, answer) => {
      const ownDays = request.window === undefined;
      const series = { seriesId: idOf(request), grouping: request.series.grouping };
      const settings = { fetchNo, runId, emptyGuard, cliffGuard, undated, ownDays };
      const slices = ownDays ? await slicesOfOwnDays(db, series.seriesId, answer, settings) : answer.slices;
      const stored = await writer({ ...answer, ...settings, ...series, slices, inSameTransaction: also });
      // Either another process was faster, or the database was replaced by a copy of itself while this process ran.
      if (stored.slices.some(({ decision }) => decision === "stale")) await raiseSequencesOf(app, db);
      return stored;
    },
    fail: (request, fetchNo, days, { reason, code }) =>
      recordFailure(db, {
        seriesId: idOf(request),
        days,
        fetchNo,
        code,
        reason: app.scrubber.scrub(reason),
        isRetried: isRetried(code),
      }),
  };

  function asked(answer: unknown): AskedWith | undefined {
    return isObject(answer) ? askedFor.get(answer) : undefined;
  }

  async function doubtOf(request: UsageRequest, answer: unknown, dialect: Dialect): Promise<FilterDoubt | undefined> {
    if (strictness === "off" || filterKey(request.series.filter) === NO_CONDITIONS) return undefined;
    const slices = undefinedIfUnreadable(() =>
      normalise(request, answer, dayOf(new Date()), groupingName(request.series.grouping, dialect)),
    );
    const doubt = slices && (await features.doubtOf(request, slices, dialect, strictness));
    // An earlier run has already confirmed that these days have no usage.
    return doubt?.kind === "filter-empty" && (await isNewestEmpty(db, idOf(request))) ? undefined : doubt;
  }
}

/** An unreadable answer is ignored here: storing it refuses it. */
function undefinedIfUnreadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

/**
 * Without a window an answer covers the days of its period, including days that had rows and now have none. Throws `bad_answer`
 * if the answer has neither rows nor a date, because nobody knows which days are empty.
 */
async function slicesOfOwnDays(
  db: Database,
  seriesId: number,
  { period, rowCount, slices }: FetchedAnswer,
  { emptyGuard, undated }: Pick<StoreSettings, "emptyGuard" | "undated">,
): Promise<FetchedAnswer["slices"]> {
  const { oldest, hasRows } = await storedDays(db, seriesId, period?.start);
  if (rowCount === 0 && !period && hasRows && undated === "snapshot" && emptyGuard === "confirm") {
    throw new AppError(
      "bad_answer",
      'the answer has no rows and names no day, though earlier ones had rows of days: nobody knows which of them are empty now; "emptyGuard": "off" takes it for a day without usage',
    );
  }
  return () => {
    const covered = slices();
    const days = emptiedDays(
      covered.map(({ day }) => day),
      oldest,
    );
    return [...days.map((day) => ({ day, undated: false, rows: [] })), ...covered];
  };
}
