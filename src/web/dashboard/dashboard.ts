// Answers the requests for the pages of the dashboard and the report file. At most one read of the health state and one of the usage are
// in progress, so visitors can't slow the worker down.

import type { Logger } from "pino";
import { memoizeAsync, oneAtATime } from "../../async.ts";
import { errorText } from "../../errors.ts";
import type { HealthState } from "../../facts/health.ts";
import { InvalidQuestion } from "../../facts/question.ts";
import { html } from "../../show/html.ts";
import { dayOf } from "../../usage/days.ts";
import { scriptPage } from "../assets.ts";
import type { MakePage, Page, Readiness } from "../page.ts";
import { type View, viewOf } from "../question.ts";
import { framePage, PAGES, type PageName } from "./frame.ts";
import { invalidPage, PAGE_CONTENT, type PageData, type ReportData, renderReport, unavailablePage } from "./pages.ts";

export type DashboardDeps = {
  readonly log: Logger;
  readonly readiness: () => Readiness;
  readonly readHealth: () => Promise<HealthState>;
  /** Reads what a page shows besides the health state. */
  readonly read: { readonly [P in PageName]: (view: View, signal: AbortSignal) => Promise<PageData[P]> };
  readonly readReport: (view: View, signal: AbortSignal) => Promise<ReportData>;
};

/**
 * How long a page waits for each of its two reads, which run at the same time; the wait for earlier reads is included. Below the time after
 * which the server closes a silent connection (SOCKET_IDLE_MS_MAX).
 */
const READ_MS_MAX = 8_000;

/** How long one reading of the health state serves all pages. */
const HEALTH_MS = 5_000;

/** The pages by path, each as the function that answers a request. */
export function openDashboard(
  { log, readiness, readHealth, read, readReport }: DashboardDeps,
  readMsMax: number = READ_MS_MAX,
): Readonly<Record<string, MakePage>> {
  const inTurnForHealth = oneAtATime(readMsMax);
  const inTurn = oneAtATime(readMsMax);
  const remembered = memoizeAsync<HealthState>(() => HEALTH_MS);

  async function ownPage<P extends PageName>(page: P, view: View): Promise<Page> {
    // Both reads at once: each has a connection of its own.
    const [health, content] = await Promise.allSettled([
      remembered("health", () => inTurnForHealth(readHealth)),
      inTurn((signal) => read[page](view, signal)),
    ]);
    if (health.status === "rejected") {
      const reason = errorText(health.reason);
      log.warn({ reason }, "dashboard not available: reading the health state failed");
      return unavailablePage([...new Set([...readiness().reasons, reason])]);
    }
    const frame = { page, view, health: health.value, readiness: readiness() };
    if (content.status === "fulfilled") {
      return framePage({ ...frame, ...PAGE_CONTENT[page](content.value, view, health.value) });
    }
    if (content.reason instanceof InvalidQuestion) throw content.reason;
    const reason = errorText(content.reason);
    log.warn({ page, ...view.period, reason }, "dashboard page without its content: reading it failed");
    const notice = html`<div class="notice bad"><strong>This page could not be read.</strong> <bdi>${reason}</bdi>: choose fewer days, or try again.</div>`;
    return framePage({ ...frame, notice, sections: [], status: 503 });
  }

  async function reportFile(view: View): Promise<Page> {
    const { body: script } = await scriptPage();
    try {
      const report = await inTurn((signal) => readReport(view, signal));
      return download(renderReport(report, new Date(), script), view);
    } catch (error) {
      if (error instanceof InvalidQuestion) throw error;
      const reason = errorText(error);
      log.warn({ ...view.period, reason }, "report not available: reading the usage failed");
      return unavailablePage([reason]);
    }
  }

  async function answer(page: PageName | "report", query: URLSearchParams): Promise<Page> {
    try {
      const view = viewOf(page, query, dayOf(new Date()));
      return await (page === "report" ? reportFile(view) : ownPage(page, view));
    } catch (error) {
      if (!(error instanceof InvalidQuestion)) throw error;
      return invalidPage(page === "report" ? "overview" : page, error.message);
    }
  }

  const makers: Record<string, MakePage> = {};
  for (const page of Object.keys(PAGES) as PageName[]) makers[PAGES[page].path] = (query) => answer(page, query);
  return { ...makers, "/report.html": (query) => answer("report", query) };
}

function download(body: string, { period: { start, end } }: View): Page {
  const headers = { "content-disposition": `attachment; filename="usage-${start}-${end}.html"` };
  return { status: 200, contentType: "text/html; charset=utf-8", body, headers };
}
