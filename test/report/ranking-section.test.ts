import { expect, test } from "vitest";
import { lessThanTotalNote, rankingSection } from "../../src/report/ranking-section.ts";
import type { RankedGroup, Ranking } from "../../src/report/report-data.ts";
import { WHOLE } from "./make-report-data.ts";

const group = (part: Partial<RankedGroup>): RankedGroup => ({
  ...{ project: "production", projectId: "project-0", group: "k1", comment: null },
  ...{ hours: "200.5", requests: "1000", hoursBefore: "100.25", requestsBefore: "2000" },
  ...part,
});
const ranking: Ranking = {
  ...WHOLE,
  ...{ grouping: "accessor", projects: ["production"], groupCount: 3, hours: "300.5", requests: "1500" },
  groups: [group({ comment: "exporter" }), group({ group: null, hours: "50.125", requests: "500", hoursBefore: null })],
};
const text = (part: Partial<Ranking> = {}) => String(rankingSection({ ...ranking, ...part }).body);
const cells = (html: string) =>
  html
    .replaceAll(/<\/t[hdr]>/g, "|")
    .replaceAll(/<svg.*?<\/svg>/g, "bar")
    .replaceAll(/<[^>]*>/g, "");

test("each group has its amounts, its change and its project", () => {
  expect(cells(text())).toContain("exporter k1|bar|201|1,000|+100%|production|");
  expect(cells(text())).toContain("no value|bar|50.1|500|new|production|");
  expect(text()).toContain('<span title="200.5">201</span>');
});

test("the length of a bar is the group's share of the largest group", () => {
  expect([...text().matchAll(/<rect width="([^"]*)"/g)].map(([, width]) => width)).toEqual(["100.0%", "25.0%"]);
});

test("without hours, bars and changes are those of the requests", () => {
  const groups = ranking.groups.map((one) => ({ ...one, hours: null }));
  expect(cells(text({ groups, hours: null }))).toContain("exporter k1|bar|1,000|-50%|production|");
  expect([...text({ groups }).matchAll(/<rect width="([^"]*)"/g)].map(([, width]) => width)).toEqual([
    "100.0%",
    "50.0%",
  ]);
});

test("the note has the number of groups, and the sum of all accessors", () => {
  expect(text()).toContain(
    "The 2 largest of 3 groups. An accessor is an API key; all of them together: 301 hours, 1,500 requests.",
  );
});

test("the note on tags has no sum and says that tags overlap", () => {
  const tags = text({ grouping: "tags", groups: [group({ group: '["a","b"]' })], hours: null, requests: null });
  expect(tags).toContain("Tags overlap");
  expect(tags).not.toContain("together");
});

test("with incomplete days no changes are shown; if they are in the period, the figures are marked as too low", () => {
  expect(text({ incompleteDays: 2 })).toMatch(
    /too low.*Not compared with the period before: in this period 2 days are not complete/,
  );
  expect(text({ incompleteDaysBefore: 2 })).not.toMatch(/too low|%<|new</);
});

test("without usage there is no table", () => {
  expect(text({ groups: [] })).toContain("No usage in this period.");
});

test("it is said what the headline figures have and the ranking has not", () => {
  const sources = ["production", "staging", "batch"].map((project) => ({ project, grouping: "none" as const }));
  const brief = (part: Partial<Ranking>, inAll = sources) =>
    cells(String(lessThanTotalNote({ ...ranking, ...part }, { sources: inAll }) ?? ""));
  expect(brief({ unreadDays: 29 }, sources.slice(0, 1))).toContain(
    "Not read by accessor, so not in these figures: 29 days of this period.",
  );
  expect(brief({})).toContain("Not read by accessor, so not in these figures: 2 of 3 projects.");
  expect(brief({ projects: ["production", "staging"], unreadDays: 1 })).toContain(
    "not in these figures: 1 day of this period (counted for each project); 1 of 3 projects.",
  );
  expect(brief({}, sources.slice(0, 1))).toBe("");
});
