// What ECharts draws of a chart. Pure.

import type { BarSeriesOption, LineSeriesOption, XAXisComponentOption } from "echarts";
import { type BarMark, type ChartDescription, type ChartSeries, seriesColour } from "../../show/chart-description.ts";
import { axisText, chartNumber } from "../../show/format.ts";

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
const seriesKey = (index: number) => `s${index}`;

/** `tip` is what appears beside the pointer on a day. */
export function chartOption(description: ChartDescription, widthPx: number, tip: (index: number) => HTMLElement) {
  const { kind, labels, titles, currency, series, marks } = description;
  const hasGaps = titles.length * BAR_WITH_GAP_PX <= widthPx;
  return {
    animation: false,
    textStyle: { fontFamily: "inherit" },
    grid: { left: 56, right: 12, top: 16, bottom: 32 },
    xAxis: [
      barAxis(labels, titles, Math.max(2, Math.floor(widthPx / LABEL_PX))),
      { type: "category", data: [...titles], show: false, axisPointer: { show: false, triggerTooltip: false } },
    ],
    yAxis: [
      {
        ...{ ...AXIS_STYLE, type: "value" },
        axisLabel: { ...AXIS_STYLE.axisLabel, formatter: (value: number) => axisText(value, currency) },
      },
      { type: "value", min: 0, max: 1, show: false },
    ],
    series: [
      ...marks.map((mark, i) => markSeries(`m${i}`, titles, mark)),
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

/** Bars from one label to the next: whole weeks of days if possible. */
const LABEL_STEPS = [1, 2, 4, 7, 14, 28, 56];

/** At most `labelsMax` labels, at even steps back from the newest bar. */
function barAxis(labels: readonly string[], titles: readonly string[], labelsMax: number): XAXisComponentOption {
  const step = LABEL_STEPS.find((one) => labels.length / one <= labelsMax) ?? Math.ceil(labels.length / labelsMax);
  return {
    ...AXIS_STYLE,
    type: "category",
    data: [...titles],
    splitLine: { show: false },
    axisLabel: {
      ...AXIS_STYLE.axisLabel,
      formatter: (_: string, index: number) => labels[index] ?? "",
      interval: (index: number) => (labels.length - 1 - index) % step === 0,
    },
  };
}

/** Days that may still change are a lighter series with the same name. */
function barSeries(
  name: string,
  series: ChartSeries,
  { changing }: ChartDescription,
  hasGaps: boolean,
): BarSeriesOption[] {
  const barsOf = (opacity: number, isShown: (index: number) => boolean): BarSeriesOption => ({
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
    data: lengths(series).map((length, i) => (isShown(i) ? (length ?? 0) : 0)),
  });
  const settled = barsOf(1, (index) => !changing.includes(index));
  return changing.length === 0 ? [settled] : [settled, barsOf(0.5, (index) => changing.includes(index))];
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
function markSeries(name: string, titles: readonly string[], mark: BarMark): BarSeriesOption {
  return {
    type: "bar",
    name,
    stack: "mark",
    xAxisIndex: 1,
    yAxisIndex: 1,
    silent: true,
    barCategoryGap: "0%",
    itemStyle: { color: "var(--wash)", decal: { ...PATTERNS[mark.pattern], color: "var(--hatch)" } },
    data: titles.map((_, i) => (mark.at.includes(i) ? 1 : null)),
  };
}
