import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { ExactNumber } from "../../src/decimal.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import { groupingEvidence, type NormalisedSlice, normalise, sliceOf } from "../../src/usage/normalise.ts";
import { RUN_DAY, sampleAnswer, sampleRequest, sampleRow, windowless } from "./sample-request.ts";

const FIRST = "2026-03-16";
const SECOND = "2026-03-17";
const ONE_DAY = { start: SECOND, end: SECOND };

const sha256 = (text: string) => hash("sha256", text);

/** By day, the display texts of its groups. */
function shownByDay(slices: readonly NormalisedSlice[]): Record<string, (string | null)[]> {
  return Object.fromEntries(slices.map(({ day, columns }) => [day, columns.groups.map(({ display }) => display)]));
}

function requestsByDay(slices: readonly NormalisedSlice[]): Record<string, readonly (string | null)[]> {
  return Object.fromEntries(slices.map(({ day, columns }) => [day, columns.metrics.at(-1) ?? []]));
}

test("each day of the window is a slice with its rows, even a day without rows", () => {
  const answer = sampleAnswer([sampleRow(SECOND, { endpoint: "listen" })]);
  expect(normalise(sampleRequest("endpoint"), answer, RUN_DAY).slices).toEqual([
    sliceOf(FIRST, []),
    {
      day: SECOND,
      undated: false,
      rowCount: 1,
      columns: {
        groups: [{ key: '["listen"]', unmergedKey: '["listen"]', display: "listen" }],
        metricNames: METRICS,
        metrics: [[null], [null], [null], [null], [null], [null], ["1"]],
        extras: [null],
      },
      contentHash: sha256('[["[\\"listen\\"]"],[[null],[null],[null],[null],[null],[null],["1"]],[null]]'),
    },
  ]);
});

test.each<[string, Record<string, unknown>, string | null]>([
  ["a text", { grouping: { ...ONE_DAY, model: "nova" } }, "nova"],
  ["an array", { grouping: { ...ONE_DAY, model: ["nova"] } }, "nova"],
  ["null", { grouping: { ...ONE_DAY, model: null } }, null],
  ["a text in the row itself", { ...ONE_DAY, model: "nova" }, "nova"],
  ["a text in the row itself, beside the dates in the grouping", { model: "nova", grouping: ONE_DAY }, "nova"],
  ["an array under the other dialect's name", { grouping: { ...ONE_DAY, models: ["nova", null] } }, '["nova",null]'],
  ["a text in the row itself, under the other dialect's name", { start: SECOND, models: "nova" }, "nova"],
])("a dimension can be %s", (_, row, display) => {
  const answer = sampleAnswer([{ requests: 1, ...row }], ONE_DAY);
  const { slices } = normalise(sampleRequest("model", ONE_DAY), answer, RUN_DAY);
  expect(shownByDay(slices)).toEqual({ [SECOND]: [display] });
});

test("rows without a value, in whatever shape, are one row with the exact sums of their numbers", () => {
  const results = [
    sampleRow(SECOND, { tags: ["a"] }),
    sampleRow(SECOND, { tags: [] }, { requests: 2, tokens_in: 4, credits: new ExactNumber("0.10000000000000000001") }),
    sampleRow(SECOND, { tags: null }, { requests: 1, hours: 0.7, credits: 2, "a b": 1 }),
    sampleRow(SECOND, {}, { requests: 3, hours: 0.1 }),
    sampleRow(SECOND, { tags: null }, { requests: 1, hours: 0.7, credits: 2, "a b": 1 }),
  ];
  const [slice] = normalise(sampleRequest("tags", ONE_DAY), sampleAnswer(results, ONE_DAY), RUN_DAY).slices;
  expect(slice?.columns.groups.map(({ display }) => display)).toEqual(['["a"]', null]);
  expect(slice?.columns.metrics.map(([, amount]) => amount)).toEqual(["0.8", null, null, "4", null, null, "6"]);
  expect(slice?.columns.extras).toEqual([null, '{"a b":1,"credits":2.10000000000000000001}']);
});

