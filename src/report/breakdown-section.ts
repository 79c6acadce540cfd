// Usage by day and group: a stacked chart for each metric, and the table of its numbers. Pure.

import type { Day } from "../usage/days.ts";
import {
  AXIS_STYLE,
  type ChartOption,
  chart,
  type Drawings,
  dayAxis,
  LEGEND_STYLE,
  type SeriesOption,
} from "./chart.ts";
import { chartNumber, compactText, counted, daysHtml, exactText, isZero } from "./format.ts";
import { chartLabels, columns, folded, type Html, html, joinHtml, nameHtml, numberColumns, table } from "./html.ts";
import type { Section } from "./page.ts";
import type { Breakdown, DayAmounts } from "./report-data.ts";

type Metric = keyof DayAmounts;

const BREAKDOWN_METRICS: readonly { readonly metric: Metric; readonly title: string }[] = [
  { metric: "hours", title: "Hours" },
  { metric: "requests", title: "Requests" },
];
/** Longest label in the legend, in characters of normal width. */
const LABEL_WIDTH_MAX = 26;

const drawn = new WeakMap<Breakdown, Section>();

/** Remembered for each breakdown, because its charts take longer than all else of a page, and may be drawn while the rest is read. */
export function breakdownSection(breakdown: Breakdown): Section {
  const section = drawn.get(breakdown) ?? drawSection(breakdown);
  drawn.set(breakdown, section);
  return section;
}

function drawSection(breakdown: Breakdown): Section {
  const { grouping, groups } = breakdown;
  const layers = layersOf(breakdown);
  return {
    id: `usage-by-${grouping}`,
    title: `Usage by ${grouping}`,
    body: html`${provenanceNote(breakdown)}${
      groups.length === 0
        ? html`<p class="empty">No usage in this period.</p>`
        : BREAKDOWN_METRICS.map((metric) => metricChart(breakdown, layers, metric))
    }`,
  };
}

type Layer = {
  /** Unique, from chartLabels. */
  readonly label: string;
  readonly name: Html;
  readonly colour: string;
  readonly amounts: DayAmounts;
};

function layersOf({ groups, rest }: Breakdown): readonly Layer[] {
  const labels = chartLabels(
    groups.map(({ group }) => group),
    LABEL_WIDTH_MAX,
  );
  const layers = groups.map((amounts, i) => ({
    label: labels[i] ?? "",
    name: nameHtml(amounts.group),
    colour: `var(--series-${i + 1})`,
    amounts,
  }));
  if (rest === undefined) return layers;
  const label = counted(rest.groupCount, "other");
  return [...layers, { label, name: html`<i>${label}</i>`, colour: "var(--rest)", amounts: rest }];
}

