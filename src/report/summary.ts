// The summary of a report: whether its numbers can be trusted, and the totals of the period compared with the period before. Pure.

import { dayCount, type Window } from "../usage/days.ts";
import { sparkline } from "./chart.ts";
import {
  amountHtml,
  changeText,
  counted,
  daysHtml,
  exactText,
  headlineText,
  metricName,
  metricUnit,
  windowHtml,
} from "./format.ts";
import { columns, folded, type Html, html, joinHtml, nameHtml, numberColumns, table } from "./html.ts";
import type { Section } from "./page.ts";
import type { CoverageSummary, MetricTotal, Shortfall, Totals, UsageData } from "./report-data.ts";

export const RANKING_TITLES = { model: "Top models", accessor: "Top keys", tags: "Top tags" } as const;

const STATUS_MEANINGS = [
  ["missing", "never read"],
  ["failed", "the service refused or did not answer; earlier numbers of that day, if there were any, stay"],
  ["suspect", "came back empty although there was usage; the numbers before are kept until that is confirmed"],
] as const;

/** What is not complete is on the same page, unless there is a link to it; then the details are folded. */
export function trustNotice(data: UsageData, coverageHref?: string): Html {
  const { coverage, totals } = data;
  return html`${verdictNotice(data, coverageHref)}${coverage.seriesCount === 0 ? undefined : leftOutNotice(totals.projectsLeftOut)}`;
}

function verdictNotice(data: UsageData, coverageHref: string | undefined): Html {
  const { counts, seriesCount, incompleteDays } = data.coverage;
  if (seriesCount === 0)
    return noticeHtml("none", html`<strong>There are no numbers yet.</strong> No job has read any usage.`);
  if (incompleteDays.length > 0) return incompleteNotice(data, coverageHref);
  if (counts.complete === 0) {
    return noticeHtml("none", html`<strong>Nothing was due in this period.</strong> The jobs read no day of it.`);
  }
  const low = figuresTooLow(data);
  if (low.length > 0) {
    return noticeHtml(
      "bad",
      html`<strong>A day was read before it was over.</strong> <p>Too low until it is read again: ${low.join(", ")}.</p>`,
    );
  }
  const unread = unreadText(data);
  if (coverageHref === undefined)
    return noticeHtml(
      "good",
      html`<strong>Everything that was due is here${dueThroughText(data.coverage)}.</strong> ${unread}`,
    );
  // A page of the dashboard has its verdict above.
  return unread === "" ? html`` : html`<p class="note">Read${dueThroughText(data.coverage)}. ${unread}</p>`;
}

function incompleteNotice(data: UsageData, coverageHref = ""): Html {
  const { counts, incompleteDays: days } = data.coverage;
  const low = figuresTooLow(data);
  return html`<details class="notice bad"${coverageHref === "" ? html` open` : undefined}><summary><strong>${counted(days.length, "day is", "days are")} not complete: ${daysHtml(days)}.</strong></summary>
${
  low.length > 0
    ? html`<p>Too low, as usage of these days is not in them: ${low.join(", ")}.</p>`
    : html`<p>The figures and charts of usage come from other series, and are whole.</p>`
}
<ul>${STATUS_MEANINGS.filter(([status]) => counts[status] > 0).map(
    ([status, meaning]) => html`<li><b>${status}</b>, ${counted(counts[status], "time")}: ${meaning}</li>`,
  )}</ul>
<p>Counted by series and day. <a href="${coverageHref}#coverage">Which, and why</a></p></details>
`;
}

/** The names of the page's figures that lack the usage of an incomplete day. */
function figuresTooLow({ totals, breakdowns, rankings }: UsageData): string[] {
  return [
    ...(totals.incompleteDays > 0 ? ["the headline figures"] : []),
    ...breakdowns
      .filter(({ incompleteDays }) => incompleteDays.length > 0)
      .map(({ grouping }) => `usage by ${grouping}`),
    ...rankings
      .filter(({ incompleteDays }) => incompleteDays > 0)
      .map(({ grouping }) => RANKING_TITLES[grouping].toLowerCase()),
  ];
}

function dueThroughText({ dueThrough }: CoverageSummary): string {
  return dueThrough === undefined ? "" : ` through ${dueThrough}`;
}

/** Which days the figures do not include although nothing is late: days not due yet, or days before their series began. */
function unreadText({ coverage, totals }: UsageData): string {
  const { days, dueThrough } = coverage;
  if (days.some((day) => dueThrough !== undefined && day > dueThrough))
    return "The days after it are not due yet for every series.";
  return totals.unreadDays > 0 ? "The figures do not include the days before their series began." : "";
}

/** Nobody reads a list of thousands of projects before the first figure. */
const PROJECTS_NAMED_MAX = 20;

function leftOutNotice(projects: readonly string[]): Html | undefined {
  if (projects.length === 0) return undefined;
  const others = projects.length - PROJECTS_NAMED_MAX;
  const named = joinHtml(projects.slice(0, PROJECTS_NAMED_MAX).map(nameHtml), ", ");
  return noticeHtml(
    "none",
    html`The headline figures do not include ${named}${others > 0 ? ` and ${others} more` : ""}: no series that adds up to a total is read for it now.`,
  );
}

function noticeHtml(kind: "good" | "bad" | "none", content: Html): Html {
  return html`<div class="notice ${kind}">${content}</div>
`;
}

type FigureOptions = {
  /** Exact amounts are not written out: they appear on hover, and are in the table below. */
  readonly brief?: boolean;
};

