// Answers the requests for the pages of the dashboard and the report file. At most one read of the health state and one of the usage are
// in progress, so visitors can't slow the worker down.

import type { Logger } from "pino";
import { memoizeAsync, oneAtATime, type ReadResult } from "../../async.ts";
import { errorText } from "../../errors.ts";
import type { HealthState } from "../../facts/health.ts";
import { InvalidQuestion } from "../../facts/question.ts";
import { html } from "../../show/html.ts";
import { contentSecurityPolicy } from "../../show/page.ts";
import { dayOf } from "../../usage/days.ts";
import { scriptPage } from "../assets.ts";
import type { Answer, Page, Readiness } from "../page.ts";
import { framePage, ownParameters, PAGES, type PageName } from "./frame.ts";
import type { PageContent, PageData } from "./pages.ts";
import { projectChoice } from "./project-choice.ts";
import type { ReportData } from "./report-file.ts";
import { readView, type View } from "./view.ts";

export type DashboardDeps = {
  readonly log: Logger;
  readonly readiness: () => Readiness;
  readonly readHealth: () => Promise<HealthState>;
  /** Reads what a page shows besides the health state. */
  readonly read: { readonly [P in keyof PageData]: (view: View, signal: AbortSignal) => Promise<PageData[P]> };
  readonly readReport: (view: View, signal: AbortSignal) => Promise<ReportData>;
};

/** Reads a page that is made elsewhere; its content may depend on the health state. */
type ReadContent = (signal: AbortSignal) => Promise<(health: HealthState) => PageContent>;

export type Dashboard = {
  /** Path to answer. */
  readonly pages: Readonly<Record<string, Answer>>;
  /** Puts a page that is made elsewhere into the frame of the dashboard. */
  readonly framed: (page: PageName, view: View, read: ReadContent) => Promise<Page>;
};

/**
 * How long a page waits for each of its two reads, which run at the same time; the wait for earlier reads is included. Below the time after
 * which the server closes a silent connection (SOCKET_IDLE_MS_MAX).
 */
const READ_LIMITS = { healthMs: 8_000, pageMs: 8_000 };

/** How long one reading of the health state serves all pages. */
const HEALTH_MS = 5_000;

const UNKNOWN_ID = 'unknown parameter "id"; only the page of a run has it';

/** Of these pages the reads are short and read no usage, so that they do not wait for pages that do. */
const SHORT_READS: readonly PageName[] = ["run"];

export function openDashboard(
  { log, readiness, readHealth, read, readReport }: DashboardDeps,
  limits: typeof READ_LIMITS = READ_LIMITS,
): Dashboard {
  const inTurnForHealth = oneAtATime(limits.healthMs);
  const inTurnForUsage = oneAtATime(limits.pageMs);
  const inTurnForShortReads = oneAtATime(limits.pageMs);
  const remembered = memoizeAsync<ReadResult<HealthState>>(({ ok }) => (ok ? HEALTH_MS : 0));

  async function framed(page: PageName, view: View, readContent: ReadContent): Promise<Page> {
    const loading = import("./pages.ts");
    // Both reads at once: each has a connection of its own.
    const inTurn = SHORT_READS.includes(page) ? inTurnForShortReads : inTurnForUsage;
    const reading = inTurn(readContent);
    const [pages, health] = await Promise.all([loading, remembered("health", () => inTurnForHealth(readHealth))]);
    if (!health.ok) {
      const reason = errorText(health.error);
      log.warn({ reason }, "dashboard not available: reading the health state failed");
      return pages.unavailablePage([...new Set([...readiness().reasons, reason])]);
    }
    const frame = { page, view, health: health.value, readiness: readiness() };
    try {
      const choice = projectChoice(page, view, health.value);
      if (choice) return framePage({ ...frame, ...choice });
      const content = await reading;
      if (!content.ok) throw content.error;
      return framePage({ ...frame, ...content.value(health.value) });
    } catch (error) {
      if (error instanceof InvalidQuestion) return pages.invalidPage(page, error.message);
      const reason = errorText(error);
      log.warn({ page, ...view.period, reason }, "dashboard page without its content: reading it failed");
      const notice = html`<div class="notice bad"><strong>This page could not be read.</strong> <bdi>${reason}</bdi>: choose fewer days, or try again.</div>`;
      // With this status the script of a page that is open already keeps what it shows, and says that it is old.
      return framePage({ ...frame, notice, sections: [], status: 503 });
    }
  }

  function ownPage<P extends keyof PageData>(page: P, view: View): Promise<Page> {
    return framed(page, view, async (signal) => {
      const { PAGE_CONTENT } = await import("./pages.ts");
      const data = await read[page](view, signal);
      return (health) => PAGE_CONTENT[page](data, view, health);
    });
  }

  async function reportFile(view: View): Promise<Page> {
    const [pages, { renderReport }] = await Promise.all([import("./pages.ts"), import("./report-file.ts")]);
    const { body: script } = await scriptPage();
    const report = await inTurnForUsage((signal) => readReport(view, signal));
    if (report.ok) {
      const { start, end } = view.period;
      const policy = contentSecurityPolicy({ script });
      return {
        status: 200,
        contentType: "text/html; charset=utf-8",
        body: renderReport(report.value, new Date(), script),
        headers: {
          "content-security-policy": `${policy}; frame-ancestors 'none'`,
          "content-disposition": `attachment; filename="usage-${start}-${end}.html"`,
        },
      };
    }
    if (report.error instanceof InvalidQuestion) return pages.invalidPage("overview", report.error.message);
    const reason = errorText(report.error);
    log.warn({ ...view.period, reason }, "report not available: reading the usage failed");
    return pages.unavailablePage([reason]);
  }

  const answerBy =
    (page: keyof PageData | "report"): Answer =>
    async (query) => {
      const view = readView(query, dayOf(new Date()), page === "report" ? [] : ownParameters(page));
      const error = "error" in view ? view.error : page !== "run" && view.id !== undefined ? UNKNOWN_ID : undefined;
      if (!("error" in view) && error === undefined) return page === "report" ? reportFile(view) : ownPage(page, view);
      return (await import("./pages.ts")).invalidPage(page === "report" ? "overview" : page, error ?? "");
    };
  const own = (Object.keys(read) as (keyof PageData)[]).map((page) => [PAGES[page].path, answerBy(page)] as const);
  return { pages: { ...Object.fromEntries(own), "/report.html": answerBy("report") }, framed };
}
