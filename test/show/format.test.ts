import { expect, test } from "vitest";
import {
  amountHtml,
  axisText,
  changeText,
  counted,
  dayLabel,
  daysText,
  durationText,
  estimateText,
  exactText,
  instantText,
  isZero,
  metricName,
  metricUnit,
  moneyText,
  quantityText,
  roundedText,
  shortText,
  signedText,
  windowText,
} from "../../src/show/format.ts";
import { daysOf } from "../../src/usage/days.ts";

test.each([
  ["0.00", "0"],
  ["373381", "373,381"],
  ["1619.7242069444444", "1,620"],
  ["12.345", "12.3"],
  ["0.000012345", "0.0000123"],
  ["9007199254740993", "9,007,199,254,740,993"],
  ["-4.25", "-4.25"],
])("the amount %s is rounded to %s", (amount, expected) => {
  expect(roundedText(amount)).toBe(expected);
});

test.each([
  ["99999", "99,999"],
  ["373381", "373.4K"],
  ["9158866", "9.2M"],
  ["12345678901", "12.3B"],
  ["1234567890123456", "1,234.6T"],
])("the amount %s is shortened to %s", (amount, expected) => {
  expect(shortText(amount, { currency: null })).toBe(expected);
});

test.each([
  ["12.50", "12.5"],
  ["0.00", "0"],
  ["-1234567.89", "-1,234,567.89"],
  ["90071992547409931234567890.123456789012345678901", "90,071,992,547,409,931,234,567,890.123456789012345678901"],
])("every digit of %s is written", (amount, expected) => {
  expect(exactText(amount)).toBe(expected);
});

test.each([
  ["112.34", "100", "+12%"],
  ["96", "100", "-4%"],
  ["108.46", "100", "+8.5%"],
  ["2500", "100", "+2,400%"],
  ["0", "100", "-100%"],
  // A credit that is smaller than before.
  ["-5", "-10", "+50%"],
  ["100.0", "100", "unchanged"],
  ["0", "0.000", "unchanged"],
  ["100.00000000000000001", "100", "about the same"],
  ["100.04", "100", "about the same"],
  ["99.96", "100", "about the same"],
  ["5", "0.00", "new"],
  ["5", null, "not known before"],
])("the change to %s from %s is %s", (amount, before, expected) => {
  expect(changeText(amount, before)).toBe(expected);
});

test.each([
  ["0", true],
  ["0.000", true],
  ["-0.0", true],
  ["0.001", false],
])("%s is zero: %s", (amount, expected) => {
  expect(isZero(amount)).toBe(expected);
});

test("a count has its noun in singular or plural", () => {
  expect([counted(1, "day"), counted(0, "day"), counted(1200, "day")]).toEqual(["1 day", "0 days", "1,200 days"]);
  expect(counted(2, "day is", "days are")).toBe("2 days are");
});

test("a number for an axis is shortened", () => {
  expect([0, 950, 30_000, 2.5e6].map((value) => axisText(value, null))).toEqual(["0", "950", "30K", "2.5M"]);
  expect([0, 950, 30_000].map((value) => axisText(value, "USD"))).toEqual(["$0", "$950", "$30K"]);
});

test.each([
  ["-97.5", "USD", "-$97.50"],
  ["0", "EUR", "€0.00"],
  ["0.00123456", "USD", "$0.00123"],
  ["9007199254740993.625", "USD", "$9,007,199,254,740,994"],
  ["999.994", "USD", "$999.99"],
  ["1000", "USD", "$1,000"],
  ["0.01", "USD", "$0.01"],
  ["0.001", "USD", "$0.001"],
  ["-0.0012", "USD", "-$0.0012"],
  ["0.000", "USD", "$0.00"],
  ["10.001", "USD", "$10.00"],
])("the amount of money %s %s is shown as %s", (amount, currency, expected) => {
  expect(moneyText(amount, currency)).toBe(expected);
});

