// What a chart and the table of groups show of an answer: amounts, names, and bars that lack days.

import { expect, test } from "vitest";
import type { Answer } from "../../src/facts/answer.ts";
import { answerChart, type ChartDescription, groupLabel, groupTable } from "../../src/show/answer-chart.ts";
import { daysOf } from "../../src/usage/days.ts";
import { makeAnswer } from "../facts/sample-facts.ts";

/** Thursday to Monday, over the end of a month. */
const DAYS = daysOf({ start: "2026-02-26", end: "2026-03-02" });
const STATES = ["final", "final", "unread", "final", "settling"] as const;
const GROUPS: Answer["groups"] = [
  { rank: 2, group: "b", label: null, amount: "5", before: "0", change: "5", byDay: ["1", "1", null, "1", "2"] },
  { rank: 1, group: "a", label: "Anna", amount: "11", before: "12", change: "-1", byDay: ["3", "3", null, "2", "3"] },
  // Not drawn: without numbers by day it counts among the others.
  { rank: 3, group: "c", label: null, amount: "1", before: "1", change: "0" },
];
const ANSWER: Answer = {
  ...makeAnswer(),
  days: DAYS.map((day, i) => ({ day, state: STATES[i] ?? "final" })),
  groups: GROUPS,
  other: { groups: 4, amount: "2", before: "2", change: "0" },
  otherByDay: ["0.5", "0.25", null, "1", "1"],
  // One day longer than the period, so the last is not drawn.
  beforeByDay: [7, 8, 9, 10, 11, 12].map((n) => ({ day: `2026-01-0${n - 6}`, state: "final", amount: `${n}` })),
};

function chartOf(answer: Answer, options: Partial<Parameters<typeof answerChart>[1]> = {}): ChartDescription {
  const chart = answerChart(answer, { id: "x", hrefOf: (group) => `?group=${group}`, ...options });
  return JSON.parse(/<script type="application\/json">(.*?)<\/script>/.exec(String(chart))?.[1] ?? "");
}

test("the table below a chart has its exact numbers, without those of the period before", () => {
  const answer = { ...ANSWER, groups: GROUPS.slice(0, 1), other: null, otherByDay: ["1000.5", "0.25", null, "1", "1"] };
  const text = (grain: "day" | "month", currency: string | null = null) =>
    String(answerChart({ ...answer, question: { ...answer.question, currency } }, { id: "x", grain }));
  const shown = text("day");
  expect(shown).toContain("<summary>Table: hours by day and model</summary>");
  expect(shown).toContain("<caption>Exact hours by day and model</caption>");
  expect([...shown.matchAll(/<th scope="col"[^>]*>(.*?)<\/th>/g)].map(([, title]) => title)).toEqual([
    ...["Day (UTC)", '<bdi title="">b</bdi>', '<bdi title="">0 others</bdi>'],
  ]);
  const rows = [...shown.matchAll(/<tr><th scope="row">(.*?)<\/tr>/g)].map(([, row = ""]) =>
    row.replaceAll(/<[^>]+>/g, "|"),
  );
  expect(rows.map((row) => row.split(/\|+/).filter((cell) => cell.trim() !== ""))).toEqual([
    ["2026-02-26", "1", "1,000.5"],
    ["2026-02-27", "1", "0.25"],
    ["2026-02-28", "not complete", "–", "–"],
    ["2026-03-01", "1", "1"],
    ["2026-03-02", "may change", "2", "1"],
  ]);
  expect(text("month", "USD")).toContain("<caption>Exact hours by month and model, in USD</caption>");
  const characters = { ...answer.question, metric: "tts_characters", grouping: "none" } as const;
  const charactersChart = String(answerChart({ ...answer, question: characters }, { id: "x" }));
  expect(charactersChart).toContain("<caption>Exact TTS characters by day</caption>");
  expect([chartOf(answer).labels[0], chartOf(answer, { grain: "month" }).labels]).toEqual([
    "Feb 26",
    ["2026-02", "2026-03"],
  ]);
});

test("the data series of a chart are the drawn groups, largest first, then the others and the period before", () => {
  expect(chartOf(ANSWER, { othersHref: "?more" }).series).toEqual([
    { name: "Anna", hint: "Anna", look: 0, values: ["3", "3", null, "2", "3"], href: "?group=a" },
    { name: "b", look: 1, values: ["1", "1", null, "1", "2"], href: "?group=b" },
    { name: "5 others", look: "rest", values: ["0.5", "0.25", null, "1", "1"], href: "?more" },
    expect.objectContaining({
      name: expect.stringMatching(/^Total /),
      look: "before",
      values: ["7", "8", "9", "10", "11"],
    }),
  ]);
  const alone = chartOf({ ...ANSWER, otherByDay: null, compared: false });
  expect(alone.series.map(({ look }) => look)).toEqual([0, 1]);
});

