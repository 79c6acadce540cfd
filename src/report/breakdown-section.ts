// Usage by day and group: a stacked chart for each metric, and the table of its numbers. Pure.

import type { Day } from "../usage/days.ts";
import { daysChart } from "./chart.ts";
import type { ChartSeries, DayMark } from "./chart-description.ts";
import { counted, daysHtml, exactText, isZero, metricName } from "./format.ts";
import {
  columns,
  folded,
  groupHtml,
  groupText,
  type Html,
  html,
  joinHtml,
  nameHtml,
  numberColumns,
  table,
} from "./html.ts";
import type { Section } from "./page.ts";
import type { Breakdown, DayAmounts } from "./report-data.ts";

type Metric = keyof DayAmounts;

/** The metric that the groups are ranked by: hours, unless the service sends none. */
export function mainMetric({ groups, rest }: Breakdown): Metric {
  return [...groups, ...(rest ? [rest] : [])].every(({ hours }) => hours.every(isZero)) ? "requests" : "hours";
}

/** A chart for each of the metrics; a service that sends no hours has no chart of hours. */
export function breakdownSection(
  breakdown: Breakdown,
  metrics: readonly Metric[] = mainMetric(breakdown) === "hours" ? ["hours", "requests"] : ["requests"],
): Section {
  const { grouping, groups } = breakdown;
  const layers = layersOf(breakdown);
  return {
    id: `usage-by-${grouping}`,
    title: `Usage by ${grouping}`,
    body: html`${provenanceNote(breakdown)}${
      groups.length === 0
        ? html`<p class="empty">No usage in this period.</p>`
        : metrics.map((metric) => metricChart(breakdown, layers, metric))
    }`,
  };
}

type Layer = {
  readonly label: string;
  readonly name: Html;
  readonly look: ChartSeries["look"];
  readonly amounts: DayAmounts;
};

function layersOf({ grouping, groups, rest }: Breakdown): readonly Layer[] {
  const layers = groups.map((amounts, i) => ({
    label: groupText(grouping, amounts.group),
    name: groupHtml(grouping, amounts.group),
    look: i,
    amounts,
  }));
  if (rest === undefined) return layers;
  const label = counted(rest.groupCount, "other");
  return [...layers, { label, name: html`<i>${label}</i>`, look: "rest", amounts: rest }];
}

/** A group without any of the metric is not shown. */
function metricChart(breakdown: Breakdown, all: readonly Layer[], metric: Metric): Html {
  const layers = all.filter(({ amounts }) => !amounts[metric].every(isZero));
  const { grouping, days } = breakdown;
  const series = layers.map(({ label, look, amounts }) => ({ name: label, look, values: amounts[metric] }));
  return daysChart(
    `${metric}-by-${grouping}`,
    `${metricName(metric)} by day and ${grouping}`,
    { kind: "bars", unit: metric, days, series, marks: marksOf(breakdown) },
    numbersTable(breakdown, layers, metric),
  );
}

function numbersTable(breakdown: Breakdown, layers: readonly Layer[], metric: Metric): Html {
  const titles = [...columns("Day (UTC)"), ...numberColumns(...layers.map(({ name }) => name))];
  const rows = breakdown.days.map((day, i) => [
    html`<time>${day}</time>${dayFlag(breakdown, day)}`,
    ...layers.map(({ amounts }) => exactText(amounts[metric][i] ?? "")),
  ]);
  const caption = `Exact ${metric} by day and ${breakdown.grouping}`;
  return folded(`Table: ${metric} by day and ${breakdown.grouping}`, table(caption, titles, rows, { sortable: true }));
}

function dayFlag({ incompleteDays, unreadDays }: Breakdown, day: Day): Html | undefined {
  if (incompleteDays.includes(day)) return html` <b class="flag">not complete</b>`;
  return unreadDays.includes(day) ? html` <b class="flag">not read</b>` : undefined;
}

/** Names the projects, and the days that lack some of their usage. */
function provenanceNote({ projects, incompleteDays, unreadDays }: Breakdown): Html {
  const low =
    incompleteDays.length > 0
      ? html` <b class="flag">Too low on ${daysHtml(incompleteDays)}</b> (hatched): not all of it could be read.`
      : undefined;
  const unread =
    unreadDays.length > 0
      ? html` Some usage was not read (dotted) on ${daysHtml(unreadDays)}: the day is before a series began, or not due yet.`
      : undefined;
  return html`<p class="note">${projects.length === 1 ? "Project" : "Projects"}: ${joinHtml(projects.map(nameHtml), ", ")}.${low}${unread}</p>
`;
}

function marksOf({ incompleteDays, unreadDays }: Breakdown): readonly DayMark[] {
  const marks: readonly DayMark[] = [
    { label: "not complete", days: incompleteDays, pattern: "hatched" },
    { label: "not read", days: unreadDays, pattern: "dotted" },
  ];
  return marks.filter(({ days }) => days.length > 0);
}
