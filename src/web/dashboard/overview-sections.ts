// What the overview and the report file show: how much was used, of what and by whom, on one screen. Each group leads to the page Usage, which
// says more; in a file nothing leads anywhere. Pure.

import type { Figure } from "../../facts/amounts.ts";
import type { Answer } from "../../facts/answer.ts";
import type { Overview } from "../../facts/overview.ts";
import { answerChart, groupCell, nameOf, projectNames, shareBar, titleOf } from "../../show/answer-chart.ts";
import { budgetPeriod, budgetUnit, budgetUseText } from "../../show/budget-text.ts";
import { whyNotCompared } from "../../show/changes.ts";
import {
  amountHtml,
  changeText,
  chartNumber,
  counted,
  exactText,
  headlineText,
  isZero,
  metricName,
  metricUnit,
} from "../../show/format.ts";
import { columns, folded, type Html, html, joinHtml, nameHtml, numberColumns, table } from "../../show/html.ts";
import type { Section } from "../../show/page.ts";
import type { BudgetUse } from "../../usage/budgets.ts";
import { addsUp, groupingNoun } from "../../usage/dimensions.ts";
import { lackingHtml } from "../explore/lacking.ts";
import { pageHref } from "./frame.ts";
import { type View, viewQuery } from "./view.ts";

/** Left out, nothing leads anywhere. */
type Links = { readonly view: View } | undefined;

export function overviewSections(data: Overview, budgets: readonly BudgetUse[], links: Links): readonly Section[] {
  const [byModel] = data.splits;
  const drawn = byModel ?? data.total;
  return [
    { id: "summary", title: "In short", body: figuresHtml(data), quiet: true },
    ...(drawn.groups.length > 0 ? [chartSection(drawn, links)] : []),
    ...data.splits.map((split, i) =>
      rankingSection(split, data, links, i === 0 || budgets.length > 0 ? "third" : "half"),
    ),
    ...budgetsSection(budgets, links),
  ];
}

// The figures.

function figuresHtml(data: Overview): Html {
  const { figures, total, before, totalFrom } = data;
  const lacking = html`${lackingHtml(total)}${leftOutHtml(total)}`;
  if (figures.length === 0)
    return html`${lacking}<p class="empty">${
      total.days.every(({ state }) => state === "unread")
        ? "None of these days was read."
        : "The service sent no figures for this period."
    }</p>`;
  const shown = figures.map((figure) => figureHtml(figure, total));
  const why = before && whyNotCompared(total.lacking, before);
  const from = totalFrom === "none" ? "" : `The figures are the sums by ${groupingNoun(totalFrom)}. `;
  return html`${lacking}<dl class="figures">${shown}</dl>
<div class="below"><p class="note">${from}${why}${forecastHtml(data.forecasts)}</p>
${folded("Exact figures", exactTable(figures, total))}</div>`;
}

function leftOutHtml({ projectCount }: Answer): Html | undefined {
  return projectCount === 0 ? html`<p class="note">No series that adds up to a total is exported.</p>` : undefined;
}

function figureHtml({ metric, amount, before }: Figure, { compared, lacking }: Answer): Html {
  const low = lacking.incompleteDays.length > 0 ? html`<b class="flag">too low</b>` : undefined;
  const change = compared ? html`<span class="change">${changeText(amount, before)}</span>` : undefined;
  return html`<div><dt>${metricName(metric)}</dt><dd><span class="figure">${amountHtml(amount, metricUnit(metric))}</span>
${low}${change}</dd></div>
`;
}

function exactTable(figures: readonly Figure[], { compared }: Answer): Html {
  const titles = [...columns("Figure"), ...numberColumns("This period", ...(compared ? ["Before", "Change"] : []))];
  const rows = figures.map(({ metric, amount, before }) => [
    metricName(metric),
    exactText(amount),
    ...(compared ? [before === null ? "none sent" : exactText(before), changeText(amount, before)] : []),
  ]);
  return table("Exact figures", titles, rows);
}

