import { expect, test } from "vitest";
import { dayLabel, daysText, instantText, windowText } from "../../src/show/format.ts";
import { daysOf } from "../../src/usage/days.ts";

test.each([
  ["no days as an empty text", [], ""],
  ["one day", ["2026-11-09"], "Nov 9, 2026"],
  [
    "consecutive days, unsorted, with a duplicate and over the end of a month, as one range",
    ["2026-11-01", "2026-10-31", "2026-11-01"],
    "Oct 31 – Nov 1, 2026",
  ],
  ["days with a gap as several ranges", ["2026-11-03", "2026-11-04", "2026-11-09"], "Nov 3 – 4, 2026; Nov 9, 2026"],
])("writes %s", (_, days, expected) => {
  expect(daysText(days)).toBe(expected);
});

test("of many ranges only the first are listed, followed by the number of days in the others", () => {
  const everyOther = daysOf({ start: "2026-11-01", end: "2026-11-20" }).filter((_, i) => i % 2 === 0);
  expect(daysText(everyOther)).toMatch(/^Nov 1, 2026; .*; Nov 11, 2026 and 4 more days$/);
});

test("six ranges are all listed", () => {
  const six = daysOf({ start: "2026-11-01", end: "2026-11-11" }).filter((_, i) => i % 2 === 0);
  expect(daysText(six)).toMatch(/; Nov 11, 2026$/);
  expect(daysText([...six, "2026-11-20"])).toMatch(/ and 1 more day$/);
});

test("days and moments are shown in UTC", () => {
  expect(dayLabel("2026-11-03")).toBe("Nov 3");
  expect(instantText(new Date("2026-11-20T23:59:59.999Z"))).toBe("2026-11-20 23:59 UTC");
  expect(windowText({ start: "2026-11-20", end: "2026-11-20" })).toBe("2026-11-20");
  expect(windowText({ start: "2026-11-20", end: "2026-11-21" })).toBe("2026-11-20 to 2026-11-21");
});
