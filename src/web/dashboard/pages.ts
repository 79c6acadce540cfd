// Answers the requests for the pages of the dashboard and the report file. At most one read of the health state and one of a page's content
// are in progress, so visitors can't slow the worker down.

import type { Logger } from "pino";
import { memoizeAsync, oneAtATime } from "../../async.ts";
import { errorText } from "../../errors.ts";
import { preferCost, readAnswer } from "../../facts/amounts.ts";
import { comparedWindow } from "../../facts/answer.ts";
import { changes } from "../../facts/changes.ts";
import { causeTitle } from "../../facts/conditions.ts";
import type { HealthState } from "../../facts/health.ts";
import type { RunDetails } from "../../facts/jobs.ts";
import { comparedQuestion, type Overview, overview, type ReportData } from "../../facts/overview.ts";
import { InvalidQuestion } from "../../facts/question.ts";
import type { Query } from "../../facts/scope.ts";
import { counted, dayLabel, instantText, periodText } from "../../show/format.ts";
import { type Html, html, nameHtml } from "../../show/html.ts";
import { isNew, leadSentences } from "../../show/sentences.ts";
import { budgetsOf } from "../../usage/budgets.ts";
import { dayCount, dayOf } from "../../usage/days.ts";
import { scriptPage } from "../assets.ts";
import { type MakePage, type Page, READ_MS_MAX, type Readiness } from "../page.ts";
import { PAGES, type PageName, pageHref, usageQuestion, type View, viewOf } from "../url.ts";
import { framelessPage, framePage, type PageContent, reportDocument } from "./frame.ts";
import { type DataHealth, healthSections } from "./health-sections.ts";
import { runSections } from "./jobs-sections.ts";
import { overviewSections } from "./overview-sections.ts";
import { type UsageAnswer, usageContent } from "./usage-sections.ts";

/** What each page reads besides the health state. */
export type PageData = {
  readonly overview: Overview;
  readonly usage: UsageAnswer;
  readonly health: DataHealth;
  readonly run: RunDetails | undefined;
};

type PageSources = {
  /** Everything that `read` queries is as of one moment. */
  readonly queryAtOneMoment: <T>(read: (query: Query) => Promise<T>, signal: AbortSignal) => Promise<T>;
  readonly readDataHealth: (question: ReturnType<typeof comparedQuestion>, signal: AbortSignal) => Promise<DataHealth>;
  readonly readRun: (id: string) => Promise<RunDetails | undefined>;
};

/** For each page, the function that reads its data. */
export function pageReads({ queryAtOneMoment, readDataHealth, readRun }: PageSources): DashboardDeps["read"] {
  return {
    overview: (view, signal) =>
      queryAtOneMoment((query) => overview(query, comparedQuestion(view), dayOf(new Date())), signal),
    usage: (view, signal) => queryAtOneMoment((query) => usageAnswer(query, view), signal),
    health: (view, signal) => readDataHealth(comparedQuestion(view), signal),
    run: (view) => readRun(view.pageParameters.id ?? ""),
  };
}

const REASON_GROUPINGS = ["project", "line_item", "model", "accessor"] as const;
const REASONS_MAX = 5;

/** If the URL has none of these parameters, the page chooses the cost, if it is known. */
const QUESTION_PARAMETERS = ["metric", "grouping", "filter", "group", "no-value"];

/** The answer. It has the reasons of its change unless nothing is compared, or the question names a filter or a group. */
async function usageAnswer(query: Query, view: View): Promise<UsageAnswer> {
  const question = usageQuestion(view, dayOf(new Date()));
  const isChosen = QUESTION_PARAMETERS.some((name) => view.pageParameters[name] !== undefined);
  const asked = isChosen ? question : await preferCost(query, question);
  const answer = await readAnswer(query, asked);
  const { before, filter, group, ...rest } = asked;
  if (!before || !answer.compared || filter !== undefined || group !== undefined) return { answer, change: undefined };
  const change = await changes(query, { ...rest, before, groupings: REASON_GROUPINGS, limit: REASONS_MAX });
  return { answer, change };
}