function metricChart(
  breakdown: Breakdown,
  layers: readonly Layer[],
  { metric, title }: (typeof BREAKDOWN_METRICS)[number],
): Html | undefined {
  // A service that sends no hours has no chart of hours; the chart of requests is always shown.
  if (metric === "hours" && layers.every(({ amounts }) => amounts.hours.every(isZero))) return undefined;
  const { grouping, days } = breakdown;
  const bars = layers.map(({ label, colour, amounts }) => ({
    label,
    colour,
    values: amounts[metric].map(chartNumber),
  }));
  return chart(
    `${metric}-by-${grouping}`,
    `${title} by day and ${grouping}`,
    stackedDays({ days, bars, marks: marksOf(breakdown) }),
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
  return folded(`Table: ${metric} by day and ${breakdown.grouping}`, table(caption, titles, rows));
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

type StackedDays = {
  readonly days: readonly Day[];
  readonly bars: readonly { readonly label: string; readonly colour: string; readonly values: readonly number[] }[];
  readonly marks: readonly DayMark[];
};

/** A background behind the bars of some days. */
type DayMark = { readonly label: string; readonly days: readonly Day[]; readonly decal: object };

const HATCHED = { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [1.5, 3.5], rotation: -Math.PI / 4 };
const DOTTED = {
  symbol: "circle",
  symbolSize: 0.8,
  dashArrayX: [
    [2, 4],
    [0, 3, 2, 1],
  ],
  dashArrayY: [2, 1],
};

function marksOf({ incompleteDays, unreadDays }: Breakdown): readonly DayMark[] {
  return [
    { label: "not complete", days: incompleteDays, decal: HATCHED },
    { label: "not read", days: unreadDays, decal: DOTTED },
  ].filter(({ days }) => days.length > 0);
}

const LEGEND_ROW_PX = 22;
const LEGEND_WIDTH_PX = 220;

/** The legend stands beside the bars, or below them on a phone. */
function stackedDays(content: StackedDays): Drawings {
  const legendHeight = (content.bars.length + content.marks.length) * LEGEND_ROW_PX;
  return {
    wide: {
      width: 1040,
      height: Math.max(300, legendHeight + 40),
      option: chartOption(content, {
        grid: { left: 52, right: LEGEND_WIDTH_PX + 28, top: 16, bottom: 32 },
        legend: { left: 1040 - LEGEND_WIDTH_PX, top: 12 },
        labelsMax: 12,
        gapDaysMax: 180,
      }),
    },
    narrow: {
      width: 360,
      height: 236 + legendHeight,
      option: chartOption(content, {
        grid: { left: 44, right: 8, top: 12, bottom: legendHeight + 34 },
        legend: { left: 4, bottom: 0 },
        labelsMax: 5,
        gapDaysMax: 60,
      }),
    },
  };
}

type Layout = {
  readonly grid: object;
  readonly legend: object;
  readonly labelsMax: number;
  /** With more days, a gap between two bars would be as wide as a bar, so there are none. */
  readonly gapDaysMax: number;
};

/** The library gets numbered keys as names, not labels: it interprets names as patterns, and confuses equal names. */
function chartOption({ days, bars, marks }: StackedDays, { grid, legend, labelsMax, gapDaysMax }: Layout): ChartOption {
  const labels = new Map([
    ...bars.map(({ label }, i): [string, string] => [`s${i}`, label]),
    ...marks.map(({ label }, i): [string, string] => [`m${i}`, label]),
  ]);
  const gaps = days.length <= gapDaysMax;
  return {
    grid,
    legend: { ...LEGEND_STYLE, ...legend, data: [...labels.keys()], formatter: (key) => labels.get(key) ?? key },
    xAxis: [dayAxis(days, labelsMax), { type: "category", data: [...days], show: false }],
    yAxis: [
      { ...AXIS_STYLE, type: "value", axisLabel: { ...AXIS_STYLE.axisLabel, formatter: compactText } },
      { type: "value", min: 0, max: 1, show: false },
    ],
    series: [
      ...marks.map((mark, i) => markSeries(`m${i}`, days, mark)),
      ...bars.map(
        ({ colour, values }, i): SeriesOption => ({
          type: "bar",
          name: `s${i}`,
          stack: "day",
          // "large" draws all bars of a layer as one path, which is a third of the size.
          large: true,
          largeThreshold: 0,
          silent: true,
          barCategoryGap: gaps ? "18%" : "0%",
          barMaxWidth: 48,
          itemStyle: { color: colour, borderColor: "var(--paper)", borderWidth: gaps ? 0.5 : 0 },
          data: [...values],
        }),
      ),
    ],
  };
}

/** The mark has its own axes and covers the whole height of the chart, so that a day without a bar is marked as well. */
function markSeries(name: string, days: readonly Day[], mark: DayMark): SeriesOption {
  const marked = new Set(mark.days);
  return {
    type: "bar",
    name,
    stack: "mark",
    xAxisIndex: 1,
    yAxisIndex: 1,
    silent: true,
    barCategoryGap: "0%",
    itemStyle: { color: "var(--wash)", decal: { ...mark.decal, color: "var(--hatch)" } },
    data: days.map((day) => (marked.has(day) ? 1 : null)),
  };
}
