import { expect, test } from "vitest";
import { embeddableSvg, sparkline } from "../../src/report/chart.ts";

const SVG = `<svg width="10" height="20" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 20">
<g clip-path="url(#zr3-c0)">
<path d="M0 0" class="zr3-cls-1" ecmeta_series_index="0" pointer-events="visible" fill="var(--ink)"></path>
</g>
<text style="font-size:12px;font-family:sans-serif;font-weight:bold;" xml:space="preserve">zr3-c0 style=&quot;x&quot; class</text>
<defs><clipPath id="zr3-c0"><path d="M0 0"></path></clipPath></defs>
<style ><![CDATA[
.zr3-cls-1:hover { fill:red; }
]]></style>
</svg>`;

test("the SVG of a chart gets unique ids, and attributes in place of the styles that the policy forbids; its texts stay", () => {
  expect(embeddableSvg(SVG, "hours-w", "wide", "hours")).toBe(
    `<svg class="wide" role="img" aria-labelledby="hours" viewBox="0 0 10 20"><g clip-path="url(#hours-w-c0)">` +
      `<path d="M0 0" fill="var(--ink)"></path></g>` +
      `<text font-size="12" font-weight="bold">zr3-c0 style=&quot;x&quot; class</text>` +
      `<defs><clipPath id="hours-w-c0"><path d="M0 0"></path></clipPath></defs></svg>`,
  );
});

test("in a sparkline a day of which not all is known is hatched, and a day without usage is not", () => {
  const days = ["2026-11-17", "2026-11-18", "2026-11-19", "2026-11-20"];
  const hatchesOf = (lacking: readonly string[]) =>
    String(sparkline("hours", days, ["3", null, "0", "5"], lacking)).match(/<path [^>]*fill="url\(#hours-s-p\d\)"/g) ??
    [];
  // The hatching is as high as the drawing, whatever the height of the bar.
  expect(hatchesOf(["2026-11-18", "2026-11-20"])).toEqual([
    expect.stringMatching(/^<path d="M45 27l45 0l0 -26l-45 0Z"/),
    expect.stringMatching(/^<path d="M135 27l45 0l0 -26l-45 0Z"/),
  ]);
  expect(hatchesOf([])).toEqual([]);
});