test.each([
  ["day", DAYS, [4], [2], ["3", "3", null, "2", "3"]],
  // The first week is cut at its start, and the second at its end.
  ["week", ["Feb 26 – Mar 1, 2026", "Mar 2, 2026"], [1], [0, 1], ["8", "3"]],
  ["month", ["Feb 26 – 28, 2026", "Mar 1 – 2, 2026"], [1], [0, 1], ["6", "5"]],
] as const)("by %s, a bar has the exact sum of days that were read", (grain, titles, changing, incomplete, values) => {
  const { series, ...chart } = chartOf(ANSWER, { grain });
  expect(chart).toMatchObject({ kind: "bars", titles, changing, incomplete });
  expect(series[0]?.values).toEqual(values);
});

test("only weeks and months that are cut at an end of the period lack days", () => {
  // February 2026 is Sunday to Saturday, so its first and last weeks are cut.
  const days = daysOf({ start: "2026-02-01", end: "2026-02-28" }).map((day) => ({ day, state: "final" as const }));
  const answer = { ...ANSWER, days, groups: [], otherByDay: null, compared: false };
  expect(chartOf(answer, { grain: "week" }).incomplete).toEqual([0, 4]);
  expect(chartOf(answer, { grain: "month" })).toMatchObject({ labels: ["2026-02"], incomplete: [], changing: [] });
});

test("groups that cannot be summed, such as tags, are drawn as lines", () => {
  expect(chartOf({ ...ANSWER, question: { ...ANSWER.question, grouping: "tags" } }).kind).toBe("lines");
});

test("the chart of a total is named after its metric", () => {
  const total = chartOf({ ...ANSWER, question: { ...ANSWER.question, grouping: "none" } });
  expect([total.kind, total.series[1]?.name]).toEqual(["bars", "Hours"]);
});

test("nothing in a name ends the element that holds the chart", () => {
  const [one] = GROUPS.map((group) => ({ ...group, group: "</script><b>" }));
  expect(chartOf({ ...ANSWER, groups: one ? [one] : [] }).series[0]?.name).toBe("</script><b>");
});

test("if groups share a label, each shows its raw value in brackets after it", () => {
  const among = ["1", "2", "3"].map((group, i) => ({ group, label: i < 2 ? "same" : "other" }));
  expect(among.map((one) => groupLabel("accessor", one, among))).toEqual(["same (1)", "same (2)", "other"]);
});

function tableText(
  grouping: Answer["question"]["grouping"],
  groups: Answer["groups"],
  hrefOf: Parameters<typeof groupTable>[1]["hrefOf"] = () => undefined,
): string {
  const answer = { ...ANSWER, question: { ...ANSWER.question, grouping }, groups };
  const cells = ({ amount }: { amount: string | null }) => [amount ?? ""];
  return String(groupTable(answer, { caption: "", groups, hrefOf, titles: ["Hours"], cells }));
}

test("in the table of groups a bar is as long as the group's share of the largest", () => {
  const widths = (groups: Answer["groups"]) =>
    [...tableText("model", groups).matchAll(/<rect width="([\d.]+)%"/g)].map(([, width]) => width);
  const credits = GROUPS.map((one) => ({ ...one, amount: "-1" }));
  expect(widths([...GROUPS, ...credits.slice(0, 1)])).toEqual(["45.5", "100.0", "9.1"]);
  const unused = GROUPS.map((one, i) => ({ ...one, amount: i === 0 ? "0" : "5" }));
  expect(widths(unused)).toEqual(["0.5", "100.0", "100.0"]);
  expect(widths(credits)).toEqual([]);
  expect(widths(GROUPS.slice(0, 1))).toEqual([]);
});

test("in the table of groups a group is a link if it has an address", () => {
  const text = tableText("model", GROUPS, (group) => (group === "c" ? undefined : `?${group}`));
  expect([...text.matchAll(/<a href="([^"]+)"/g)].map(([, href]) => href)).toEqual(["?b", "?a"]);
});

test("the chart names a set of tags by listing its tags", () => {
  const groups = GROUPS.map((one, i) => ({ ...one, label: null, group: `["customer support in europe","${i}"]` }));
  const { series } = chartOf({ ...ANSWER, question: { ...ANSWER.question, grouping: "tags" }, groups });
  expect(series[0]?.name).toBe("customer support in europe, 1");
});

const longLabel = (n: number) => `contact centre transcription in production ${n}`;
const LONG = GROUPS.slice(0, 2).map((one, i) => ({ ...one, group: `key-${i + 1}`, label: longLabel(i + 1) }));

test("the tooltip of a group in the table is its full label if that was shortened, else its raw value", () => {
  expect(tableText("accessor", LONG)).toContain(`<bdi title="${longLabel(1)}">contact centre … production 1</bdi>`);
  expect(tableText("accessor", LONG, () => "?k")).toContain(`<a href="?k" title="${longLabel(1)}">`);
  const short = LONG.slice(0, 1).map((group) => ({ ...group, label: "worker" }));
  expect(tableText("accessor", short)).toContain('<bdi title="key-1">worker</bdi>');
});

test("the table of groups names its columns and the total", () => {
  expect(tableText("accessor", LONG)).toContain('<th scope="col">API key</th><th scope="col" class="n">Hours</th>');
  expect(tableText("none", LONG.slice(0, 1))).toContain('<th scope="col"></th>');
  expect(tableText("none", LONG.slice(0, 1))).toContain('<th scope="row">Total</th>');
});