test.each([
  ["239012.25", "cost", "USD", "$239,000"],
  ["1234567890", "tokens_in", null, "1.2B tokens in"],
  ["3116.4", "hours", null, "3,120 hours"],
])("the estimate %s of %s is shown with three digits, as %s %s", (amount, metric, currency, expected) => {
  expect(estimateText(amount, { metric, currency })).toBe(expected);
});

test.each([
  ["1234567", { metric: "tokens_in", currency: null }, "1.2M tokens in", "+1.2M tokens in"],
  ["57.2", { metric: "billed_cost", currency: "USD" }, "$57.20", "+$57.20"],
  ["-46", { metric: "hours", currency: null }, "-46 hours", "-46 hours"],
  ["1", { metric: "tokens_in", currency: null }, "1 token in", "+1 token in"],
  ["0.0", { metric: "hours", currency: null }, "0 hours", "0 hours"],
])("%s of %o is %s or, as a change, %s", (amount, measure, quantity, signed) => {
  expect([quantityText(amount, measure), signedText(amount, measure)]).toEqual([quantity, signed]);
});

test.each([
  ["12345.50", null, '<data value="12345.50" title="12,345.5 hours">12,346</data>'],
  ["12345.50", "EUR", '<data value="12345.50" title="12,345.5 EUR">€12,346</data>'],
  [null, null, '<span title="not known: not sent, or not read">–</span>'],
])("an amount of %s in %s is rounded, with every digit in its title", (amount, currency, expected) => {
  expect(String(amountHtml(amount, { metric: "hours", currency }))).toBe(expected);
});

test.each([
  [0, "under 1 s"],
  [59, "59 s"],
  [60, "1 min"],
  [89, "1 min"],
  [3_569, "59 min"],
  [3_570, "1 h 0 min"],
  [13_200, "3 h 40 min"],
])("%d seconds are %s", (seconds, expected) => {
  expect(durationText(seconds)).toBe(expected);
});

test.each([
  ["tts_characters", "TTS characters", "TTS characters"],
  ["tokens_in", "Tokens in", "tokens in"],
  ["estimated_cost", "Estimated cost", "estimated cost"],
  ["New_metric", "New_metric", "new_metric"],
])("the metric %s is called %s or, behind an amount, %s", (column, name, unit) => {
  expect([metricName(column), metricUnit(column)]).toEqual([name, unit]);
});

test.each([
  ["no days as an empty text", [], ""],
  ["one day", ["2026-11-09"], "Nov 9, 2026"],
  [
    "consecutive days, unsorted, with a duplicate and over the end of a month, as one range",
    ["2026-11-01", "2026-10-31", "2026-11-01"],
    "Oct 31 – Nov 1, 2026",
  ],
  ["days with a gap as several ranges", ["2026-11-03", "2026-11-04", "2026-11-09"], "Nov 3 – 4, 2026; Nov 9, 2026"],
])("daysText writes %s", (_, days, expected) => {
  expect(daysText(days)).toBe(expected);
});

test("at most six ranges are listed, followed by the number of days in the others", () => {
  const everyOther = daysOf({ start: "2026-11-01", end: "2026-11-20" }).filter((_, i) => i % 2 === 0 || i === 19);
  expect(daysText(everyOther)).toMatch(/^Nov 1, 2026; .*; Nov 11, 2026 and 5 more days$/);
  expect(daysText(everyOther.slice(0, 6))).toMatch(/; Nov 11, 2026$/);
  expect(daysText(everyOther.slice(0, 7))).toMatch(/ and 1 more day$/);
});

test("days and moments are shown in UTC", () => {
  expect(dayLabel("2026-11-03")).toBe("Nov 3");
  expect(instantText(new Date("2026-11-20T23:59:59.999Z"))).toBe("2026-11-20 23:59 UTC");
  expect(windowText({ start: "2026-11-20", end: "2026-11-20" })).toBe("2026-11-20");
  expect(windowText({ start: "2026-11-20", end: "2026-11-21" })).toBe("2026-11-20 to 2026-11-21");
});