function forecastHtml(forecasts: Overview["forecasts"]): Html | undefined {
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

// The groups.

/** The page Usage, with the same days. */
function usageHref(links: Links, { question: { grouping, metric } }: Answer, group: object = {}): string | undefined {
  const more = Object.entries<string>({ grouping, metric, ...group });
  return links && `${pageHref("overview", "usage")}${viewQuery(links.view, { more })}`;
}

/** Narrowed to a group. Undefined for a blank name: an empty parameter counts as left out. */
function groupHref(links: Links, answer: Answer, group: string | null): string | undefined {
  if (group === "" || answer.question.grouping === "none") return undefined;
  return usageHref(links, answer, group === null ? { "no-value": "yes" } : { group });
}

function chartSection(answer: Answer, links: Links): Section {
  const { grouping } = answer.question;
  const title = `${titleOf(answer.question)} by day${grouping === "none" ? "" : ` and ${groupingNoun(grouping)}`}`;
  const href = usageHref(links, answer);
  return {
    ...{ id: "usage-by-day", title, width: "two-thirds" },
    ...(href !== undefined && { more: html`<a href="${href}">Open in Usage</a>` }),
    body: answerChart(answer, {
      id: "by-day",
      title,
      kind: "bars",
      hrefOf: (group) => groupHref(links, answer, group),
    }),
  };
}

const ROWS_MAX = 5;
const TITLES: Readonly<Record<string, readonly [title: string, all: string]>> = {
  model: ["Top models", "All models"],
  accessor: ["Top keys", "All keys"],
  tags: ["Top tags", "All sets of tags"],
};

function rankingSection(answer: Answer, { total }: Overview, links: Links, width: "third" | "half"): Section {
  const { question, groups, other, compared, lacking } = answer;
  const { grouping, metric } = question;
  const [title = grouping, all = ""] = TITLES[grouping] ?? [];
  // Groups with nothing of the metric say nothing about its ranks.
  const shown = groups.filter(({ amount }) => !isZero(amount ?? "0")).slice(0, ROWS_MAX);
  const largest = chartNumber(shown[0]?.amount ?? "0");
  const rows = shown.map((group) => {
    const href = groupHref(links, answer, group.group);
    const name = groupCell(grouping, group, groups);
    const whole = nameOf(grouping, group, groups);
    return [
      html`${shareBar(chartNumber(group.amount ?? "0") / largest)}${href === undefined ? name : html`<a href="${href}" title="${whole}">${name}</a>`}`,
      amountHtml(group.amount ?? "0", metric),
      ...(compared ? [changeText(group.amount ?? "0", group.before ?? "0")] : []),
    ];
  });
  const caption = `The largest ${shown.length} of ${groups.length + (other?.groups ?? 0)}, by ${metricUnit(metric)}`;
  const noun = groupingNoun(grouping);
  const titles = [
    ...columns(`${noun.charAt(0).toUpperCase()}${noun.slice(1)}`),
    ...numberColumns(metricName(metric), ...(compared ? ["Change"] : [])),
  ];
  const more = lacking.unreadDays.length + lacking.incompleteDays.length;
  const fewer = more > total.lacking.unreadDays.length + total.lacking.incompleteDays.length;
  const notes = [
    ...(fewer ? [`${counted(more, "day")} of this period`] : []),
    ...(lacking.projectsLeftOutCount > 0 ? [projectNames(lacking.projectsLeftOut, lacking.projectsLeftOutCount)] : []),
  ];
  const note =
    notes.length > 0
      ? html`<p class="note">Not read by ${noun}, so not in these figures: ${joinHtml(notes, "; ")}.</p>`
      : addsUp(grouping)
        ? undefined
        : html`<p class="note">A request with several tags counts for each.</p>`;
  const href = usageHref(links, answer);
  return {
    ...{ id: `top-${grouping}`, title, width },
    ...(href !== undefined && { more: html`<a href="${href}">${all}</a>` }),
    body: html`${shown.length === 0 ? html`<p class="empty">No usage in this period.</p>` : table(caption, titles, rows)}${note}`,
  };
}

/** Those that are used most. Of one project only its own, as others are of more. */
function budgetsSection(budgets: readonly BudgetUse[], links: Links): readonly Section[] {
  if (budgets.length === 0) return [];
  const shown = budgets
    .toSorted((a, b) => chartNumber(b.percent ?? "0") - chartNumber(a.percent ?? "0"))
    .slice(0, ROWS_MAX);
  const rows = shown.map((use) => [
    html`${shareBar(Math.min(chartNumber(use.percent ?? "0") / 100, 1))}<span title="${budgetUseText(use)}">${nameHtml(use.name)}</span> <small>${budgetPeriod(use)}</small>`,
    use.percent === null ? "not read" : `${use.percent}%`,
    html`${amountHtml(use.amount, budgetUnit(use))} <small>${budgetUnit(use)}</small>`,
  ]);
  const caption = `The ${shown.length} of ${budgets.length} that are used most`;
  const href = links && `${pageHref("overview", "cost")}${viewQuery(links.view)}#budgets`;
  return [
    {
      ...{ id: "budgets", title: "Budgets", width: "third" },
      ...(href !== undefined && { more: html`<a href="${href}">All budgets</a>` }),
      body: table(caption, [...columns("Budget"), ...numberColumns("Used", "Of")], rows),
    },
  ];
}
