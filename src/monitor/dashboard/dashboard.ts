// Answers for the dashboard: what a visitor asks for is read, drawn and kept for some seconds. Whoever looks, and however
// many do, the work of the worker goes on: of what goes on and of usage one reading each is under way at most, which ends
// soon after nobody waits for it, and nothing is loaded that draws before somebody looks.

import type { Logger } from "pino";
import { errorText } from "../../errors.ts";
import type { ReportData } from "../../report/report-data.ts";
import { dayOf, type Window } from "../../usage/day.ts";
import type { Page } from "../page.ts";
import type { Dashboard, Health } from "../routes.ts";
import { readInTurn } from "../shared-reading.ts";
import { keptPages } from "./kept-pages.ts";
import type { Operations } from "./operations.ts";
import { type Period, periodOf } from "./period.ts";

export type DashboardDeps = {
  readonly log: Logger;
  readonly health: () => Health;
  readonly readOperations: () => Promise<Operations>;
  readonly readReport: (period: Window, now: Date, signal: AbortSignal) => Promise<ReportData>;
};

/** Together below the time after which the server gives a silent connection up. */
const LIMITS = { operationsMs: 3_000, usageMs: 5_000 };

export function openDashboard(
  { log, health, readOperations, readReport }: DashboardDeps,
  limits: typeof LIMITS = LIMITS,
): Dashboard {
  const operationsInTurn = readInTurn(limits.operationsMs);
  const usageInTurn = readInTurn(limits.usageMs);
  const reportOf = (period: Window, signal: AbortSignal) => readReport(period, new Date(), signal);

  async function page(period: Period): Promise<Page> {
    const draw = await import("./draw.ts");
    const operations = await operationsInTurn(readOperations);
    if (!operations.ok) {
      const reason = errorText(operations.error);
      log.warn({ reason }, "no dashboard");
      return draw.awayPage([...new Set([...health().reasons, reason])]);
    }
    const usage = await usageInTurn(async (left) => draw.usageOf(await reportOf(period, left)));
    if (!usage.ok) log.warn({ ...period, reason: errorText(usage.error) }, "dashboard without usage");
    return draw.dashboardPage({ period, operations: operations.value, usage, health: health() });
  }

  async function file(period: Period): Promise<Page> {
    const draw = await import("./draw.ts");
    const report = await usageInTurn(async (left) => draw.reportFile(await reportOf(period, left)));
    if (report.ok) return report.value;
    const reason = errorText(report.error);
    log.warn({ ...period, reason }, "no report");
    return draw.awayPage([reason]);
  }

  const answerBy = (make: (period: Period) => Promise<Page>) => {
    const pages = keptPages(make);
    return async (query: URLSearchParams) => {
      const period = periodOf(query, dayOf(new Date()));
      return "fault" in period ? (await import("./draw.ts")).faultPage(period.fault) : pages(period);
    };
  };
  return { page: answerBy(page), report: answerBy(file) };
}
