// Draws a chart as SVG with ECharts, and adapts that SVG to our pages: many on one page, under a strict content security policy, in
// light and dark. Pure: the same option gives the same SVG.

import "echarts/lib/chart/bar.js";
import "echarts/lib/chart/line.js";
import "echarts/lib/component/gridSimple.js";
import "echarts/lib/component/legendPlain.js";
import { init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import type { Day } from "../usage/days.ts";
import { type ChartDescription, encodeDescription } from "./chart-description.ts";
import { AXIS_STYLE, type ChartOption, daysOption, markSeries, seriesKey } from "./chart-option.ts";
import { chartNumber, isZero } from "./format.ts";
import { chartLabels, type Html, html, trustedHtml } from "./html.ts";

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

/**
 * Bars of the days beside their sum, on a base line. Days in `lacking` are hatched, because a bar that is too low or not there would look
 * like usage that is low or zero. `labelledBy` is the id of what names the bars. Undefined if there is nothing to draw.
 */
export function sparkline(
  labelledBy: string,
  days: readonly Day[],
  values: readonly (string | null)[],
  lacking: readonly Day[],
): Html | undefined {
  if (values.length < 2 || values.every((value) => value === null || isZero(value))) return undefined;
  const hidden = { axisTick: { show: false }, axisLabel: { show: false } };
  const option: ChartOption = {
    grid: { left: 0, right: 0, top: 1, bottom: 1 },
    xAxis: [
      { type: "category", data: [...days], ...hidden, axisLine: AXIS_STYLE.axisLine },
      { type: "category", data: [...days], show: false },
    ],
    yAxis: [
      { type: "value", show: false, min: 0 },
      { type: "value", show: false, min: 0, max: 1 },
    ],
    series: [
      ...(lacking.length > 0 ? [markSeries("lacking", days, { label: "", days: lacking, pattern: "hatched" })] : []),
      {
        ...{ type: "bar", silent: true, large: true, largeThreshold: 0, barCategoryGap: "15%" },
        itemStyle: { color: "var(--accent)" },
        data: values.map((value) => chartNumber(value ?? "0")),
      },
    ],
  };
  return drawSvg(`${labelledBy}-s`, "spark", labelledBy, { width: 180, height: 28, option });
}

/** Longest label in the legend, in characters of normal width. */
const LABEL_WIDTH_MAX = 26;
const LEGEND_ROW_PX = 22;
const LEGEND_WIDTH_PX = 220;

/** A chart over days, which a script of the page can draw again from its description. `below`: the table of its numbers. */
export function daysChart(id: string, title: string, description: ChartDescription, below: Html): Html {
  const { wide, narrow } = daysDrawings(description);
  return html`<figure id="${id}-chart" data-chart="${encodeDescription(description)}">
<figcaption><h3 id="${id}">${title}</h3></figcaption>
${drawSvg(`${id}-w`, "wide", id, wide)}
${drawSvg(`${id}-n`, "narrow", id, narrow)}
${below}</figure>
`;
}

/** The legend stands beside the bars, or below them on a phone. */
function daysDrawings(description: ChartDescription): Drawings {
  const { series, marks } = description;
  const names = chartLabels(
    series.map(({ name }) => name),
    LABEL_WIDTH_MAX,
  );
  const labels = new Map([
    ...names.map((name, i): [string, string] => [seriesKey(i), name]),
    ...marks.map(({ label }, i): [string, string] => [`m${i}`, label]),
  ]);
  const legendHeight = labels.size * LEGEND_ROW_PX;
  const wide = {
    grid: { left: 52, right: LEGEND_WIDTH_PX + 28, top: 16, bottom: 32 },
    legend: { left: 1040 - LEGEND_WIDTH_PX, top: 12 },
    labelsMax: 12,
    gapDaysMax: 180,
  };
  const narrow = {
    grid: { left: 44, right: 8, top: 12, bottom: legendHeight + 34 },
    legend: { left: 4, bottom: 0 },
    labelsMax: 5,
    gapDaysMax: 60,
  };
  return {
    wide: { width: 1040, height: Math.max(300, legendHeight + 40), option: daysOption(description, wide, labels) },
    narrow: { width: 360, height: 236 + legendHeight, option: daysOption(description, narrow, labels) },
  };
}

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