export type DashboardDeps = {
  readonly log: Logger;
  readonly readiness: () => Readiness;
  readonly readHealth: () => Promise<HealthState>;
  readonly read: { readonly [P in PageName]: (view: View, signal: AbortSignal) => Promise<PageData[P]> };
  readonly readReport: (view: View, signal: AbortSignal) => Promise<ReportData>;
};

/** How long one reading of the health state serves all pages. */
const HEALTH_MS = 5_000;

/** The pages by path, each as the function that answers a request. */
export function openDashboard(
  { log, readiness, readHealth, read, readReport }: DashboardDeps,
  readMsMax: number = READ_MS_MAX,
): Readonly<Record<string, MakePage>> {
  const readHealthInTurn = oneAtATime(readMsMax);
  const readContentInTurn = oneAtATime(readMsMax);
  const cachedHealth = memoizeAsync<HealthState>(() => HEALTH_MS);

  async function dashboardPage<P extends PageName>(page: P, view: View): Promise<Page> {
    // Both reads at once: each has a connection of its own.
    const [health, content] = await Promise.allSettled([
      cachedHealth("health", () => readHealthInTurn(readHealth)),
      readContentInTurn((signal) => read[page](view, signal)),
    ]);
    if (health.status === "rejected") {
      const reason = errorText(health.reason);
      log.warn({ reason }, "dashboard not available: reading the health state failed");
      return unavailablePage([...new Set([...readiness().reasons, reason])]);
    }
    const frame = { page, view, health: health.value, readiness: readiness() };
    if (content.status === "fulfilled")
      return framePage({ ...frame, ...PAGE_CONTENT[page](content.value, view, health.value) });
    if (content.reason instanceof InvalidQuestion) throw content.reason;
    const reason = errorText(content.reason);
    log.warn({ page, ...view.period, reason }, "dashboard page without its content: reading it failed");
    const notice = html`<div class="notice bad"><strong>This page could not be read.</strong> <bdi>${reason}</bdi>: choose fewer days, or try again.</div>`;
    return framePage({ ...frame, notice, sections: [], status: 503 });
  }

  const readReportInTurn = (view: View) => readContentInTurn((signal) => readReport(view, signal));
  async function answer(page: PageName | "report", query: URLSearchParams): Promise<Page> {
    try {
      const view = viewOf(page, query, dayOf(new Date()));
      return await (page === "report" ? reportFile(view, log, readReportInTurn) : dashboardPage(page, view));
    } catch (error) {
      if (!(error instanceof InvalidQuestion)) throw error;
      return invalidPage(page === "report" ? "overview" : page, error.message);
    }
  }

  const makers: Record<string, MakePage> = {};
  for (const page of Object.keys(PAGES) as PageName[]) makers[PAGES[page].path] = (query) => answer(page, query);
  return { ...makers, "/report.html": (query) => answer("report", query) };
}

async function reportFile(view: View, log: Logger, read: (view: View) => Promise<ReportData>): Promise<Page> {
  const { body: script } = await scriptPage();
  try {
    const report = await read(view);
    const { start, end } = view.period;
    return {
      status: 200,
      contentType: "text/html; charset=utf-8",
      body: renderReport(report, new Date(), script),
      headers: { "content-disposition": `attachment; filename="usage-${start}-${end}.html"` },
    };
  } catch (error) {
    if (error instanceof InvalidQuestion) throw error;
    const reason = errorText(error);
    log.warn({ ...view.period, reason }, "report not available: reading the usage failed");
    return unavailablePage([reason]);
  }
}

type Render<P extends PageName> = (data: PageData[P], view: View, health: HealthState) => PageContent;

