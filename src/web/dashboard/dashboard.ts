// Answers the requests for the dashboard and the report file. At most one read of the health state and one of the usage are in
// progress, and each page is cached for some seconds, so visitors can't slow the worker down.

import type { Logger } from "pino";
import { oneAtATime } from "../../async.ts";
import { errorText } from "../../errors.ts";
import type { Operations } from "../../health/state.ts";
import type { Breakdown, ReportData } from "../../report/report-data.ts";
import { dayOf, type Window } from "../../usage/days.ts";
import { type Page, textPage } from "../page.ts";
import type { Dashboard, Readiness } from "../routes.ts";
import { type Period, periodOf } from "./period.ts";

export type DashboardDeps = {
  readonly log: Logger;
  readonly readiness: () => Readiness;
  readonly readOperations: () => Promise<Operations>;
  readonly readReport: (period: Window, now: Date, options: ReadOptions) => Promise<ReportData>;
};

type ReadOptions = {
  readonly signal: AbortSignal;
  readonly costRowsMax: number;
  readonly onBreakdown?: (breakdown: Breakdown) => void;
};

/** Calculating a cost takes about 25 ms for each thousand rows of usage by model, and a page should begin within 0.3 s. */
const COST_ROWS_MAX = 5_000;

/** How long a page waits for each read, the wait for earlier reads included. Their sum is below the time after which the server closes a silent connection (SOCKET_IDLE_MS_MAX). */
const READ_LIMITS = { operationsMs: 3_000, usageMs: 5_000 };

export function openDashboard(
  { log, readiness, readOperations, readReport }: DashboardDeps,
  limits: typeof READ_LIMITS = READ_LIMITS,
): Dashboard {
  const inTurnForOperations = oneAtATime(limits.operationsMs);
  const inTurnForUsage = oneAtATime(limits.usageMs);

  async function page(period: Period): Promise<Page> {
    const loading = import("./pages.ts");
    // Both reads at once: each has a connection of its own.
    const readingOperations = inTurnForOperations(readOperations);
    const readingUsage = inTurnForUsage(async (signal) => {
      const { usageContent, drawAhead } = await loading;
      return usageContent(
        await readReport(period, new Date(), { signal, costRowsMax: COST_ROWS_MAX, onBreakdown: drawAhead }),
      );
    });
    const [pages, operations] = await Promise.all([loading, readingOperations]);
    if (!operations.ok) {
      const reason = errorText(operations.error);
      log.warn({ reason }, "dashboard not available: reading the health state failed");
      return pages.unavailablePage([...new Set([...readiness().reasons, reason])]);
    }
    const usage = await readingUsage;
    if (!usage.ok)
      log.warn({ ...period, reason: errorText(usage.error) }, "dashboard without usage: reading it failed");
    return pages.dashboardPage({ period, operations: operations.value, usage, readiness: readiness() });
  }

  async function file(period: Period): Promise<Page> {
    const pages = await import("./pages.ts");
    const report = await inTurnForUsage(async (signal) =>
      pages.reportFilePage(await readReport(period, new Date(), { signal, costRowsMax: COST_ROWS_MAX })),
    );
    if (report.ok) return report.value;
    const reason = errorText(report.error);
    log.warn({ ...period, reason }, "report not available: reading the usage failed");
    return pages.unavailablePage([reason]);
  }

  const answerBy = (make: (period: Period) => Promise<Page>) => {
    const cachedPage = pageCache(make);
    return async (query: URLSearchParams) => {
      const period = periodOf(query, dayOf(new Date()));
      return "error" in period ? (await import("./pages.ts")).invalidQueryPage(period.error) : cachedPage(period);
    };
  };
  return { page: answerBy(page), report: answerBy(file) };
}

// Caches pages for some seconds. Requests for a page that is being made wait for it and share it.

const CACHE_MS = 5_000;
/** Each page has some hundred kilobytes. */
const CACHED_PAGES_MAX = 8;

/** `madeMs` is undefined while the page is being made. */
type CachedPage = { readonly page: Promise<Page>; madeMs: number | undefined };

/** `nowMs` is in milliseconds and never goes back. */
export function pageCache(
  make: (period: Period) => Promise<Page>,
  nowMs: () => number = () => performance.now(),
): (period: Period) => Promise<Page> {
  const cached = new Map<string, CachedPage>();

  async function makePage(key: string, period: Period): Promise<Page> {
    const entry: CachedPage = { page: make(period), madeMs: undefined };
    cached.set(key, entry);
    let isGood = false;
    try {
      const page = await entry.page;
      isGood = page.status < 500;
      return page;
    } finally {
      // Only successful pages are kept: after a failure the next request builds the page again.
      if (isGood) entry.madeMs = nowMs();
      else cached.delete(key);
    }
  }

  return async (period) => {
    for (const [key, { madeMs }] of cached)
      if (madeMs !== undefined && nowMs() - madeMs >= CACHE_MS) cached.delete(key);
    const key = JSON.stringify(period);
    const known = cached.get(key);
    if (known) return known.page;
    return cached.size < CACHED_PAGES_MAX ? makePage(key, period) : cacheFullPage();
  };
}

function cacheFullPage(): Page {
  const seconds = String(CACHE_MS / 1000);
  return {
    ...textPage(503, ["too many different pages are requested at once; try again in some seconds"]),
    headers: { "retry-after": seconds, refresh: seconds },
  };
}
