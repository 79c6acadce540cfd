// The chart of an amount by day, stacked by group. Pure.

import type { Day } from "../usage/day.ts";
import type { ChartOption, Drawing, SeriesOption } from "./chart.ts";
import { AXIS_LOOK, dayAxis, LEGEND_LOOK } from "./chart-look.ts";
import { short } from "./figures.ts";

export type StackedDays = {
  readonly days: readonly Day[];
  readonly layers: readonly Layer[];
  /** What is drawn of these days is too low. */
  readonly incompleteDays: readonly Day[];
  /** What is drawn of these days is without a project that was not read. */
  readonly unreadDays: readonly Day[];
};

/** The label is one of chartLabels; the values are one a day. */
export type Layer = { readonly label: string; readonly colour: string; readonly values: readonly number[] };

const ROW = 22;
const LEGEND_WIDTH = 220;

/** The legend stands beside the bars, or below them on a phone. */
export function stackedDays(content: StackedDays): { readonly wide: Drawing; readonly narrow: Drawing } {
  const marks = [content.incompleteDays, content.unreadDays].filter(({ length }) => length > 0);
  const legendHeight = (content.layers.length + marks.length) * ROW;
  const wide = { width: 1040, height: Math.max(300, legendHeight + 40) };
  const narrow = { width: 360, height: 236 + legendHeight };
  return {
    wide: {
      ...wide,
      option: option(content, {
        grid: { left: 52, right: LEGEND_WIDTH + 28, top: 16, bottom: 32 },
        legend: { left: wide.width - LEGEND_WIDTH, top: 12 },
        labelsMax: 12,
        finest: 180,
      }),
    },
    narrow: {
      ...narrow,
      option: option(content, {
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
function option(content: StackedDays, { grid, legend, labelsMax, finest }: Layout): ChartOption {
  const { days, layers, incompleteDays, unreadDays } = content;
  const marks = [
    ...(incompleteDays.length > 0 ? [{ label: "not complete", days: incompleteDays, decal: HATCHED }] : []),
    ...(unreadDays.length > 0 ? [{ label: "not read", days: unreadDays, decal: DOTTED }] : []),
  ];
  const names = new Map([...layers.map(nameOf("s")), ...marks.map(nameOf("m"))]);
  return {
    grid,
    legend: { ...LEGEND_LOOK, ...legend, data: [...names.keys()], formatter: (name) => names.get(name) ?? name },
    xAxis: [dayAxis(days, labelsMax), { type: "category", data: [...days], show: false }],
    yAxis: [
      { ...AXIS_LOOK, type: "value", axisLabel: { ...AXIS_LOOK.axisLabel, formatter: short } },
      { type: "value", min: 0, max: 1, show: false },
    ],
    series: [
      ...marks.map((mark, i) => markedDays(`m${i}`, days, mark)),
      ...layers.map((layer, i) => bars(`s${i}`, layer, days.length <= finest)),
    ],
  };
}

function nameOf(prefix: string): (labelled: { readonly label: string }, i: number) => [string, string] {
  return ({ label }, i) => [`${prefix}${i}`, label];
}

/** How a day is marked, beside its bar. */
type Mark = { readonly days: readonly Day[]; readonly decal: object };
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
function markedDays(name: string, days: readonly Day[], mark: Mark): SeriesOption {
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

function bars(name: string, { colour, values }: Layer, apart: boolean): SeriesOption {
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
