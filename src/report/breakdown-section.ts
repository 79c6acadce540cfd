// Usage by day and group: a stacked chart for each metric, and the table of its numbers. Pure.

import type { Day } from "../usage/days.ts";
import {
  AXIS_STYLE,
  type ChartOption,
  chart,
  type Drawing,
  dayAxis,
  LEGEND_STYLE,
  type SeriesOption,
} from "./chart.ts";
import { chartNumber, compactText, counted, daysHtml, exactText, isZero } from "./format.ts";
import { chartLabels, folded, type Html, html, nameHtml, table } from "./html.ts";
import type { Section } from "./page.ts";
import type { Breakdown, DayAmounts } from "./report-data.ts";

type Metric = keyof DayAmounts;

const BREAKDOWN_METRICS: readonly { readonly metric: Metric; readonly title: string }[] = [
  { metric: "hours", title: "Hours" },
  { metric: "requests", title: "Requests" },
];
const LABEL_COLUMNS = 26;

export function breakdownSection(breakdown: Breakdown): Section {
  const { grouping, groups } = breakdown;
  return {
    id: `usage-by-${grouping}`,
    title: `Usage by ${grouping}`,
    body: html`${provenanceNote(breakdown)}${
      groups.length === 0
        ? html`<p class="empty">No usage in this period.</p>`
        : BREAKDOWN_METRICS.map((one) => metricChart(breakdown, one))
    }`,
  };
}

function metricChart(breakdown: Breakdown, { metric, title }: (typeof BREAKDOWN_METRICS)[number]): Html | undefined {
  const layers = layersOf(breakdown);
  // A service that sends no hours has nothing to show there; requests are shown even so.
  if (metric === "hours" && layers.every(({ amounts }) => amounts.hours.every(isZero))) return undefined;
  const { grouping } = breakdown;
  const content = {
    ...breakdown,
    layers: layers.map(({ label, colour, amounts }) => ({ label, colour, values: amounts[metric].map(chartNumber) })),
  };
  return chart(
    `${metric}-by-${grouping}`,
    `${title} by day and ${grouping}`,
    stackedDays(content),
    numbersTable(breakdown, metric),
  );
}

type NamedLayer = {
  readonly label: string;
  readonly name: Html;
  readonly colour: string;
  readonly amounts: DayAmounts;
};

