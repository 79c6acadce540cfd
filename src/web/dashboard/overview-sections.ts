// What the overview shows: how much was used, of what and by whom, on one screen. Each group leads to the page Usage, which says more. Pure.

import type { HealthState } from "../../health/state.ts";
import { mainMetric, metricChart } from "../../report/breakdown-section.ts";
import { budgetPeriod, budgetUnit, budgetUseText } from "../../report/budget-text.ts";
import { amountHtml, chartNumber, isZero, metricName } from "../../report/format.ts";
import {
  columns,
  groupHtml,
  groupText,
  type Html,
  html,
  nameHtml,
  numberColumns,
  table,
  truncatedName,
} from "../../report/html.ts";
import type { Section } from "../../report/page.ts";
import {
  barOf,
  changeOf,
  GROUP_TITLES,
  lessThanTotalNote,
  rankedMetric,
  shareBar,
} from "../../report/ranking-section.ts";
import type { Breakdown, RankedGroup, Ranking, UsageData } from "../../report/report-data.ts";
import { RANKING_TITLES, summarySection, whyNotCompared } from "../../report/summary.ts";
import { knownProjects, type NamedProject, projectValue } from "../projects.ts";
import { pageHref } from "./frame.ts";
import { type View, viewQuery } from "./view.ts";

export function overviewSections(data: UsageData, view: View, health: HealthState): readonly Section[] {
  const budgets = budgetsSection(health, view);
  const known = knownProjects(health.projects);
  return [
    { ...summarySection(data, { brief: true }), quiet: true },
    ...data.breakdowns.map((breakdown) => chartSection(breakdown, data, view)),
    ...data.rankings.map((ranking) => ({
      ...rankingSection(ranking, data, view, known),
      // Beside the chart, or beside each other and the budgets.
      width: ranking.grouping === "model" || budgets.length > 0 ? ("third" as const) : ("half" as const),
    })),
    ...budgets,
  ];
}

type Question = { readonly grouping: string; readonly metric: string };

/** The page Usage, with the same days. */
function usageHref(view: View, question: Question, group: Readonly<Record<string, string>> = {}): string {
  return `${pageHref("overview", "usage")}${viewQuery(view, { more: Object.entries({ ...question, ...group }) })}`;
}

/** Narrowed to a group. Undefined for a blank name: an empty parameter counts as left out. */
function groupHref(view: View, question: Question, group: string | null): string | undefined {
  if (group === "") return undefined;
  return usageHref(view, question, group === null ? { "no-value": "yes" } : { group });
}

function chartSection(breakdown: Breakdown, { totals }: UsageData, view: View): Section {
  const { grouping, groups } = breakdown;
  const metric = mainMetric(breakdown);
  const question = { grouping, metric };
  const chart =
    groups.length === 0
      ? html`<p class="empty">No usage in this period.</p>`
      : metricChart(breakdown, metric, (group) => groupHref(view, question, group));
  return {
    id: `usage-by-${grouping}`,
    title: `${metricName(metric)} by day and ${grouping}`,
    more: html`<a href="${usageHref(view, question)}">Open in Usage</a>`,
    width: "two-thirds",
    body: html`${lessThanTotalNote({ ...breakdown, unreadDays: 0 }, totals)}${chart}`,
  };
}

const ROWS_MAX = 5;
const ALL_TEXTS = { model: "All models", accessor: "All keys", tags: "All sets of tags" } as const;

/** Groups with nothing of the metric say nothing about its ranks. */
function rankingSection(
  ranking: Ranking,
  { totals, before }: UsageData,
  view: View,
  known: readonly NamedProject[],
): Section {
  const { grouping, groups, groupCount, projects } = ranking;
  const metric = rankedMetric(ranking);
  const question = { grouping, metric };
  const isCompared = before !== undefined && whyNotCompared(ranking, projects.length) === undefined;
  const shown = groups.filter((group) => !isZero(group[metric] ?? "0")).slice(0, ROWS_MAX);
  const rows = shown.map((group) => [
    html`${barOf(group, groups, metric)}${nameCell(ranking, group, view, question, known)}`,
    amountHtml(group[metric] ?? "0", metric),
    ...(isCompared ? [changeOf(group, metric)] : []),
  ]);
  const caption = `The largest ${shown.length} of ${groupCount}, by ${metric}`;
  const numbers = numberColumns(metricName(metric), ...(isCompared ? ["Change"] : []));
  return {
    id: `top-${grouping}`,
    title: RANKING_TITLES[grouping],
    more: html`<a href="${usageHref(view, question)}">${ALL_TEXTS[grouping]}</a>`,
    body: html`${lessThanTotalNote(ranking, totals)}${
      shown.length === 0
        ? html`<p class="empty">No usage in this period.</p>`
        : table(caption, [...columns(GROUP_TITLES[grouping]), ...numbers], rows)
    }`,
  };
}

const KEY_COLUMNS = 10;

/** A ranked group is of one project, and so is what it leads to. */
function nameCell(
  { grouping, projects }: Ranking,
  ranked: RankedGroup,
  view: View,
  question: Question,
  known: readonly NamedProject[],
): Html {
  const { group, comment, project, projectId } = ranked;
  const name = comment === null ? groupHtml(grouping, group) : nameHtml(comment);
  const whole = comment ?? groupText(grouping, group);
  const href = groupHref(
    projects.length > 1 ? { ...view, project: projectValue({ id: projectId, name: project }, known) } : view,
    question,
    group,
  );
  const key =
    comment === null || group === null
      ? undefined
      : html` <small title="${group}"><bdi>${truncatedName(group, KEY_COLUMNS)}</bdi></small>`;
  const of = projects.length > 1 ? html` <small>${nameHtml(project)}</small>` : undefined;
  return html`${href === undefined ? name : html`<a href="${href}" title="${whole}">${name}</a>`}${key}${of}`;
}

/** Those that are used most. */
function budgetsSection({ budgets }: HealthState, view: View): readonly Section[] {
  if (budgets.length === 0) return [];
  const href = `${pageHref("overview", "cost")}${viewQuery(view)}#budgets`;
  const shown = budgets
    .toSorted((a, b) => chartNumber(b.percent ?? "0") - chartNumber(a.percent ?? "0"))
    .slice(0, ROWS_MAX);
  const rows = shown.map((use) => [
    html`${shareBar(Math.min(chartNumber(use.percent ?? "0") / 100, 1))}<span title="${budgetUseText(use)}">${nameHtml(use.name)}</span> <small>${budgetPeriod(use)}</small>`,
    use.percent === null ? "not read" : `${use.percent}%`,
    html`${amountHtml(use.amount, budgetUnit(use))} <small>${budgetUnit(use)}</small>`,
  ]);
  const caption = `The ${shown.length} of ${budgets.length} that are used most`;
  return [
    {
      id: "budgets",
      title: "Budgets",
      more: html`<a href="${href}">All budgets</a>`,
      width: "third",
      body: table(caption, [...columns("Budget"), ...numberColumns("Used", "Of")], rows),
    },
  ];
}
