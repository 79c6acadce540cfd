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
import { knownProjects, projectsFound } from "../projects.ts";
import { type View, viewOf, viewQuery } from "../question.ts";
import { framePage, PAGES, type PageName, pageHref } from "./frame.ts";
import type { PageData } from "./pages.ts";
import type { ReportData } from "./report-file.ts";

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
const READ_LIMITS = { healthMs: 8_000, pageMs: 8_000 };

/** How long one reading of the health state serves all pages. */
const HEALTH_MS = 5_000;

/** Path to answer. */
export function openDashboard(
  { log, readiness, readHealth, read, readReport }: DashboardDeps,
  limits: typeof READ_LIMITS = READ_LIMITS,
): Readonly<Record<string, Answer>> {
  const inTurnForHealth = oneAtATime(limits.healthMs);
  const inTurnForUsage = oneAtATime(limits.pageMs);
  // The page of a run reads no usage, so that it need not wait for pages that do.
  const inTurnForRuns = oneAtATime(limits.pageMs);
  const remembered = memoizeAsync<ReadResult<HealthState>>(({ ok }) => (ok ? HEALTH_MS : 0));

  async function ownPage<P extends PageName>(page: P, view: View): Promise<Page> {
    const loading = import("./pages.ts");
    // Both reads at once: each has a connection of its own.
    const inTurn = page === "run" ? inTurnForRuns : inTurnForUsage;
    const reading = inTurn((signal) => read[page](view, signal));
    const [pages, health] = await Promise.all([loading, remembered("health", () => inTurnForHealth(readHealth))]);
    if (!health.ok) {
      const reason = errorText(health.error);
      log.warn({ reason }, "dashboard not available: reading the health state failed");
      return pages.unavailablePage([...new Set([...readiness().reasons, reason])]);
    }
    const frame = { page, view, health: health.value, readiness: readiness() };
    const choice = projectChoice(page, view, health.value);
    if (choice) return framePage({ ...frame, title: "Which project?", sections: [choice] });
    const content = await reading;
    if (content.ok) return framePage({ ...frame, ...pages.PAGE_CONTENT[page](content.value, view, health.value) });
    if (content.error instanceof InvalidQuestion) throw content.error;
    const reason = errorText(content.error);
    log.warn({ page, ...view.period, reason }, "dashboard page without its content: reading it failed");
    const notice = html`<div class="notice bad"><strong>This page could not be read.</strong> <bdi>${reason}</bdi>: choose fewer days, or try again.</div>`;
    return framePage({ ...frame, notice, sections: [], status: 503 });
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
    if (report.error instanceof InvalidQuestion) throw report.error;
    const reason = errorText(report.error);
    log.warn({ ...view.period, reason }, "report not available: reading the usage failed");
    return pages.unavailablePage([reason]);
  }

  const answerBy =
    (page: PageName | "report"): Answer =>
    async (query) => {
      try {
        const view = viewOf(page, query, dayOf(new Date()));
        return await (page === "report" ? reportFile(view) : ownPage(page, view));
      } catch (error) {
        if (!(error instanceof InvalidQuestion)) throw error;
        return (await import("./pages.ts")).invalidPage(page === "report" ? "overview" : page, error.message);
      }
    };
  const own = (Object.keys(PAGES) as PageName[]).map((page) => [PAGES[page].path, answerBy(page)] as const);
  return { ...Object.fromEntries(own), "/report.html": answerBy("report") };
}

/** Undefined if the page can show what its URL asks for. Throws InvalidQuestion if no project may be meant. */
function projectChoice(page: PageName, view: View, { projects }: HealthState) {
  const { project: text } = view;
  if (text === undefined || projects.some(({ project, projectId }) => text === project || text === projectId))
    return undefined;
  const hrefOf = (project: string) => `${pageHref(page)}${viewQuery(view, { project })}`;
  const found = projectsFound(text, knownProjects(projects), hrefOf);
  if (!found) throw new InvalidQuestion(`project: no project ${JSON.stringify(text)} is known`);
  return found;
}
