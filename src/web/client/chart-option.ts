// What ECharts draws of a chart. Pure.

import type { BarSeriesOption, LineSeriesOption, XAXisComponentOption } from "echarts";
import { type ChartDescription, type ChartSeries, type DayMark, seriesColour } from "../../show/chart-description.ts";
import { chartNumber, compactText, dayLabel } from "../../show/format.ts";

type SeriesOption = BarSeriesOption | LineSeriesOption;

const LABEL_PX = 90;
/** With less, a gap between two bars would be as wide as a bar, so there are none. */
const BAR_WITH_GAP_PX = 5;

const AXIS_STYLE = {
  axisLine: { lineStyle: { color: "var(--line)" } },
  axisTick: { show: false },
  axisLabel: { color: "var(--soft)", fontSize: 12 },
  splitLine: { lineStyle: { color: "var(--line)" } },
} as const;

/** The name that the library has for a series: it interprets names as patterns, and confuses equal names. */
export const seriesKey = (index: number) => `s${index}`;

/** `hidden` are the keys of series that are not shown; `tip` is what appears beside the pointer on a day. */
export function chartOption(
  description: ChartDescription,
  widthPx: number,
  hidden: ReadonlySet<string>,
  tip: (index: number) => HTMLElement,
) {
  const { kind, days, series, marks } = description;
  const hasGaps = days.length * BAR_WITH_GAP_PX <= widthPx;
  return {
    animation: false,
    textStyle: { fontFamily: "inherit" },
    grid: { left: 56, right: 12, top: 16, bottom: 32 },
    // The page has a legend of its own, which selects the series of this one.
    legend: {
      show: false,
      data: series.map((_, i) => seriesKey(i)),
      selected: Object.fromEntries([...hidden].map((key) => [key, false])),
    },
    xAxis: [
      dayAxis(days, Math.max(2, Math.floor(widthPx / LABEL_PX))),
      { type: "category", data: [...days], show: false, axisPointer: { show: false, triggerTooltip: false } },
    ],
    yAxis: [
      { ...AXIS_STYLE, type: "value", axisLabel: { ...AXIS_STYLE.axisLabel, formatter: compactText } },
      { type: "value", min: 0, max: 1, show: false },
    ],
    series: [
      ...marks.map((mark, i) => markSeries(`m${i}`, days, mark)),
      ...series.flatMap((one, i): SeriesOption[] =>
        isLine(one, kind) ? [lineSeries(seriesKey(i), one)] : barSeries(seriesKey(i), one, description, hasGaps),
      ),
    ],
    tooltip: {
      trigger: "axis",
      className: "tip",
      confine: true,
      transitionDuration: 0,
      padding: 0,
      borderWidth: 0,
      backgroundColor: "var(--paper)",
      axisPointer: { type: "shadow", shadowStyle: { color: "var(--ink)", opacity: 0.1 } },
      formatter: (points: readonly { readonly dataIndex: number }[]) => tip(points[0]?.dataIndex ?? 0),
    },
  };
}

export function isLine({ look }: ChartSeries, kind: ChartDescription["kind"]): boolean {
  return kind === "lines" || look === "before";
}

/** Days from one label to the next: whole weeks if possible. */
const LABEL_STEPS = [1, 2, 4, 7, 14, 28, 56];

/** The days below a chart, with at most `labelsMax` labels, at even steps back from the newest day. */
function dayAxis(days: ChartDescription["days"], labelsMax: number): XAXisComponentOption {
  const step = LABEL_STEPS.find((one) => days.length / one <= labelsMax) ?? Math.ceil(days.length / labelsMax);
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

/** Days that may still change are a lighter series with the same name. */
function barSeries(
  name: string,
  series: ChartSeries,
  { days, changing = [] }: ChartDescription,
  hasGaps: boolean,
): BarSeriesOption[] {
  const isChanging = new Set(changing);
  const barsOf = (opacity: number, isShown: (day: string) => boolean): BarSeriesOption => ({
    type: "bar",
    name,
    stack: "day",
    // "large" draws all bars of a layer as one path, which is a third of the size.
    large: true,
    largeThreshold: 0,
    silent: true,
    barCategoryGap: hasGaps ? "18%" : "0%",
    barMaxWidth: 48,
    itemStyle: {
      ...{ color: seriesColour(series), opacity, borderColor: "var(--paper)", borderWidth: hasGaps ? 0.5 : 0 },
    },
    // A layer is one path, and of a path the library leaves out everything after a value that is not known.
    data: lengths(series).map((length, i) => (isShown(days[i] ?? "") ? (length ?? 0) : 0)),
  });
  const settled = barsOf(1, (day) => !isChanging.has(day));
  return changing.length === 0 ? [settled] : [settled, barsOf(0.5, (day) => isChanging.has(day))];
}

/** More points than this would touch each other. */
const POINTS_MAX = 45;

/** A point on each day, while there are few: a day between two unknown ones has no line, and would not be seen. */
function lineSeries(name: string, series: ChartSeries): LineSeriesOption {
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
    ...{ symbol: "circle", symbolSize: 0.8, dashArrayY: [2, 1] },
    dashArrayX: [
      [2, 4],
      [0, 3, 2, 1],
    ],
  },
};

/** The mark has its own axes and covers the whole height of the chart, so that a day without a bar is marked as well. */
function markSeries(name: string, days: ChartDescription["days"], mark: DayMark): BarSeriesOption {
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
