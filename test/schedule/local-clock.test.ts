import { expect, test } from "vitest";
import { openLocalClock } from "../../src/schedule/cron.ts";

function clockChanges(timezone: string, after: string, until: string): string[] {
  const found = openLocalClock(timezone).changes(Date.parse(after), Date.parse(until));
  return found.map((moment) => new Date(moment).toISOString().slice(0, 19));
}

test.each([
  ["Europe/Vienna", 2026, ["2026-03-29T01:00:00", "2026-10-25T01:00:00"]],
  ["Australia/Lord_Howe", 2026, ["2026-04-04T15:00:00", "2026-10-03T15:30:00"]],
  ["Africa/Casablanca", 2024, ["2024-03-10T02:00:00", "2024-04-14T02:00:00"]],
  ["Pacific/Apia", 2011, ["2011-04-02T14:00:00", "2011-09-24T14:00:00", "2011-12-30T10:00:00"]],
  ["Africa/Monrovia", 1972, ["1972-01-07T00:44:30"]],
  // Summer time was ended after a week.
  ["America/Noronha", 2000, ["2000-02-27T01:00:00", "2000-10-08T02:00:00", "2000-10-15T01:00:00"]],
  ["Asia/Kolkata", 2026, []],
  ["UTC", 2026, []],
])("the clocks of %s were set in %i at %j", (timezone, year, expected) => {
  expect(clockChanges(timezone, `${year}-01-01T00:00:00Z`, `${year}-12-31T23:59:59Z`)).toEqual(expected);
});

test("the changes in a period leave out one at its start and include one at its end", () => {
  const at = "2026-03-29T01:00:00";
  expect(clockChanges("Europe/Vienna", "2026-03-29T00:59:59Z", `${at}Z`)).toEqual([at]);
  expect(clockChanges("Europe/Vienna", `${at}Z`, "2026-03-30T00:00:00Z")).toEqual([]);
  expect(clockChanges("Europe/Vienna", "2026-03-28T00:00:00Z", "2026-03-29T00:59:59Z")).toEqual([]);
});

test.each([
  ["Europe/Vienna", "2026-03-29T00:59:59.500Z", "2026-03-29T01:59:59.500Z"],
  ["Europe/Vienna", "2026-03-29T01:00:00.000Z", "2026-03-29T03:00:00.000Z"],
  ["America/New_York", "2026-11-01T05:59:59.999Z", "2026-11-01T01:59:59.999Z"],
  ["America/New_York", "2026-11-01T06:00:00.000Z", "2026-11-01T01:00:00.000Z"],
  ["Asia/Kathmandu", "2025-12-31T18:15:00.000Z", "2026-01-01T00:00:00.000Z"],
  ["Pacific/Kiritimati", "2025-12-31T10:00:00.000Z", "2026-01-01T00:00:00.000Z"],
  ["-03:30", "2026-01-01T00:00:00.000Z", "2025-12-31T20:30:00.000Z"],
])("in %s at %s a clock shows %s", (timezone, at, shown) => {
  expect(new Date(openLocalClock(timezone).localMsAt(Date.parse(at))).toISOString()).toBe(shown);
});