test("a grouping by several dimensions has one row for each set of values, in whatever order the rows come", () => {
  const request = sampleRequest("accessor,tags", ONE_DAY, "billing");
  const results = [
    sampleRow(SECOND, { accessor: "b", tags: null }, { dollars: 1 }),
    sampleRow(SECOND, { accessor: "a", tags: null }, { dollars: -2 }),
    sampleRow(SECOND, { accessor: "a", tags: [] }, { dollars: 0.5 }),
  ];
  const read = (rows: readonly unknown[]) => normalise(request, sampleAnswer(rows, ONE_DAY), RUN_DAY).slices;
  const [slice] = read(results);
  expect(slice?.columns.groups.map(({ display }) => display)).toEqual([
    '{"accessor":"a","tags":null}',
    '{"accessor":"b","tags":null}',
  ]);
  expect(slice?.columns).toMatchObject({ metrics: [["-1.5", "1"]], extras: [null, null] });
  expect(read([...results].reverse())[0]?.contentHash).toBe(slice?.contentHash);
});

test("a grouped answer without rows says that no day of the window has usage", () => {
  const { slices } = normalise(sampleRequest("model"), sampleAnswer([]), RUN_DAY);
  expect(slices).toEqual([sliceOf(FIRST, []), sliceOf(SECOND, [])]);
});

test("a row that comes twice counts once, even if its values are in another order", () => {
  const results = [
    sampleRow(SECOND, { tags: ["a", "b"] }, { hours: 1.5 }),
    sampleRow(SECOND, { tags: ["b", "a"] }, { hours: new ExactNumber("1.50") }),
  ];
  const { slices } = normalise(sampleRequest("tags", ONE_DAY), sampleAnswer(results, ONE_DAY), RUN_DAY);
  expect(shownByDay(slices)).toEqual({ [SECOND]: ['["a","b"]'] });
});

test("dimensions that were not asked for do not split the total", () => {
  const results = [sampleRow(SECOND, { endpoint: "listen", model: ["nova"], tags: null })];
  const { slices } = normalise(sampleRequest("none", ONE_DAY), sampleAnswer(results, ONE_DAY), RUN_DAY);
  expect(slices[0]?.columns.groups.map(({ key }) => key)).toEqual(["all"]);
});

test("without a window, all days from the first row to the last are covered, even those without rows", () => {
  const results = [sampleRow("2026-03-14", {}, { requests: 2 }), sampleRow("2026-03-12")];
  expect(requestsByDay(normalise(windowless("none"), { results }, RUN_DAY).slices)).toEqual({
    "2026-03-12": ["1"],
    "2026-03-13": [],
    "2026-03-14": ["2"],
  });
});

test.each<[string, unknown, string, boolean]>([
  ["rows without a day has the day of the run", { results: [{ requests: 3 }] }, RUN_DAY, true],
  ["no row and no period has the day of the run", { results: [] }, RUN_DAY, true],
  ["rows and a period of one day has that day", { ...ONE_DAY, results: [{ requests: 3 }] }, SECOND, false],
  ["no row and a period of one day has that day", { ...ONE_DAY, results: [] }, SECOND, false],
  ["no row and a period of days has its last day", { start: "2026-02-16", end: SECOND, results: [] }, SECOND, false],
])("without a window, an answer with %s", (_, answer, day, undated) => {
  const { slices } = normalise(windowless("none"), answer, RUN_DAY);
  expect(slices.map((slice) => [slice.day, slice.undated])).toEqual([[day, undated]]);
});

test.each<[string, ReturnType<typeof groupingEvidence>, readonly unknown[]]>([
  ["null in every row", "no value", [{ tags: null }, { grouping: { tags: null } }]],
  ["null or absent in every row", "no value", [{ tags: null }, { requests: 1 }]],
  ["a value among nulls", "value", [{ tags: null }, { tags: ["prod"] }]],
  ["no value in every shape", "no value", [{ tags: [] }, { tags: "" }, { tags: [null] }]],
  ["no rows", "no rows", []],
])("the evidence for a grouping in an answer with %s is: %s", (_, evidence, results) => {
  expect(groupingEvidence("tags", { results })).toBe(evidence);
});

test.each([null, [], "ok", {}, { results: null }])("%j proves nothing about a grouping", (answer) => {
  expect(groupingEvidence("tags", answer)).toBe("no rows");
});
