// What the export pipeline needs of the world, wired to the service, the database and the keys.

import { fetchBreakdown, groupingName } from "../api/breakdown.ts";
import type { Service } from "../api/http.ts";
import type { App } from "../app.ts";
import type { Database } from "../db/database.ts";
import { recordFailure } from "../db/failures.ts";
import { type MergeResult, mergeAnswer } from "../db/merge.ts";
import { nextFetchNo } from "../db/runs.ts";
import type { Tx } from "../db/transaction.ts";
import type { ExportDeps } from "../usage/export.ts";
import type { UsageRequest } from "../usage/plan.ts";
import type { KeyRing } from "./keys-in-use.ts";

export type ExportWorld = {
  readonly app: App;
  readonly db: Database;
  readonly service: Service;
  readonly keys: KeyRing;
};

/** What is stored for which run, and how. */
export type StoreSettings = {
  readonly runId: string;
  readonly idOf: (request: UsageRequest) => number;
  readonly emptyGuard: "confirm" | "off";
  /** Done together with the answer, or not at all. */
  readonly also?: (tx: Tx, result: MergeResult) => Promise<void>;
  /** Whether a request that fails for this reason is tried again by the same run. */
  readonly triedAgain?: (code: string) => boolean;
};

export function exportDeps(
  { app, db, service, keys }: ExportWorld,
  { runId, idOf, emptyGuard, also, triedAgain = () => false }: StoreSettings,
): Omit<ExportDeps, "log" | "refuse"> {
  return {
    nextFetchNo: () => nextFetchNo(db),
    fetch: (request, signal) =>
      keys.use(request.series.project, (key) => fetchBreakdown(service, request, key, signal)),
    askedAs: ({ series }) => groupingName(series.grouping, service.dialect),
    store: (request, fetchNo, slices) => {
      const ownDays = request.window === undefined;
      const { grouping } = request.series;
      const answer = { seriesId: idOf(request), grouping, fetchNo, runId, slices, emptyGuard, ownDays };
      return mergeAnswer(db, answer, also);
    },
    fail: (request, fetchNo, days, { reason, code }) =>
      recordFailure(db, {
        seriesId: idOf(request),
        days,
        fetchNo,
        reason: app.scrubber.scrub(reason),
        triedAgain: triedAgain(code),
      }),
  };
}
