// Draws the charts of the page, from what it says they show: the amounts of a day appear beside the pointer, or are read out when the arrow keys
// move along the days. A click on a bar or on an entry of the legend leads to its group alone. Amounts stay the texts of the page.

import "echarts/lib/chart/bar.js";
import "echarts/lib/chart/line.js";
import "echarts/lib/component/gridSimple.js";
import "echarts/lib/component/legendPlain.js";
import "echarts/lib/component/tooltip.js";
import { type ECharts, init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { type ChartDescription, type ChartSeries, seriesColour } from "../../show/chart-description.ts";
import { chartNumber, exactText, isZero, moneyText } from "../../show/format.ts";
import { chartOption, isLine } from "./chart-option.ts";

type Attributes = Readonly<Record<string, string>>;

/** Texts are set as text, so that none becomes markup. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
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
  const { titles, series, marks } = description;
  const plot = element("div", { class: "plot", tabindex: "0", role: "slider", "aria-label": `${title}: amounts` });
  const patterns = marks.map(({ label, pattern }) =>
    element("li", {}, element("span", { class: `swatch ${pattern}` }), label),
  );
  const legend = element("ul", { class: "legend", "aria-label": `Legend of ${title}` });
  legend.append(...series.map(legendItem).reverse(), ...patterns);
  figure.querySelector("figcaption")?.after(element("div", { class: "drawing" }, plot, legend));
  const canvas = init(plot, null, { renderer: "svg", locale: "EN" });
  const tip = (index: number) => tipOf(description, index);
  plot.setAttribute("aria-valuemin", "0");
  plot.setAttribute("aria-valuemax", String(Math.max(titles.length - 1, 0)));
  let day = -1;
  sayBar(plot, description, day);
  plot.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moved = dayBy(event.key, day, titles.length);
    if (moved === undefined) return;
    day = moved;
    sayBar(plot, description, day);
    pointAt(canvas, description, day);
    event.preventDefault();
  });
  plot.addEventListener("blur", () => canvas.dispatchAction({ type: "hideTip" }));
  canvas.getZr().on("click", ({ offsetX, offsetY }) => {
    const href = barAt(canvas, description, offsetX, offsetY)?.href;
    if (href !== undefined) location.assign(href);
  });
  new ResizeObserver(() => {
    canvas.resize();
    canvas.setOption(chartOption(description, plot.clientWidth, tip), { notMerge: true });
  }).observe(plot);
}

// The bars and the amounts of a day.

/** The series of the bar at a point of the plot. */
function barAt(canvas: ECharts, { kind, series }: ChartDescription, x: number, y: number): ChartSeries | undefined {
  const [index = -1, height = 0] = canvas.convertFromPixel({ xAxisIndex: 0, yAxisIndex: 0 }, [x, y]);
  let top = 0;
  return series.find((one) => {
    if (isLine(one, kind)) return false;
    top += chartNumber(one.values[index] ?? "0");
    return height >= 0 && height <= top;
  });
}

type Amount = { readonly series: ChartSeries; readonly text: string };

/** From the top of the stack down; series that have nothing then are left out. */
function amountsOf({ series, unit, currency, titles }: ChartDescription, index: number): readonly Amount[] {
  return series
    .flatMap((one) => {
      const value = one.values[index];
      if (value === undefined || value === null || isZero(value)) return [];
      const other = one.titles?.[index];
      const on = other === undefined || other === titles[index] ? "" : ` on ${other}`;
      const amount = currency === null ? `${exactText(value)} ${unitOf(value, unit)}` : moneyText(value, currency);
      return [{ series: one, text: `${amount}${on}` }];
    })
    .reverse();
}

function unitOf(value: string, unit: string): string {
  return exactText(value) === "1" ? unit.replace(/s$/, "") : unit;
}

function barTitle({ titles, marks }: ChartDescription, index: number): string {
  const labels = marks.filter(({ at }) => at.includes(index)).map(({ label }) => label);
  return [titles[index] ?? "", ...labels].join(", ");
}

function tipOf(description: ChartDescription, index: number): HTMLElement {
  const rows = amountsOf(description, index).map(({ series, text }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, element("span", {}, swatch(series), element("bdi", {}, series.name))),
      element("td", {}, text),
    ),
  );
  return element(
    "div",
    {},
    element("b", {}, barTitle(description, index)),
    rows.length > 0 ? element("table", {}, ...rows) : element("p", {}, "nothing used"),
  );
}

/** A screen reader reads the value of the slider when it changes. */
function sayBar(plot: HTMLElement, description: ChartDescription, index: number): void {
  const amounts = amountsOf(description, index).map(({ series, text }) => `${series.name} ${text}`);
  plot.setAttribute("aria-valuenow", String(Math.max(index, 0)));
  plot.setAttribute(
    "aria-valuetext",
    index < 0 ? "no bar; the arrow keys choose one" : [barTitle(description, index), ...amounts].join("; "),
  );
}

function pointAt(canvas: ECharts, { titles }: ChartDescription, index: number): void {
  const x = canvas.convertToPixel({ xAxisIndex: 0 }, titles[index] ?? "");
  if (Number.isFinite(x)) canvas.dispatchAction({ type: "showTip", x, y: canvas.getHeight() / 3 });
}

/** How many days each key moves on. */
const STEPS: Readonly<Record<string, number>> = {
  ...{ ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -7, PageUp: 7 },
  ...{ Home: Number.NEGATIVE_INFINITY, End: Number.POSITIVE_INFINITY },
};

/** The day that a key moves to; undefined for another key. Before the first key, no day is chosen. */
function dayBy(key: string, day: number, count: number): number | undefined {
  const step = STEPS[key];
  if (step === undefined || count === 0) return undefined;
  const from = day < 0 && step < 0 ? count : day;
  return Math.min(Math.max(from + step, 0), count - 1);
}

// The legend.

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
