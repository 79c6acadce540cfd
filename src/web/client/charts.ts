// Draws the charts of the page, from what it says they show: the amounts of a day appear beside the pointer, or are read out when the arrow keys
// move along the days. A click on a bar leads to its group alone; the legend shows and hides series. Amounts stay the texts of the page.

import "echarts/lib/chart/bar.js";
import "echarts/lib/chart/line.js";
import "echarts/lib/component/gridSimple.js";
import "echarts/lib/component/legendPlain.js";
import "echarts/lib/component/tooltip.js";
import { type ECharts, init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import {
  type ChartDescription,
  type ChartSeries,
  decodeDescription,
  seriesColour,
} from "../../show/chart-description.ts";
import { chartNumber, exactText, isZero } from "../../show/format.ts";
import { chartOption, isLine, seriesKey } from "./chart-option.ts";
import { ADDED, element } from "./element.ts";

type DrawnChart = { readonly update: () => void; readonly dispose: () => void };
const drawn = new Map<HTMLElement, DrawnChart>();

/** Draws the charts that are not drawn yet, renews those of which the description has changed, and forgets those that are gone. */
export function drawCharts(): void {
  use(SVGRenderer);
  for (const [figure, { dispose }] of drawn) {
    if (figure.isConnected) continue;
    dispose();
    drawn.delete(figure);
  }
  for (const figure of document.querySelectorAll<HTMLElement>("figure[data-chart]")) {
    const known = drawn.get(figure);
    if (known) known.update();
    else drawn.set(figure, drawChart(figure));
  }
}

function drawChart(figure: HTMLElement): DrawnChart {
  const title = figure.querySelector("h3")?.textContent ?? "";
  const plot = element("div", { class: "plot", tabindex: "0", role: "slider", "aria-label": `${title}: a day` });
  const legend = element("ul", { class: "legend", "aria-label": `Legend of ${title}` });
  figure.querySelector("figcaption")?.after(element("div", { class: "drawing", [ADDED]: "" }, plot, legend));
  const canvas = init(plot, null, { renderer: "svg", locale: "EN" });

  let text = "";
  let description: ChartDescription = { kind: "bars", unit: "", days: [], series: [], marks: [] };
  const hidden = new Set<string>();
  let day = -1;

  const tip = (index: number) => tipOf(description, hidden, index);
  const draw = () => canvas.setOption(chartOption(description, plot.clientWidth, hidden, tip), { notMerge: true });
  const update = () => {
    const now = figure.dataset.chart ?? "";
    if (now === text) return;
    text = now;
    description = decodeDescription(text);
    day = Math.min(day, description.days.length - 1);
    plot.setAttribute("aria-valuemin", "0");
    plot.setAttribute("aria-valuemax", String(Math.max(description.days.length - 1, 0)));
    sayDay(plot, description, hidden, day);
    legend.replaceChildren(...legendItems(description, hidden));
    draw();
  };
  legend.addEventListener("click", ({ target }) => {
    const button = target instanceof Element ? target.closest("button") : null;
    const key = button?.dataset.series;
    if (!button || key === undefined) return;
    const shows = hidden.delete(key);
    if (!shows) hidden.add(key);
    button.setAttribute("aria-pressed", String(shows));
    canvas.dispatchAction({ type: shows ? "legendSelect" : "legendUnSelect", name: key });
  });
  plot.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moved = dayBy(event.key, day, description.days.length);
    if (moved === undefined) return;
    day = moved;
    sayDay(plot, description, hidden, day);
    pointAt(canvas, description, day);
    event.preventDefault();
  });
  plot.addEventListener("blur", () => canvas.dispatchAction({ type: "hideTip" }));
  canvas.getZr().on("click", ({ offsetX, offsetY }) => {
    const href = barAt(canvas, description, hidden, offsetX, offsetY)?.href;
    if (href !== undefined) location.assign(href);
  });
  new ResizeObserver(() => {
    canvas.resize();
    draw();
  }).observe(plot);
  update();
  return { update, dispose: () => canvas.dispose() };
}

// The bars and the amounts of a day.