export const PAGE_CONTENT: { readonly [P in PageName]: Render<P> } = {
  overview(data, view, health) {
    // Before anything is exported, the verdict above the sections says what to do.
    if (isNew(data)) return { sections: [] };
    const budgets = budgetsOf(health.budgets, data.total.question.project);
    return {
      lead: leadHtml(leadSentences(data, budgets, troubleOf(data, health))),
      compared: comparedWindow(data.cost ?? data.total),
      sections: overviewSections(data, budgets, view),
    };
  },
  usage: usageContent,
  health: (data, view, health) => ({ sections: healthSections(data, view, health) }),
  run(details, view) {
    const id = view.pageParameters.id ?? "without an id";
    if (!details)
      throw new InvalidQuestion(`id: there is no run ${id}; runs are deleted after the days of runs.keepDays`);
    const { job, startedAt } = details.run;
    // A heading would break an ISO date at its hyphens.
    const day = periodText({ start: dayOf(startedAt), end: dayOf(startedAt) });
    return {
      title: `Run of ${job}, ${day}, ${startedAt.toISOString().slice(11, 16)} UTC`,
      sections: runSections(details),
    };
  },
};

function leadHtml([first, ...others]: readonly string[]): Html | undefined {
  if (first === undefined) return undefined;
  return html`<div class="lead"><p class="sentence">${first}</p>${others.length > 0 && html`<p>${others.join(" ")}</p>`}</div>\n`;
}

/** Says after which day there is no data, and why. Undefined if the newest day has data, or if nothing fails now. */
function troubleOf({ total, period }: Overview, { causes }: HealthState): string | undefined {
  // A refusal of billing alone never explains missing usage. On the page of one project, neither does a refused key of another project.
  const isOfOtherProject = (name: string | null) =>
    name !== null && total.question.project !== null && !total.projects.includes(name);
  const cause = causes.find(({ project, isBillingRefused }) => !isBillingRefused && !isOfOtherProject(project));
  const newest = total.days.findLast(({ state }) => state === "final" || state === "settling");
  if (!cause || newest?.day === total.days.at(-1)?.day) return undefined;
  const what = newest ? `No data after ${dayLabel(newest.day)}` : `There is no data for ${periodText(period)}`;
  return `${what}: ${causeTitle(cause)}.`;
}

const RETRY_SECONDS = 10;

export function unavailablePage(reasons: readonly string[]): Page {
  const root = pageHref("overview");
  const lead = html`<div class="notice bad"><strong>The stored data can't be read now.</strong>
<ul>${reasons.map((reason) => html`<li><bdi>${reason}</bdi></li>`)}</ul></div>
<p>This page is requested again every ${RETRY_SECONDS} seconds. <a href="${root}readyz">/readyz</a> and <a href="${root}metrics">/metrics</a> still answer.</p>`;
  const seconds = String(RETRY_SECONDS);
  return framelessPage(503, "The dashboard is not available", lead, { refresh: seconds, "retry-after": seconds });
}

export function invalidPage(page: PageName, error: string): Page {
  const lead = html`<div class="notice bad"><strong>This address can't be shown.</strong> <bdi>${error}</bdi></div>
<p><a href="${pageHref(page === "run" ? "health" : page)}">Show the newest days</a></p>`;
  return framelessPage(400, "Invalid address", lead);
}

/** The report file, for sending to others: the overview with its style and script in it. The same data and time make the same bytes. */
export function renderReport({ overview, budgets }: ReportData, madeAt: Date, script: string): string {
  const { period, total } = overview;
  const isOfProject = total.question.project !== null;
  const days = `${periodText(period)} (${counted(dayCount(period), "day")})`;
  const scope = isOfProject ? html`project ${total.projects.map(nameHtml)}` : html`all projects`;
  const before = comparedWindow(overview.cost ?? total);
  const compared = before && ` · compared with ${periodText(before)}`;
  return reportDocument(
    {
      title: `Usage report, ${isOfProject ? `${total.projects.join(", ")}, ` : ""}${days}`,
      header: html`<h1>Usage report</h1>
<p class="subtitle">${days} · ${scope}${compared}</p>
${leadHtml(leadSentences(overview, budgets, undefined))}`,
      sections: overviewSections(overview, budgets, undefined),
    },
    `Made ${instantText(madeAt)} by usage-export, from what the service had reported until then.`,
    script,
  );
}
