// The option from which ECharts draws a chart. Pure.

import type { XAXisComponentOption } from "echarts";
import type { BarSeriesOption, LineSeriesOption } from "echarts/charts";
import type {
  DataZoomComponentOption,
  GridComponentOption,
  LegendComponentOption,
  TooltipComponentOption,
} from "echarts/components";
import type { ComposeOption } from "echarts/core";
import { type ChartDescription, type ChartSeries, type DayMark, seriesColour } from "../../show/chart-description.ts";
import { chartNumber, compactText, dayLabel } from "../../show/format.ts";

type Day = ChartDescription["days"][number];

export type ChartOption = ComposeOption<
  SeriesOption | GridComponentOption | LegendComponentOption | TooltipComponentOption | DataZoomComponentOption
>;
type SeriesOption = BarSeriesOption | LineSeriesOption;

const AXIS_STYLE = {
  axisLine: { lineStyle: { color: "var(--line)" } },
  axisTick: { show: false },
  axisLabel: { color: "var(--soft)", fontSize: 12 },
  splitLine: { lineStyle: { color: "var(--line)" } },
} as const;

/** Whole weeks if possible. */
const LABEL_STEPS = [1, 2, 4, 7, 14, 28, 56];

/** Days from one label to the next, of at most `labelsMax` labels. */
function labelStep(days: number, labelsMax: number): number {
  return LABEL_STEPS.find((step) => days / step <= labelsMax) ?? Math.ceil(days / labelsMax);
}

/** The days below a chart, with at most `labelsMax` labels, at even steps back from the newest day. */
function dayAxis(days: readonly Day[], labelsMax: number): XAXisComponentOption {
  const step = labelStep(days.length, labelsMax);
  return {
    ...AXIS_STYLE,
    type: "category",
    data: [...days],
    splitLine: { show: false },
    axisLabel: {
      ...AXIS_STYLE.axisLabel,
      formatter: dayLabel,
      interval: (index: number) => (days.length - 1 - index) % step === 0,
    },
  };
}

export type ChartLayout = {
  readonly labelsMax: number;
  /** With more days, a gap between two bars would be as wide as a bar, so there are none. */
  readonly gapDaysMax: number;
};

/** The name that the library has for a series: it interprets names as patterns, and confuses equal names. */
export function seriesKey(index: number): string {
  return `s${index}`;
}

/** `hidden`: the keys of the series that are not shown. */
export function daysOption(
  { kind, days, series, marks }: ChartDescription,
  { labelsMax, gapDaysMax }: ChartLayout,
  hidden: ReadonlySet<string>,
): ChartOption {
  const gaps = days.length <= gapDaysMax;
  return {
    grid: { left: 56, right: 12, top: 16, bottom: 32 },
    // The page has a legend of its own, which selects the series of this one.
    legend: {
      show: false,
      data: series.map((_, i) => seriesKey(i)),
      selected: Object.fromEntries([...hidden].map((key) => [key, false])),
    },
    xAxis: [
      dayAxis(days, labelsMax),
      { type: "category", data: [...days], show: false, axisPointer: { show: false, triggerTooltip: false } },
    ],
    yAxis: [
      { ...AXIS_STYLE, type: "value", axisLabel: { ...AXIS_STYLE.axisLabel, formatter: compactText } },
      { type: "value", min: 0, max: 1, show: false },
    ],
    series: [
      ...marks.map((mark, i) => markSeries(`m${i}`, days, mark)),
      ...series.map((one, i) =>
        kind === "lines" || one.look === "before" ? lineSeries(seriesKey(i), one) : barSeries(seriesKey(i), one, gaps),
      ),
    ],
  };
}

function barSeries(name: string, series: ChartSeries, gaps: boolean): SeriesOption {
  return {
    type: "bar",
    name,
    stack: "day",
    // "large" draws all bars of a layer as one path, which is a third of the size.
    large: true,
    largeThreshold: 0,
    silent: true,
    barCategoryGap: gaps ? "18%" : "0%",
    barMaxWidth: 48,
    itemStyle: { color: seriesColour(series), borderColor: "var(--paper)", borderWidth: gaps ? 0.5 : 0 },
    // A layer is one path, and of a path the library leaves out everything after a value that is not known.
    data: lengths(series).map((length) => length ?? 0),
  };
}

/** More points than this would touch each other. */
const POINTS_MAX = 45;

/** A point on each day, while there are few: a day between two unknown ones has no line, and would not be seen. */
function lineSeries(name: string, series: ChartSeries): SeriesOption {
  const color = seriesColour(series);
  return {
    type: "line",
    name,
    silent: true,
    symbol: "circle",
    symbolSize: 5,
    showSymbol: series.look !== "before" && series.values.length <= POINTS_MAX,
    lineStyle: { color, width: 2, type: series.look === "before" ? "dashed" : "solid" },
    itemStyle: { color },
    emphasis: { disabled: true },
    z: 4,
    data: lengths(series),
  };
}

function lengths({ values }: ChartSeries): (number | null)[] {
  return values.map((value) => (value === null ? null : chartNumber(value)));
}

const PATTERNS = {
  hatched: { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [1.5, 3.5], rotation: -Math.PI / 4 },
  dotted: {
    symbol: "circle",
    symbolSize: 0.8,
    dashArrayX: [
      [2, 4],
      [0, 3, 2, 1],
    ],
    dashArrayY: [2, 1],
  },
};

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
    itemStyle: { color: "var(--wash)", decal: { ...PATTERNS[mark.pattern], color: "var(--hatch)" } },
    data: days.map((day) => (marked.has(day) ? 1 : null)),
  };
}
