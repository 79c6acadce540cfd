// Draws a chart as SVG by ECharts, which makes the axes, the scales and the legend.

// One by one: the lists of all charts and components take three times as long to load, and twice the memory.
import "echarts/lib/chart/bar.js";
import "echarts/lib/chart/scatter.js";
import "echarts/lib/component/gridSimple.js";
import "echarts/lib/component/legendPlain.js";
import type { BarSeriesOption, ScatterSeriesOption } from "echarts/charts";
import type { GridComponentOption, LegendComponentOption } from "echarts/components";
import { type ComposeOption, init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { type Html, html, trustedHtml } from "./html.ts";
import { pageSvg } from "./svg.ts";

export type ChartOption = ComposeOption<SeriesOption | GridComponentOption | LegendComponentOption>;
export type { XAXisComponentOption as AxisOption } from "echarts";
export type SeriesOption = BarSeriesOption | ScatterSeriesOption;

/** A size in pixels at which the texts are as large as those around the chart, and what is drawn in it. */
export type Drawing = { readonly width: number; readonly height: number; readonly option: ChartOption };

/**
 * A chart under its heading: drawn twice, for wide screens and paper and for phones, where the wide one could not be read. The
 * style sheet shows one of them.
 */
export function chart(
  id: string,
  title: string,
  { wide, narrow }: { readonly wide: Drawing; readonly narrow: Drawing },
  behind: Html,
): Html {
  return html`<figure>
<figcaption><h3 id="${id}">${title}</h3></figcaption>
${draw(`${id}-w`, "wide", id, wide)}
${draw(`${id}-n`, "narrow", id, narrow)}
${behind}</figure>
`;
}

function draw(id: string, className: string, labelledBy: string, { width, height, option }: Drawing): Html {
  use(SVGRenderer);
  const canvas = init(null, null, { renderer: "svg", ssr: true, width, height, locale: "EN" });
  try {
    canvas.setOption({ animation: false, textStyle: { fontFamily: "sans-serif" }, ...option });
    return trustedHtml(pageSvg(canvas.renderToSVGString(), id, className, labelledBy));
  } finally {
    canvas.dispose();
  }
}
