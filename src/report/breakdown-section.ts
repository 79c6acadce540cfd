// Usage by day and group: a stacked chart for each metric, and the table of its numbers. Pure.

import type { Day } from "../usage/days.ts";
import { daysChart } from "./chart.ts";
import type { ChartDescription, ChartSeries, DayMark } from "./chart-description.ts";
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
  return {
    id: `usage-by-${grouping}`,
    title: `Usage by ${grouping}`,
    body: html`${provenanceNote(breakdown)}${
      groups.length === 0
        ? html`<p class="empty">No usage in this period.</p>`
        : metrics.map((metric) => metricChart(breakdown, metric))
    }`,
  };
}

/** A group of the chart, or the others together. `heading` is its column in the table. */
export type Layer = ChartSeries & { readonly heading: Html };
type ChartDay = { readonly day: Day; readonly flag: Html | undefined };
type LayersChart = Pick<ChartDescription, "kind" | "unit" | "marks"> & {
  readonly id: string;
  readonly title: string;
  /** Says what the table has. */
  readonly caption: string;
  readonly days: readonly ChartDay[];
  readonly layers: readonly Layer[];
  /** The amounts of the period compared with. */
  readonly before?: ChartSeries | undefined;
  /** Stands below the table. */
  readonly below?: Html | undefined;
};

/** A chart over days, with the table of its exact amounts folded below. */
export function layersChart(part: LayersChart): Html {
  const { id, title, caption, days, layers, before, below, ...description } = part;
  const series = [...layers.map(({ heading: _, ...one }) => one), ...(before ? [before] : [])];
  const titles = [...columns("Day (UTC)"), ...numberColumns(...layers.map(({ heading }) => heading))];
  const rows = days.map(({ day, flag }, i) => [
    html`<time>${day}</time>${flag}`,
    ...layers.map(({ values }) => exactText(values[i] ?? "–")),
  ]);
  const exact = table(`Exact ${caption}`, titles, rows, { sortable: true });
  return daysChart(
    id,
    title,
    { ...description, days: days.map(({ day }) => day), series },
    folded(`Table: ${caption}`, html`${exact}${below}`),
  );
}

/** A group without any of the metric is not shown. `hrefOf`: to a page about the group alone. */
export function metricChart(
  breakdown: Breakdown,
  metric: Metric,
  hrefOf: (group: string | null) => string | undefined = () => undefined,
): Html {
  const { grouping, groups, rest, days } = breakdown;
  const layers = groups.map(
    (amounts, i): Layer => ({
      name: groupText(grouping, amounts.group),
      heading: groupHtml(grouping, amounts.group),
      look: i,
      values: amounts[metric],
      href: hrefOf(amounts.group),
    }),
  );
  const others = rest && counted(rest.groupCount, "other");
  return layersChart({
    ...{
      id: `${metric}-by-${grouping}`,
      title: `${metricName(metric)} by day and ${grouping}`,
      kind: "bars",
      unit: metric,
    },
    caption: `${metric} by day and ${grouping}`,
    days: days.map((day) => ({ day, flag: dayFlag(breakdown, day) })),
    layers: [
      ...layers,
      ...(rest && others
        ? [{ name: others, heading: html`<i>${others}</i>`, look: "rest" as const, values: rest[metric] }]
        : []),
    ].filter(({ values }) => !values.every((value) => isZero(value ?? "0"))),
    marks: dayMarks(breakdown),
  });
}

function dayFlag({ incompleteDays, unreadDays }: Breakdown, day: Day): Html | undefined {
  if (incompleteDays.includes(day)) return DAY_FLAGS.incomplete;
  return unreadDays.includes(day) ? DAY_FLAGS.unread : undefined;
}

export const DAY_FLAGS = {
  incomplete: html` <b class="flag">not complete</b>`,
  unread: html` <b class="flag">not read</b>`,
};

/** Names the projects, and the days that lack some of their usage. */
function provenanceNote({ projects, incompleteDays, unreadDays }: Breakdown): Html {
  return html`<p class="note">${projects.length === 1 ? "Project" : "Projects"}: ${joinHtml(projects.map(nameHtml), ", ")}.${tooLowNote(incompleteDays)}${unreadNote(unreadDays)}</p>
`;
}

type DaysLacking = { readonly incompleteDays: readonly Day[]; readonly unreadDays: readonly Day[] };

export function tooLowNote(days: readonly Day[]): Html | undefined {
  if (days.length === 0) return undefined;
  return html` <b class="flag">Too low on ${daysHtml(days)}</b> (hatched): not all of it could be read.`;
}

export function unreadNote(days: readonly Day[]): Html | undefined {
  if (days.length === 0) return undefined;
  return html` Some usage was not read (dotted) on ${daysHtml(days)}: the day is before a series began, or not due yet.`;
}

export function dayMarks({ incompleteDays, unreadDays }: DaysLacking): readonly DayMark[] {
  const marks: readonly DayMark[] = [
    { label: "not complete", days: incompleteDays, pattern: "hatched" },
    { label: "not read", days: unreadDays, pattern: "dotted" },
  ];
  return marks.filter(({ days }) => days.length > 0);
}
