import { expect, test } from "vitest";
import { breakdownSection } from "../../src/report/breakdown-section.ts";
import type { Breakdown } from "../../src/report/report-data.ts";

const breakdown: Breakdown = {
  grouping: "model",
  projects: ["production", "<lab>"],
  days: ["2026-11-18", "2026-11-19", "2026-11-20"],
  incompleteDays: ["2026-11-20"],
  unreadDays: ["2026-11-18"],
  groups: [
    { group: "nova-3", hours: ["0", "1620.50", "0"], requests: ["0", "1200", "0"] },
    { group: null, hours: ["0", "1", "0.125"], requests: ["0", "7", "3"] },
  ],
  rest: { hours: ["0", "0.25", "0"], requests: ["0", "2", "0"], groupCount: 12 },
};
const text = (part: Partial<Breakdown> = {}) => String(breakdownSection({ ...breakdown, ...part }).body);
const rows = (caption: string) =>
  [
    ...((text().split(`<caption>${caption}</caption>`)[1] ?? "").split("</table>")[0]?.matchAll(/<tr>(.*?)<\/tr>/gs) ??
      []),
  ].map(([, row = ""]) =>
    [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/g)].map(([, cell = ""]) => cell.replaceAll(/<[^>]*>/g, "")),
  );

test("the tables behind the charts have every number", () => {
  expect(rows("Exact hours by day and model")).toEqual([
    ["Day (UTC)", "nova-3", "no value", "12 others"],
    ["2026-11-18 not read", "0", "0", "0"],
    ["2026-11-19", "1,620.5", "1", "0.25"],
    ["2026-11-20 not complete", "0", "0.125", "0"],
  ]);
  expect(rows("Exact requests by day and model")[2]).toEqual(["2026-11-19", "1,200", "7", "2"]);
});

test("a note above the charts names the projects, and the days that lack some of their usage", () => {
  const note = text().replaceAll(/<[^>]*>/g, "");
  expect(note).toContain("Projects: production, &lt;lab&gt;. Too low on 2026-11-20 (hatched)");
  expect(note).toContain("not read (dotted) on 2026-11-18");
  expect(text({ incompleteDays: [], unreadDays: [] })).not.toMatch(/Too low|not read|not complete/);
});

test("without usage there is no chart", () => {
  expect(text({ groups: [], rest: undefined })).toContain("No usage in this period.");
});

test("a group that is a set is named by its members, and a group without any of the metric is left out", () => {
  const groups = [
    { group: '["aura","nova"]', hours: ["1", "2", "3"], requests: ["1", "2", "3"] },
    { group: "idle", hours: ["0", "0.000", "0"], requests: ["1", "2", "3"] },
  ];
  const body = String(breakdownSection({ ...breakdown, groups }, ["hours"]).body);
  expect(body).toContain(">aura, nova</text>");
  expect(body).toContain('<span class="chips"><span><bdi>aura</bdi></span> <span><bdi>nova</bdi></span> </span>');
  expect(body).not.toContain("idle");
});
