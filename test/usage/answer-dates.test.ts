import { expect, test } from "vitest";
import { answerPeriod, coveredDays } from "../../src/usage/answer-checks.ts";
import { addDays, type Window } from "../../src/usage/days.ts";
import { dayOfRow } from "../../src/usage/normalise.ts";
import { RUN_DAY, WINDOW } from "./sample-request.ts";

// WINDOW is 2026-03-16 and 17, and RUN_DAY the day after.
const TOMORROW = addDays(RUN_DAY, 1);
const DAILY = { units: "day", amount: 1 };

test.each<[string, unknown]>([
  ["one day", { units: "day", amount: 1 }],
  ["one day in the plural", { units: "days", amount: 1 }],
  ["undefined", undefined],
  ["null", null],
])("an answer with a resolution of %s is daily", (_, resolution) => {
  expect(answerPeriod({ ...WINDOW, resolution }, WINDOW)).toEqual(WINDOW);
});

test.each<unknown>([
  { units: "hour", amount: 1 },
  { units: "day", amount: 7 },
  { units: "day", amount: "1" },
  { units: "day" },
  { amount: 1 },
  "day",
])("a resolution of %j is refused", (resolution) => {
  expect(() => answerPeriod({ ...WINDOW, resolution }, WINDOW)).toThrow(
    `expected buckets of one day, got resolution ${JSON.stringify(resolution)}`,
  );
});

test("an answer may name its window by the midnights at which the days begin", () => {
  const midnights = { start: "2026-03-16T00:00:00Z", end: "2026-03-17T00:00:00.000+00:00", resolution: DAILY };
  expect(answerPeriod(midnights, WINDOW)).toEqual(WINDOW);
});

test.each<[string, Record<string, unknown>, string]>([
  ["no dates", {}, "none"],
  ["null as both dates", { start: null, end: null }, "none"],
  ["another start", { ...WINDOW, start: "2026-03-15" }, "2026-03-15 to 2026-03-17"],
  ["another end", { ...WINDOW, end: "2026-03-18" }, "2026-03-16 to 2026-03-18"],
  ["no end", { start: WINDOW.start }, "2026-03-16 to ?"],
  ["no start", { end: WINDOW.end }, "? to 2026-03-17"],
  ["its days in reverse", { start: WINDOW.end, end: WINDOW.start }, "2026-03-17 to 2026-03-16"],
])("an answer that names %s instead of the requested window is refused", (_, dates, came) => {
  expect(() => answerPeriod({ ...dates, resolution: DAILY }, WINDOW)).toThrow(
    `asked for 2026-03-16 to 2026-03-17, but the answer names ${came} as its window; if the service does not know windows, remove "window" from the export`,
  );
});

test("without a window, an answer's period needs both a start and an end, in order", () => {
  expect(answerPeriod(WINDOW, undefined)).toEqual(WINDOW);
  expect(answerPeriod({ start: WINDOW.start }, undefined)).toBeUndefined();
  expect(answerPeriod({ end: WINDOW.end }, undefined)).toBeUndefined();
  expect(() => answerPeriod({ start: WINDOW.end, end: WINDOW.start }, undefined)).toThrow("ends before it starts");
  expect(() => answerPeriod({ start: 3 }, undefined)).toThrow(/^start: expected a day/);
});

const DAY = "2026-03-16";
const ONE_DAY = { start: DAY, end: DAY };

test.each<[string, Record<string, unknown>]>([
  ["inside its grouping", { grouping: ONE_DAY }],
  ["in the row itself", ONE_DAY],
  ["in the row itself, beside a grouping without dates", { ...ONE_DAY, grouping: { model: "x" } }],
  ["in the row itself, beside a grouping that is the dimension's name", { ...ONE_DAY, grouping: "model" }],
  ["inside its grouping rather than in the row itself", { start: "2026-03-17", grouping: ONE_DAY }],
  ["by its start only", { start: "2026-03-16" }],
  ["by its end only", { grouping: { end: "2026-03-16" } }],
  ["by its end, if its start is null", { grouping: { start: null, end: "2026-03-16" } }],
  ["as a midnight without a zone", { start: "2026-03-16T00:00:00" }],
  ["as a midnight", { start: "2026-03-16T00:00:00.000000Z", end: "2026-03-16T00:00Z" }],
])("a row names its day %s", (_, row) => {
  expect(dayOfRow(row, WINDOW, 0)).toBe(DAY);
});