/** The series of the bar at a point of the plot. */
function barAt(
  canvas: ECharts,
  { kind, series }: ChartDescription,
  hidden: ReadonlySet<string>,
  x: number,
  y: number,
): ChartSeries | undefined {
  const [index = -1, height = 0] = canvas.convertFromPixel({ xAxisIndex: 0, yAxisIndex: 0 }, [x, y]);
  let top = 0;
  return series.find((one, i) => {
    if (isLine(one, kind) || hidden.has(seriesKey(i))) return false;
    top += chartNumber(one.values[index] ?? "0");
    return height >= 0 && height <= top;
  });
}

type Amount = { readonly series: ChartSeries; readonly text: string };

/** From the top of the stack down; series that are hidden or have nothing on the day are left out. */
function amountsOf(
  { series, unit, days }: ChartDescription,
  hidden: ReadonlySet<string>,
  index: number,
): readonly Amount[] {
  return series
    .flatMap((one, i) => {
      const value = one.values[index];
      if (value === undefined || value === null || isZero(value) || hidden.has(seriesKey(i))) return [];
      const other = one.days?.[index];
      const on = other === undefined || other === days[index] ? "" : ` on ${other}`;
      return [{ series: one, text: `${exactText(value)} ${unitOf(value, unit)}${on}` }];
    })
    .reverse();
}

function unitOf(value: string, unit: string): string {
  return exactText(value) === "1" ? unit.replace(/s$/, "") : unit;
}

function marksOf({ days, marks }: ChartDescription, index: number): readonly string[] {
  const day = days[index] ?? "";
  return marks.filter((mark) => mark.days.includes(day)).map(({ label }) => label);
}

function tipOf(description: ChartDescription, hidden: ReadonlySet<string>, index: number): HTMLElement {
  const rows = amountsOf(description, hidden, index).map(({ series, text }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, element("span", {}, swatch(series), element("bdi", {}, series.name))),
      element("td", {}, text),
    ),
  );
  const title = [description.days[index] ?? "", ...marksOf(description, index)].join(", ");
  return element(
    "div",
    {},
    element("b", {}, title),
    rows.length > 0 ? element("table", {}, ...rows) : element("p", {}, "nothing on this day"),
  );
}

/** A screen reader reads the value of the slider when it changes. */
function sayDay(plot: HTMLElement, description: ChartDescription, hidden: ReadonlySet<string>, index: number): void {
  const amounts = amountsOf(description, hidden, index).map(({ series, text }) => `${series.name} ${text}`);
  const said = [[description.days[index], ...marksOf(description, index)].join(", "), ...amounts].join("; ");
  plot.setAttribute("aria-valuenow", String(Math.max(index, 0)));
  plot.setAttribute("aria-valuetext", index < 0 ? "no day; the arrow keys choose one" : said);
}

function pointAt(canvas: ECharts, { days }: ChartDescription, index: number): void {
  const x = canvas.convertToPixel({ xAxisIndex: 0 }, days[index] ?? "");
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

function legendItems({ series, marks }: ChartDescription, hidden: ReadonlySet<string>): readonly HTMLElement[] {
  const items = series.map((one, i) => {
    const key = seriesKey(i);
    const attributes = { type: "button", "data-series": key, "aria-pressed": String(!hidden.has(key)) };
    const button = element(
      "button",
      attributes,
      swatch(one),
      element("bdi", { title: one.hint ?? one.name }, one.name),
    );
    const link = one.href === undefined ? [] : [openLink(one, one.href)];
    return element("li", {}, button, ...link);
  });
  const patterns = marks.map(({ label, pattern }) =>
    element("li", {}, element("span", { class: `swatch ${pattern}` }), label),
  );
  return [...items.reverse(), ...patterns];
}

function openLink({ name, look }: ChartSeries, href: string): HTMLElement {
  const title = look === "rest" ? `List more of the ${name}` : `Show only ${name}`;
  return element("a", { href, "aria-label": title, title }, "→");
}

function swatch(series: ChartSeries): HTMLElement {
  const made = element("span", { class: series.look === "before" ? "swatch before" : "swatch" });
  made.style.color = seriesColour(series);
  return made;
}
