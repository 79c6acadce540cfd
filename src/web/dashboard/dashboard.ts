// Answers the requests for the dashboard and the report file. At most one read of operations and one of usage are in progress,
// and each page is cached for some seconds, so visitors cannot slow the worker down.

import type { Logger } from "pino";
import { oneAtATime } from "../../async.ts";
import { errorText } from "../../errors.ts";
import type { Operations } from "../../health/state.ts";
import type { ReportData } from "../../report/report-data.ts";
import { dayOf, type Window } from "../../usage/days.ts";
import { type Page, textPage } from "../page.ts";
import type { Dashboard, Readiness } from "../routes.ts";
import { type Period, periodOf } from "./period.ts";

export type DashboardDeps = {
  readonly log: Logger;
  readonly readiness: () => Readiness;
  readonly readOperations: () => Promise<Operations>;
  readonly readReport: (period: Window, now: Date, signal: AbortSignal) => Promise<ReportData>;
};

/** Together below the time after which the server gives a silent connection up. */
const READ_LIMITS = { operationsMs: 3_000, usageMs: 5_000 };

export function openDashboard(
  { log, readiness, readOperations, readReport }: DashboardDeps,
  limits: typeof READ_LIMITS = READ_LIMITS,
): Dashboard {
  const operationsInTurn = oneAtATime(limits.operationsMs);
  const usageInTurn = oneAtATime(limits.usageMs);
  const reportOf = (period: Window, signal: AbortSignal) => readReport(period, new Date(), signal);

  async function page(period: Period): Promise<Page> {
    const draw = await import("./pages.ts");
    const operations = await operationsInTurn(readOperations);
    if (!operations.ok) {
      const reason = errorText(operations.error);
      log.warn({ reason }, "no dashboard");
      return draw.unavailablePage([...new Set([...readiness().reasons, reason])]);
    }
    const usage = await usageInTurn(async (left) => draw.usageContent(await reportOf(period, left)));
    if (!usage.ok) log.warn({ ...period, reason: errorText(usage.error) }, "dashboard without usage");
    return draw.dashboardPage({ period, operations: operations.value, usage, readiness: readiness() });
  }

  async function file(period: Period): Promise<Page> {
    const draw = await import("./pages.ts");
    const report = await usageInTurn(async (left) => draw.reportFilePage(await reportOf(period, left)));
    if (report.ok) return report.value;
    const reason = errorText(report.error);
    log.warn({ ...period, reason }, "no report");
    return draw.unavailablePage([reason]);
  }

  const answerBy = (make: (period: Period) => Promise<Page>) => {
    const pages = pageCache(make);
    return async (query: URLSearchParams) => {
      const period = periodOf(query, dayOf(new Date()));
      return "fault" in period ? (await import("./pages.ts")).invalidQueryPage(period.fault) : pages(period);
    };
  };
  return { page: answerBy(page), report: answerBy(file) };
}

// Gives a page that is being made, or was made some seconds ago, to all who ask for it.

const CACHE_MS = 5_000;
/** Each is some hundred kilobytes. */
const CACHED_PAGES_MAX = 8;

type CachedPage = { readonly page: Promise<Page>; madeMs: number | undefined };

/** `nowMs` is in milliseconds and never goes back. */
export function pageCache(
  make: (period: Period) => Promise<Page>,
  nowMs: () => number = () => performance.now(),
): (period: Period) => Promise<Page> {
  const pages = new Map<string, CachedPage>();

  async function begin(key: string, period: Period): Promise<Page> {
    const kept: CachedPage = { page: make(period), madeMs: undefined };
    pages.set(key, kept);
    let isGood = false;
    try {
      const page = await kept.page;
      isGood = page.status < 500;
      return page;
    } finally {
      // Only successful pages are kept: after a failure the next request builds the page again.
      if (isGood) kept.madeMs = nowMs();
      else pages.delete(key);
    }
  }

  return async (period) => {
    for (const [key, { madeMs }] of pages) if (madeMs !== undefined && nowMs() - madeMs >= CACHE_MS) pages.delete(key);
    const key = JSON.stringify(period);
    const known = pages.get(key);
    if (known) return known.page;
    return pages.size < CACHED_PAGES_MAX ? begin(key, period) : cacheFullPage();
  };
}

function cacheFullPage(): Page {
  const seconds = String(CACHE_MS / 1000);
  return {
    ...textPage(503, ["too many different pages are asked for at once; this one comes in some seconds"]),
    headers: { "retry-after": seconds, refresh: seconds },
  };
}