/** All usage of the period, and how it changed. */
export function summarySection(data: UsageData, options: FigureOptions = {}): Section {
  return { id: "summary", title: "In short", body: headlineFigures(data, options) };
}

function headlineFigures(data: UsageData, options: FigureOptions): Html {
  const sent = data.totals.metrics.filter((metric): metric is SentMetric => metric.amount !== null);
  if (sent.length === 0) return html`<p class="empty">The service sent no figures for this period.</p>`;
  const why = data.before && whyNotCompared(data.totals, data.totals.sources.length);
  const isCompared = data.before !== undefined && why === undefined;
  // A page of the dashboard says above its figures what they are compared with.
  const compared = data.before && !options.brief ? comparedHtml(data.before) : undefined;
  const hatched = data.totals.lackingDays.length > 0 ? " Days of which not all is known are hatched." : undefined;
  const notes = html`${why ?? compared}${forecastHtml(data.forecast)}${hatched}`;
  const exact = html`${exactTable(sent, isCompared)}${sourcesTable(data.totals)}`;
  return html`<dl class="figures">${sent.map((metric) => figureHtml(metric, data, isCompared, options))}</dl>
<div class="below"><p class="note">${notes}</p>
${folded("Exact figures, and where they come from", exact)}</div>`;
}

function comparedHtml(before: Window): Html {
  return html`Compared with ${windowHtml(before)} (${counted(dayCount(before), "day")}).`;
}

function forecastHtml(forecasts: UsageData["forecast"]): Html | undefined {
  if (forecasts === "left out")
    return html` The month is not estimated here: for so many projects that takes too long. Choose one of them, or ask <code>bi.usage_forecast</code>.`;
  const [first] = forecasts;
  if (!first) return undefined;
  const texts = forecasts.map(
    ({ metric, forecast, low, high }) =>
      html`<b>${metricName(metric)}</b> ${headlineText(forecast)} (${headlineText(low)} to ${headlineText(high)})`,
  );
  return html` Estimated for all of ${first.month.slice(0, 7)}, from the usage so far: ${joinHtml(texts, ", ")}.`;
}

type SentMetric = MetricTotal & { readonly amount: string };

function figureHtml(
  { metric, amount, before, byDay }: SentMetric,
  { totals, coverage }: UsageData,
  compared: boolean,
  { brief = false }: FigureOptions,
): Html {
  const figure = brief
    ? html`<span class="figure">${amountHtml(amount, metricUnit(metric))}</span>`
    : html`<span class="figure">${headlineText(amount)}</span>${exactBeside(amount)}`;
  return html`<div><dt id="${metric}-total">${metricName(metric)}</dt><dd>${figure}
${tooLowFlag(totals)}${compared ? html`<span class="change">${changeText(amount, before)}</span>` : undefined}${sparkline(`${metric}-total`, coverage.days, byDay, totals.lackingDays)}</dd></div>
`;
}

/** The exact amount, if the headline rounds it. */
export function exactBeside(amount: string): Html | undefined {
  return headlineText(amount) === exactText(amount)
    ? undefined
    : html` <data class="exact" value="${amount}">${exactText(amount)}</data>`;
}

function exactTable(metrics: readonly SentMetric[], compared: boolean): Html {
  return table(
    "Exact figures",
    [...columns("Figure"), ...numberColumns("This period", "Period before", "Change")],
    metrics.map(({ metric, amount, before }) => [
      metricName(metric),
      exactText(amount),
      before === null ? "none sent" : exactText(before),
      compared ? changeText(amount, before) : "not compared",
    ]),
  );
}

function sourcesTable({ sources }: Totals): Html {
  const what = (grouping: string) => (grouping === "none" ? "the total" : `the sum by ${grouping}`);
  const rows =
    sources.length > PROJECTS_NAMED_MAX
      ? [...Map.groupBy(sources, ({ grouping }) => grouping)].map(([grouping, { length }]) => [
          counted(length, "project"),
          what(grouping),
        ])
      : sources.map(({ project, grouping }) => [nameHtml(project), what(grouping)]);
  return table("Where the figures come from", columns("Project", "Series"), rows);
}

/**
 * Why the two periods can't be compared; undefined if both are complete. The difference between a complete and an incomplete period
 * would look like a change of usage.
 */
export function whyNotCompared(shortfall: Shortfall, projects: number): string | undefined {
  const { incompleteDays, incompleteDaysBefore, unreadDays, unreadDaysBefore } = shortfall;
  const lacking = [
    ...lackText("this period", incompleteDays, unreadDays),
    ...lackText("the period before", incompleteDaysBefore, unreadDaysBefore),
  ];
  if (lacking.length === 0) return undefined;
  return `Not compared with the period before: ${lacking.join("; ")}${projects > 1 ? " (counted for each project)" : ""}.`;
}

function lackText(period: string, incomplete: number, unread: number): string[] {
  const reasons = [
    ...(incomplete > 0 ? [`${counted(incomplete, "day is", "days are")} not complete`] : []),
    ...(unread > 0 ? [`${counted(unread, "day was", "days were")} not read`] : []),
  ];
  return reasons.length === 0 ? [] : [`in ${period} ${reasons.join(" and ")}`];
}

export function tooLowFlag({ incompleteDays }: Shortfall): Html | undefined {
  return incompleteDays > 0 ? html`<b class="flag">too low</b>` : undefined;
}