test("a row without a day gets its answer's only day, if there is one", () => {
  expect(dayOfRow({}, ONE_DAY, 0)).toBe(DAY);
  expect(dayOfRow({ grouping: { start: null, end: null } }, ONE_DAY, 0)).toBe(DAY);
  expect(dayOfRow({ requests: 1 }, undefined, 0)).toBeUndefined();
});

test.each<[string, Record<string, unknown>, string]>([
  ["before the window", { start: "2026-03-15" }, ": 2026-03-15 lies outside the window"],
  ["after the window", { start: "2026-03-18" }, ": 2026-03-18 lies outside the window"],
  ["of several days", { ...ONE_DAY, end: "2026-03-17" }, ": expected a bucket of one day, got 2026-03-16 to"],
  ["that ends before it starts", { ...ONE_DAY, start: "2026-03-17" }, ": expected a bucket of one day"],
  ["of a day that does not exist", { start: "2026-02-30" }, ".start: expected a day as YYYY-MM-DD"],
  ["whose day is a number", { start: 20260316 }, ".start: expected a day as YYYY-MM-DD, got the number"],
  ["whose start is not a midnight", { start: "2026-03-16T01:00:00Z" }, ".start: expected a day as YYYY-MM-DD"],
  ["without a day, in a longer answer,", {}, " names no day, and the answer's period: expected a bucket of one day"],
])("a row %s is refused", (_, row, reason) => {
  expect(() => dayOfRow(row, WINDOW, 4)).toThrow(`results[4]${reason}`);
});

const coveredCount = (...days: readonly string[]) => coveredDays(undefined, undefined, days, RUN_DAY)?.length;

test("without a window, an answer may name days up to tomorrow", () => {
  expect(coveredCount("2026-03-19")).toBe(1);
  expect(() => coveredCount("2026-03-17", "2026-03-20")).toThrow(
    "expected at most 3660 days up to 2026-03-19, got 2026-03-17 to 2026-03-20",
  );
  expect(() => coveredCount("9999-12-31")).toThrow("got 9999-12-31 to 9999-12-31");
});

test("without a window, an answer may name at most ten years of days", () => {
  expect(coveredCount(addDays(RUN_DAY, -3_659), RUN_DAY)).toBe(3_660);
  expect(() => coveredCount(addDays(RUN_DAY, -3_660), RUN_DAY)).toThrow("expected at most 3660 days");
  expect(() => coveredCount("0001-01-01", RUN_DAY)).toThrow("got 0001-01-01 to 2026-03-18");
});

const MARCH = { start: "2026-03-01", end: "2026-03-31" };
const covered = (period: Window, rows: readonly string[] = []) => coveredDays(undefined, period, rows, RUN_DAY);

test.each<[string, period: Window, rows: readonly string[], days: readonly string[]]>([
  ["the end of its period", { ...MARCH, end: "2026-03-17" }, [DAY], [DAY, "2026-03-17"]],
  ["the day of the run, the last of its period", { ...MARCH, end: RUN_DAY }, [DAY], [DAY, "2026-03-17", RUN_DAY]],
  ["the day of the run, if its period goes on", MARCH, ["2026-03-17"], ["2026-03-17", RUN_DAY]],
  ["its newest row, after the day of the run", MARCH, [TOMORROW], [TOMORROW]],
  ["its newest row, if its period begins tomorrow", { ...MARCH, start: TOMORROW }, [TOMORROW], [TOMORROW]],
])("without a window, an answer covers the days from its first row to %s", (_, period, rows, days) => {
  expect(covered(period, rows)).toEqual(days);
});

test.each([MARCH.start, RUN_DAY])("a period from %s, not over and without rows, covers the day of the run", (start) => {
  expect(covered({ ...MARCH, start })).toEqual([RUN_DAY]);
});

test("without a window, a period that begins after tomorrow is refused", () => {
  expect(() => covered({ start: "2026-03-20", end: "2026-03-20" })).toThrow("got 2026-03-20 to 2026-03-20");
  expect(() => covered({ ...MARCH, start: "2026-03-20" })).toThrow("got 2026-03-31 to 2026-03-31");
});
