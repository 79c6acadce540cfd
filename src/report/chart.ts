// Draws a chart as SVG with ECharts, and adapts that SVG to our pages: many on one page, under a strict content security policy, in
// light and dark. Pure: the same option gives the same SVG.

import "echarts/lib/chart/bar.js";
import "echarts/lib/chart/scatter.js";
import "echarts/lib/component/gridSimple.js";
import "echarts/lib/component/legendPlain.js";
import type { XAXisComponentOption } from "echarts";
import type { BarSeriesOption, ScatterSeriesOption } from "echarts/charts";
import type { GridComponentOption, LegendComponentOption } from "echarts/components";
import { type ComposeOption, init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import type { Day } from "../usage/days.ts";
import { dayLabel } from "./format.ts";
import { type Html, html, trustedHtml } from "./html.ts";

export type ChartOption = ComposeOption<SeriesOption | GridComponentOption | LegendComponentOption>;
export type SeriesOption = BarSeriesOption | ScatterSeriesOption;

/** In pixels. Displayed at this size, the chart's texts are as large as those of the page. */
export type Drawing = { readonly width: number; readonly height: number; readonly option: ChartOption };

/** `wide` is for wide screens and paper, `narrow` for phones. */
export type Drawings = { readonly wide: Drawing; readonly narrow: Drawing };

/** A chart under its heading. The style sheet shows one of the drawings, by the width of the screen. */
export function chart(id: string, title: string, { wide, narrow }: Drawings, details: Html): Html {
  return html`<figure>
<figcaption><h3 id="${id}">${title}</h3></figcaption>
${drawSvg(`${id}-w`, "wide", id, wide)}
${drawSvg(`${id}-n`, "narrow", id, narrow)}
${details}</figure>
`;
}

function drawSvg(id: string, className: string, labelledBy: string, { width, height, option }: Drawing): Html {
  use(SVGRenderer);
  const canvas = init(null, null, { renderer: "svg", ssr: true, width, height, locale: "EN" });
  try {
    canvas.setOption({ animation: false, textStyle: { fontFamily: "sans-serif" }, ...option });
    return trustedHtml(embeddableSvg(canvas.renderToSVGString(), id, className, labelledBy));
  } finally {
    canvas.dispose();
  }
}

export const AXIS_STYLE = {
  axisLine: { lineStyle: { color: "var(--line)" } },
  axisTick: { show: false },
  axisLabel: { color: "var(--soft)", fontSize: 12 },
  splitLine: { lineStyle: { color: "var(--line)" } },
} as const;

/** Days from one label to the next: whole weeks if possible. */
const LABEL_STEPS = [1, 2, 4, 7, 14, 28, 56];

/** The days below a chart, with at most `labelsMax` labels, at even steps back from the newest day. */
export function dayAxis(days: readonly Day[], labelsMax: number): XAXisComponentOption {
  const step = LABEL_STEPS.find((step) => days.length / step <= labelsMax) ?? Math.ceil(days.length / labelsMax);
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

export const LEGEND_STYLE = {
  orient: "vertical",
  itemWidth: 12,
  itemHeight: 12,
  itemGap: 8,
  padding: 0,
  selectedMode: false,
  textStyle: { color: "var(--ink)", fontSize: 12 },
} as const;

/**
 * Ids get a prefix, so that no two charts share one. Classes and the library's style sheet, which styles hovering, are removed.
 * `style` attributes, which the policy forbids, become attributes. Only tags are changed: the library escapes texts, and attributes
 * hold no text from outside, only colours and our own ids.
 */
export function embeddableSvg(svg: string, id: string, className: string, labelledBy: string): string {
  return svg
    .replace(/<style[\s\S]*?<\/style>/, "")
    .replaceAll(/<[^>]+>/g, (tag) => cleanTag(tag, id))
    .replace(
      /^<svg[^>]*?viewBox="([^"]*)"[^>]*>/,
      (_, viewBox: string) =>
        `<svg class="${className}" role="img" aria-labelledby="${labelledBy}" viewBox="${viewBox}">`,
    )
    .replaceAll(/>\s*\n\s*</g, "><");
}

function cleanTag(tag: string, id: string): string {
  return tag
    .replaceAll(/ (class|pointer-events|ecmeta_\w+|xmlns:xlink|xml:space)="[^"]*"/g, "")
    .replace(/ style="([^"]*)"/, (_, style: string) => fontAttributes(style))
    .replaceAll(/\bzr\d+-/g, `${id}-`);
}

/** Size and weight only: the typeface is the page's. */
function fontAttributes(style: string): string {
  return style
    .split(";")
    .map((declaration) => declaration.split(":").map((part) => part.trim()))
    .filter(([name = ""]) => name === "font-size" || name === "font-weight")
    .map(([name, value]) => ` ${name}="${value?.replace("px", "")}"`)
    .join("");
}
