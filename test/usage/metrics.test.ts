import { expect, test } from "vitest";
import { ExactNumber } from "../../src/decimal.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import { readMetrics } from "../../src/usage/normalise.ts";

const ROW = 3;

test("all seven metrics are read in the order of the columns", () => {
  const row = Object.fromEntries(METRICS.map((metric, i) => [metric, i + 0.5]));
  expect(readMetrics(row, ROW)).toEqual({ values: ["0.5", "1.5", "2.5", "3.5", "4.5", "5.5", "6.5"], extra: null });
});

test("a metric that is absent or null is not 0", () => {
  const { values } = readMetrics({ hours: 0, total_hours: null, requests: 2 }, ROW);
  expect(values).toEqual(["0", null, null, null, null, null, "2"]);
});

test("of unknown values, only numbers are kept as exact extra metrics", () => {
  const numbers = { credits: 1.5, balance: -2, zebra_minutes: new ExactNumber("9007199254740993") };
  const others = { note: "text", flag: true, nothing: null, list: [1], nested: { depth: 1 } };
  const known = { start: 20260317, end: 20260317, model: 3, models: 3, tags: 5, grouping: 7, method: 1 };
  const { extra } = readMetrics({ requests: 1, ...numbers, ...others, ...known }, ROW);
  expect(extra).toBe('{"balance":-2,"credits":1.5,"zebra_minutes":9007199254740993}');
});

test.each(["constructor", "toString", 'a"b', "with space", "日本"])("a row may have %j as its only metric", (name) => {
  expect(JSON.parse(readMetrics({ [name]: 2 }, ROW).extra ?? "")).toEqual({ [name]: 2 });
});

test("a cost may be negative or absent", () => {
  expect(readMetrics({ dollars: -1.5 }, ROW, "billing").values).toEqual(["-1.5"]);
  expect(readMetrics({ line_item: "a" }, ROW, "billing").values).toEqual([null]);
});

test("a row without any number is refused", () => {
  expect(() => readMetrics({ hours: null, model: "nova" }, ROW)).toThrow("results[3]: the row has none of the metrics");
});

test.each<[unknown, string]>([
  [-1, "results[3].hours: expected 0 or more, got -1"],
  [new ExactNumber("-1e-400"), "results[3].hours: expected 0 or more, got -0.000"],
  [new ExactNumber("1e399"), "results[3].hours: expected a finite number, got 1e399"],
  // The number has more decimals than are stored; the message does not say so.
  [new ExactNumber(`1e-999`), "results[3].hours: expected a finite number, got 1e-999"],
  [Number.POSITIVE_INFINITY, "results[3].hours: expected a finite number, got Infinity"],
  ["1.5", 'results[3].hours: expected a number, got the string "1.5"'],
  [{ value: 1 }, "results[3].hours: expected a number, got an object"],
])("%s is refused for a metric", (value, reason) => {
  expect(() => readMetrics({ hours: value, requests: 1 }, ROW)).toThrow(reason);
});