function layersOf({ groups, rest }: Breakdown): NamedLayer[] {
  const labels = chartLabels(
    groups.map(({ group }) => group),
    LABEL_COLUMNS,
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

function numbersTable(breakdown: Breakdown, metric: Metric): Html {
  const layers = layersOf(breakdown);
  const columns = [{ title: "Day (UTC)" }, ...layers.map(({ name }) => ({ title: name, numeric: true }))];
  const rows = breakdown.days.map((day, i) => [
    html`<time>${day}</time>${dayFlag(breakdown, day)}`,
    ...layers.map(({ amounts }) => exactText(amounts[metric][i] ?? "")),
  ]);
  const caption = `Exact ${metric} by day and ${breakdown.grouping}`;
  return folded(`Table: ${metric} by day and ${breakdown.grouping}`, table(caption, columns, rows));
}

function dayFlag({ incompleteDays, unreadDays }: Breakdown, day: Day): Html | undefined {
  if (incompleteDays.includes(day)) return html` <b class="flag">not complete</b>`;
  return unreadDays.includes(day) ? html` <b class="flag">not read</b>` : undefined;
}

/** Whose usage it is, and which days lack some of it. */
function provenanceNote({ projects, incompleteDays, unreadDays }: Breakdown): Html {
  const low =
    incompleteDays.length > 0
      ? html` <b class="flag">Too low on ${daysHtml(incompleteDays)}</b> (hatched): not all of it could be read.`
      : undefined;
  const unread =
    unreadDays.length > 0
      ? html` Without usage that is not read (dotted) on ${daysHtml(unreadDays)}: before a series began, or not due yet.`
      : undefined;
  return html`<p class="note">Of ${projects.map((project, i) => html`${i > 0 ? ", " : ""}${nameHtml(project)}`)}.${low}${unread}</p>
`;
}

// The chart of an amount by day, stacked by group. Pure.

type StackedDays = {
  readonly days: readonly Day[];
  readonly layers: readonly Layer[];
  /** What is drawn of these days is too low. */
  readonly incompleteDays: readonly Day[];
  /** What is drawn of these days is without a project that was not read. */
  readonly unreadDays: readonly Day[];
};

/** The label is one of chartLabels; the values are one a day. */
type Layer = { readonly label: string; readonly colour: string; readonly values: readonly number[] };

const LEGEND_ROW_PX = 22;
const LEGEND_WIDTH_PX = 220;

/** The legend stands beside the bars, or below them on a phone. */
function stackedDays(content: StackedDays): { readonly wide: Drawing; readonly narrow: Drawing } {
  const marks = [content.incompleteDays, content.unreadDays].filter(({ length }) => length > 0);
  const legendHeight = (content.layers.length + marks.length) * LEGEND_ROW_PX;
  const wide = { width: 1040, height: Math.max(300, legendHeight + 40) };
  const narrow = { width: 360, height: 236 + legendHeight };
  return {
    wide: {
      ...wide,
      option: chartOption(content, {
        grid: { left: 52, right: LEGEND_WIDTH_PX + 28, top: 16, bottom: 32 },
        legend: { left: wide.width - LEGEND_WIDTH_PX, top: 12 },
        labelsMax: 12,
        finest: 180,
      }),
    },
    narrow: {
      ...narrow,
      option: chartOption(content, {
        grid: { left: 44, right: 8, top: 12, bottom: legendHeight + 34 },
        legend: { left: 4, bottom: 0 },
        labelsMax: 5,
        finest: 60,
      }),
    },
  };
}

type Layout = {
  readonly grid: object;
  readonly legend: object;
  readonly labelsMax: number;
  /** With more days than this a line between bars would be as wide as they are. */
  readonly finest: number;
};

/** The library knows the layers by numbers only: it reads names as patterns of its own, and mixes up equal ones. */
function chartOption(content: StackedDays, { grid, legend, labelsMax, finest }: Layout): ChartOption {
  const { days, layers, incompleteDays, unreadDays } = content;
  const marks = [
    ...(incompleteDays.length > 0 ? [{ label: "not complete", days: incompleteDays, decal: HATCHED }] : []),
    ...(unreadDays.length > 0 ? [{ label: "not read", days: unreadDays, decal: DOTTED }] : []),
  ];
  const names = new Map([...layers.map(namer("s")), ...marks.map(namer("m"))]);
  return {
    grid,
    legend: { ...LEGEND_STYLE, ...legend, data: [...names.keys()], formatter: (name) => names.get(name) ?? name },
    xAxis: [dayAxis(days, labelsMax), { type: "category", data: [...days], show: false }],
    yAxis: [
      { ...AXIS_STYLE, type: "value", axisLabel: { ...AXIS_STYLE.axisLabel, formatter: compactText } },
      { type: "value", min: 0, max: 1, show: false },
    ],
    series: [
      ...marks.map((mark, i) => markedDays(`m${i}`, days, mark)),
      ...layers.map((layer, i) => layerBars(`s${i}`, layer, days.length <= finest)),
    ],
  };
}

function namer(prefix: string): (labelled: { readonly label: string }, i: number) => [string, string] {
  return ({ label }, i) => [`${prefix}${i}`, label];
}

/** How a day is marked, beside its bar. */
type DayMark = { readonly days: readonly Day[]; readonly decal: object };
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

/** On axes of their own, from the bottom to the top: a day that has no bar because its numbers are missing shows too. */
function markedDays(name: string, days: readonly Day[], mark: DayMark): SeriesOption {
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

function layerBars(name: string, { colour, values }: Layer, apart: boolean): SeriesOption {
  return {
    type: "bar",
    name,
    stack: "day",
    // All bars of a layer are one path, a third of the size.
    large: true,
    largeThreshold: 0,
    silent: true,
    barCategoryGap: apart ? "18%" : "0%",
    barMaxWidth: 48,
    itemStyle: { color: colour, borderColor: "var(--paper)", borderWidth: apart ? 0.5 : 0 },
    data: [...values],
  };
}
