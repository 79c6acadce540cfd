import { expect, test } from "vitest";
import { daysChart } from "../../src/report/chart.ts";
import { html } from "../../src/report/html.ts";

test("a day of which nothing is known has no bar, and the days after it keep theirs", () => {
  const days = ["2026-11-17", "2026-11-18", "2026-11-19", "2026-11-20"];
  const series = [{ name: "nova-3", look: 0, values: [null, "3", null, "4"] }];
  const chart = daysChart("id", "title", { kind: "bars", unit: "hours", days, series, marks: [] }, html``);
  const [, wide = ""] = /<path d="([^"]*)"[^>]*var\(--series-1\)/.exec(String(chart)) ?? [];
  const heights = [...wide.matchAll(/M[\d.]+ [\d.]+l[\d.]+ 0l0 (-?[\d.]+)/g)].map(([, height]) => Number(height));
  expect(heights.map((height) => height < 0)).toEqual([false, true, false, true]);
});
