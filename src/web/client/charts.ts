// Draws the charts that the page describes. The amounts of a bar appear beside the pointer; the table below the chart, which can be read
// without a pointer, has all amounts. A click on a bar or on an entry of the legend opens the page of that group alone.

import "echarts/lib/chart/bar.js";
import "echarts/lib/chart/line.js";
import "echarts/lib/component/gridSimple.js";
import "echarts/lib/component/tooltip.js";
import type { BarSeriesOption, LineSeriesOption, XAXisComponentOption } from "echarts";
import { init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import type { ChartDescription, ChartSeries } from "../../show/answer-chart.ts";
import { axisText, exactText, isZero, moneyText } from "../../show/format.ts";

const INCOMPLETE = "not complete";

/** Strings become text nodes, so that none becomes markup. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function drawCharts(): void {
  use(SVGRenderer);
  for (const figure of document.querySelectorAll<HTMLElement>("figure")) {
    const described = figure.querySelector("script")?.textContent;
    if (described) drawChart(figure, JSON.parse(described));
  }
}

function drawChart(figure: HTMLElement, description: ChartDescription): void {
  const title = figure.querySelector("h3")?.textContent ?? "";
  const { series, incomplete } = description;
  const label = `${title}; the table below has the amounts`;
  const plot = element("div", { class: "plot", role: "img", "aria-label": label });
  const legend = element("ul", { class: "legend", "aria-label": `Legend of ${title}` });
  legend.append(...series.map(legendItem).reverse());
  if (incomplete.length > 0) legend.append(element("li", {}, element("span", { class: "swatch hatched" }), INCOMPLETE));
  figure.querySelector("figcaption")?.after(element("div", { class: "drawing" }, plot, legend));
  const canvas = init(plot, null, { renderer: "svg", locale: "EN" });
  canvas.on("click", ({ seriesName }) => {
    const href = series[Number(seriesName)]?.href;
    if (href !== undefined) location.assign(href);
  });
  new ResizeObserver(() => {
    // Called at the beginning, too. `resize` draws the chart; without `lazyUpdate` all bars would be drawn twice.
    canvas.setOption(chartOption(description, plot.clientWidth), { notMerge: true, lazyUpdate: true });
    canvas.resize();
  }).observe(plot);
}

/** The amounts of one bar, in the order of the stack. Series whose amount there is 0 or unknown are left out. */
function tipOf({ series, titles, incomplete, unit, currency }: ChartDescription, index: number): HTMLElement {
  const rows = [...series].reverse().flatMap((one) => {
    const value = one.values[index] ?? "0";
    if (isZero(value)) return [];
    const text = currency === null ? `${exactText(value)} ${unit}` : moneyText(value, currency);
    const name = element("span", {}, swatch(one), element("bdi", {}, one.name));
    return element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, text));
  });
  const title = `${titles[index] ?? ""}${incomplete.includes(index) ? `, ${INCOMPLETE}` : ""}`;
  const amounts = rows.length > 0 ? element("table", {}, ...rows) : element("p", {}, "no amounts");
  return element("div", {}, element("b", {}, title), amounts);
}

function legendItem(one: ChartSeries): HTMLElement {
  const title = one.hint ?? one.name;
  const shown = [swatch(one), element("bdi", { title }, one.name)];
  return element("li", {}, ...(one.href === undefined ? shown : [element("a", { href: one.href }, ...shown)]));
}

function swatch(series: ChartSeries): HTMLElement {
  const made = element("span", { class: series.look === "before" ? "swatch before" : "swatch" });
  made.style.color = seriesColour(series);
  return made;
}

/** Returns a CSS variable, so that a chart follows a change from light to dark. */
function seriesColour({ look }: ChartSeries): string {
  if (look === "rest") return "var(--rest)";
  return look === "before" ? "var(--soft)" : `var(--series-${look + 1})`;
}

const LABEL_WIDTH_PX = 90;
/** Bars have gaps only if each has at least this much room: with less, a gap would be as wide as a bar. */
const BAR_WITH_GAP_PX = 5;

const AXIS_STYLE = {
  axisLine: { lineStyle: { color: "var(--line)" } },
  axisTick: { show: false },
  axisLabel: { color: "var(--soft)", fontSize: 12 },
  splitLine: { lineStyle: { color: "var(--line)" } },
} as const;

function chartOption(description: ChartDescription, widthPx: number) {
  const { kind, labels, titles, currency, series, incomplete } = description;
  const hasGaps = titles.length * BAR_WITH_GAP_PX <= widthPx;
  return {
    animation: false,
    textStyle: { fontFamily: "inherit" },
    grid: { left: 56, right: 24, top: 16, bottom: 32 },
    xAxis: [
      barAxis(labels, titles, Math.max(2, Math.floor(widthPx / LABEL_WIDTH_PX))),
      { type: "category", data: [...titles], show: false, axisPointer: { show: false, triggerTooltip: false } }, // for the hatches
    ],
    yAxis: [
      {
        ...AXIS_STYLE,
        type: "value",
        axisLabel: { ...AXIS_STYLE.axisLabel, formatter: (value: number) => axisText(value, currency) },
      },
      { type: "value", min: 0, max: 1, show: false }, // for the hatches
    ],
    series: [
      hatchedSeries(titles, incomplete),
      // The names are numbers, because the library interprets names as patterns and confuses equal ones.
      ...series.map((one, i) => {
        const isLine = kind === "lines" || one.look === "before";
        return isLine ? lineSeries(String(i), one) : barSeries(String(i), one, description.changing, hasGaps);
      }),
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
      formatter: (points: readonly { readonly dataIndex: number }[]) => tipOf(description, points[0]?.dataIndex ?? 0),
    },
  };
}

/** Possible numbers of bars from one label to the next. Most are whole weeks, if a bar is a day. */
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

/** Bars that may still change are lighter. */
function barSeries(name: string, series: ChartSeries, changing: readonly number[], hasGaps: boolean): BarSeriesOption {
  return {
    type: "bar",
    name,
    stack: "day",
    cursor: series.href === undefined ? "default" : "pointer",
    barCategoryGap: hasGaps ? "18%" : "0%",
    barMaxWidth: 48,
    itemStyle: { color: seriesColour(series), borderColor: "var(--paper)", borderWidth: hasGaps ? 0.5 : 0 },
    emphasis: { disabled: true },
    data: numbers(series).map((value, i) => ({ value, ...(changing.includes(i) && { itemStyle: { opacity: 0.5 } }) })),
  };
}

/** More points than this would touch each other. */
const POINTS_MAX = 45;

/** If there are few values, each has a point: a value between two unknown ones has no line, and would not be seen without a point. */
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
    data: numbers(series),
  };
}

function numbers({ values }: ChartSeries): (number | null)[] {
  return values.map((value) => (value === null ? null : Number(value)));
}

/** Hatches have their own axes and cover the whole height of the chart, so that a day without a bar is marked as well. */
function hatchedSeries(titles: readonly string[], incomplete: readonly number[]): BarSeriesOption {
  const hatched = { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [1.5, 3.5], rotation: -Math.PI / 4 };
  return {
    type: "bar",
    name: "incomplete",
    xAxisIndex: 1,
    yAxisIndex: 1,
    silent: true,
    barCategoryGap: "0%",
    itemStyle: { color: "var(--wash)", decal: { ...hatched, color: "var(--hatch)" } },
    data: titles.map((_, i) => (incomplete.includes(i) ? 1 : null)),
  };
}
