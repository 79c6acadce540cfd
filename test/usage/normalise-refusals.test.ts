// Answers that are refused. Each error says why, because a person has to fix the cause.

import { expect, test } from "vitest";
import { AppError } from "../../src/errors.ts";
import type { UsageRequest } from "../../src/usage/export-plan.ts";
import { normalise, rowCount } from "../../src/usage/normalise.ts";
import { RUN_DAY, sampleAnswer, sampleRequest, sampleRow, windowless } from "./sample-request.ts";

const DAY = "2026-03-17";

function refusal(request: UsageRequest, answer: unknown): string {
  try {
    normalise(request, answer, RUN_DAY);
  } catch (error) {
    if (error instanceof AppError && error.code === "bad_answer") return error.message;
    throw error;
  }
  throw new Error("the answer was accepted");
}

test.each<[unknown, string]>([
  [null, "expected an object, got null"],
  [undefined, "expected an object, got nothing"],
  [[], "expected an object, got an array"],
  ["ok", 'expected an object, got the string "ok"'],
  [true, "expected an object, got the boolean true"],
  [0, "expected an object, got the number 0"],
  [{}, 'expected an array at "results", got nothing'],
  [{ results: {} }, 'expected an array at "results", got an object'],
])("%j is not an answer", (answer, reason) => {
  expect(refusal(sampleRequest("none"), answer)).toBe(reason);
});

test.each<[unknown, string]>([
  [null, "results[1]: expected an object, got null"],
  [[], "results[1]: expected an object, got an array"],
])("an answer with one row that is %j is refused as a whole", (row, reason) => {
  expect(refusal(sampleRequest("none"), sampleAnswer([sampleRow(DAY), row]))).toBe(reason);
});

test.each<[string, unknown]>([
  ["absent beside other dimensions", sampleRow(DAY, { endpoint: "listen", tags: null })],
  ["null under the other dialect's name", sampleRow(DAY, { models: null, endpoint: null })],
])("a grouped answer whose dimension is %s in every row is refused", (_, row) => {
  const reason = refusal(sampleRequest("model"), sampleAnswer([row]));
  expect(reason).toContain('no row has the dimension "model" that was asked for');
  expect(reason).toContain("service.dialect");
});

test("null in every row is accepted only under the name by which the dimension was requested", () => {
  const answer = (name: string) => sampleAnswer([sampleRow(DAY, { [name]: null })]);
  expect(normalise(sampleRequest("model"), answer("model"), RUN_DAY).slices).toHaveLength(2);
  expect(normalise(sampleRequest("model"), answer("models"), RUN_DAY, "2026").slices).toHaveLength(2);
  expect(() => normalise(sampleRequest("model"), answer("models"), RUN_DAY)).toThrow("service.dialect");
  expect(() => normalise(sampleRequest("model"), answer("model"), RUN_DAY, "2026")).toThrow("service.dialect");
});

test("an answer in which only some rows name a day is refused", () => {
  const results = [sampleRow(DAY, { endpoint: "listen" }), { requests: 3, endpoint: "speak" }];
  expect(refusal(windowless("endpoint"), { results })).toBe("1 of 2 rows name no day, so their days are unknown");
});

test.each([
  ["several values, in whatever order,", ["a", "b"], ["b", "a"], '["a","b"]'],
  ["no value", null, null, "no value"],
])("the same group of %s twice with different numbers is refused", (_, tags, again, shown) => {
  const results = [sampleRow(DAY, { tags }), sampleRow(DAY, { tags: again }, { requests: 2 })];
  const reason = refusal(sampleRequest("tags"), sampleAnswer(results));
  expect(reason).toBe(`two rows with different numbers for tags ${shown} on 2026-03-17`);
});

test("the same group twice is refused if only an extra metric differs, or if one row lacks a metric", () => {
  const twice = (a: Record<string, unknown>, b: Record<string, unknown>) =>
    refusal(sampleRequest("none"), sampleAnswer([sampleRow(DAY, {}, a), sampleRow(DAY, {}, b)]));
  expect(twice({ requests: 1, credits: 1 }, { requests: 1, credits: 2 })).toContain("more than one row");
  expect(twice({ requests: 1, hours: 0 }, { requests: 1 })).toContain("more than one row");
});

test("several rows for one day are refused if no grouping was requested", () => {
  const results = [
    sampleRow(DAY, { endpoint: "listen" }, { requests: 1 }),
    sampleRow(DAY, { endpoint: "speak" }, { requests: 2 }),
  ];
  const reason = refusal(sampleRequest("none"), sampleAnswer(results));
  expect(reason).toBe("more than one row for 2026-03-17, though no grouping was asked for");
});

test("a reason names the row, the field and the beginning of a long value", () => {
  const results = [sampleRow(DAY), sampleRow("2026-03-16", {}, { hours: "9".repeat(500) })];
  const reason = refusal(sampleRequest("none"), sampleAnswer(results));
  expect(reason).toMatch(/^results\[1\]\.hours: expected a number, got the string "9{30,}$/);
  expect(reason.length).toBeLessThan(120);
});

const billed = (part: Record<string, unknown>) => sampleRow(DAY, { accessor: "a" }, part);
const ONE_DOLLAR = billed({ dollars: 1 });
const BILLED = sampleRequest("accessor", undefined, "billing");

test.each<[string, Record<string, unknown>, readonly unknown[], string]>([
  ["the answer has another currency", { currency: "EUR" }, [ONE_DOLLAR], "got currency the string"],
  ["a row has another unit", {}, [ONE_DOLLAR, { ...ONE_DOLLAR, units: "credits" }], "got units"],
  ["no row names dollars", {}, [billed({ amount: 1 })], 'no row has the member "dollars"'],
])("costs are refused if %s", (_, part, results, reason) => {
  expect(refusal(BILLED, sampleAnswer(results, part))).toContain(reason);
});

test.each<[string, Record<string, unknown>, readonly unknown[], number]>([
  ["in US dollars", { currency: "usd", units: "USD" }, [ONE_DOLLAR], 1],
  ["whose units are no text", { units: 3 }, [ONE_DOLLAR], 1],
  ["of which only some have an amount", {}, [ONE_DOLLAR, sampleRow(DAY, { accessor: "b" }, {})], 2],
  ["without rows", {}, [], 0],
])("costs %s are accepted", (_, part, results, rows) => {
  expect(rowCount(normalise(BILLED, sampleAnswer(results, part), RUN_DAY).slices)).toBe(rows);
});

test("usage without amounts in dollars may be in any currency", () => {
  const answer = sampleAnswer([sampleRow(DAY)], { currency: "EUR" });
  expect(normalise(sampleRequest("none"), answer, RUN_DAY).slices).toHaveLength(2);
});
