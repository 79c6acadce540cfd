// What the export pipeline needs of the world, wired to the service, the database and the keys.

import { fetchBreakdown, groupingName } from "../api/breakdown.ts";
import type { Dialect, Service } from "../api/http.ts";
import { type App, raiseSequencesOf } from "../app.ts";
import type { Database } from "../db/database.ts";
import { recordFailure } from "../db/failures.ts";
import { type FetchNumbers, openFetchNumbers } from "../db/fetch-numbers.ts";
import type { Also } from "../db/merge.ts";
import { type Merging, openMerging } from "../db/merging.ts";
import { storedDays } from "../db/slice-statuses.ts";
import { AppError } from "../errors.ts";
import { emptiedDays } from "../usage/answer-dates.ts";
import { type Backlog, openBacklog } from "../usage/backlog.ts";
import type { FetchedAnswer, RequestDeps } from "../usage/export-request.ts";
import { isObject } from "../usage/json-value.ts";
import type { UsageRequest } from "../usage/plan.ts";
import type { Guards } from "../usage/slice.ts";
import type { Undated } from "../usage/undated.ts";
import { DEFAULT_DIALECT, type Dialects } from "./dialects.ts";
import type { FeatureCheck } from "./feature-check.ts";
import { type GroupingCheck, openGroupingCheck } from "./grouping-check.ts";
import type { KeyRing } from "./keys-in-use.ts";

/** Shared by all that run in this process, so that what comes at the same time is asked, held and stored together. */
type Together = {
  readonly fetchNumbers: FetchNumbers;
  readonly merging: Merging;
  readonly backlog: Backlog;
  readonly groupings: GroupingCheck;
};

export type ExportWorld = Together & {
  readonly app: App;
  readonly db: Database;
  readonly service: Service;
  readonly keys: KeyRing;
  readonly dialects: Dialects;
};

export function openTogether(db: Database): Together {
  return {
    fetchNumbers: openFetchNumbers(db),
    merging: openMerging(db),
    backlog: openBacklog(),
    groupings: openGroupingCheck(),
  };
}

/** What is stored for which run, and how. */
export type StoreSettings = Guards & {
  readonly runId: string;
  readonly idOf: (request: UsageRequest) => number;
  readonly undated: Undated;
  /** The request by the names that the service takes in the dialect. */
  readonly asSent?: FeatureCheck["asSent"];
  /** Done together with the answer, or not at all. */
  readonly also?: Also;
  /** Whether a request that fails for this reason is tried again by the same run. */
  readonly triedAgain?: (code: string) => boolean;
};

export function exportDeps(
  { app, db, service, keys, dialects, groupings, fetchNumbers, merging, backlog }: ExportWorld,
  {
    runId,
    idOf,
    asSent = async (request) => request,
    emptyGuard,
    cliffGuard,
    undated,
    also,
    triedAgain = () => false,
  }: StoreSettings,
): Omit<RequestDeps, "log" | "refuse"> {
  const dialectOf = new WeakMap<object, Dialect>();
  return {
    nextFetchNo: fetchNumbers,
    triedAgain,
    backlog,
    async fetch(request, signal, onTurn) {
      const ask = async (one: UsageRequest, dialect: Dialect, onItsTurn?: () => Promise<void>) => {
        const sent = await asSent(one, dialect);
        const answer = await keys.use(one.series.project, (key) =>
          fetchBreakdown(service, sent, key, signal, { dialect, ...(onItsTurn && { onTurn: onItsTurn }) }),
        );
        if (isObject(answer)) dialectOf.set(answer, dialect);
        return answer;
      };
      const dialect = await dialects.of(request);
      let answer = await ask(request, dialect, onTurn);
      if (!dialects.fits(request, answer)) {
        const other = await dialects.instead(request, dialect);
        if (other !== undefined) answer = await ask(request, other, onTurn);
      }
      // Without `onTurn`: the number of the fetch is that of the request itself.
      await groupings.require(request, answer, async (other) => ask(other, await dialects.of(other)));
      return answer;
    },
    askedAs: ({ series }, answer) =>
      groupingName(series.grouping, (isObject(answer) && dialectOf.get(answer)) || DEFAULT_DIALECT),
    undated,
    store: async (request, fetchNo, answer) => {
      const ownDays = request.window === undefined;
      const series = { seriesId: idOf(request), grouping: request.series.grouping };
      const settings = { fetchNo, runId, emptyGuard, cliffGuard, undated, ownDays };
      const slices = ownDays ? await slicesOfOwnDays(db, series.seriesId, answer, settings) : answer.slices;
      const stored = await merging({ ...answer, ...settings, ...series, slices, also });
      // Another process was faster, or the database was replaced by its copy under this one.
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
        triedAgain: triedAgain(code),
      }),
  };
}

/**
 * Without a window an answer is about the days of its period, also those that had rows and have none any more. Throws
 * `bad_answer` where it has neither rows nor a date, and nobody knows which days are empty.
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
