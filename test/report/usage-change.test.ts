// Why usage changed, in words.

import { expect, test } from "vitest";
import {
  type ChangePart,
  changeSentences,
  type MetricChange,
  type UsageChange,
} from "../../src/report/usage-change.ts";

const WEEKS = {
  period: { start: "2026-11-09", end: "2026-11-15" },
  before: { start: "2026-11-02", end: "2026-11-08" },
};
const ALL = { before: "1200", after: "1344", change: "144" };
const WHOLE: MetricChange = {
  metric: "requests",
  ...ALL,
  compared: ALL,
  notCompared: null,
  daysCompared: 7,
  daysInAll: 7,
  breakdowns: [],
};

function part(group: string | null, before: string, after: string, rest: Partial<ChangePart> = {}): ChangePart {
  return {
    ...{ part: "group", group, project: null, status: "changed", groups: 1, before, after },
    ...{ change: String(BigInt(after) - BigInt(before)), firstDay: null, lastDay: null },
    ...rest,
  };
}

/** One line a sentence; a name is in brackets. */
function words(metric: Partial<MetricChange>, change: Partial<UsageChange> = {}): readonly string[] {
  const whole = { ...WHOLE, ...metric };
  const all = { ...WEEKS, projects: ["production"], lackingDays: [], notFinalDays: [], metrics: [whole], ...change };
  return changeSentences(all, whole).map((sentence) =>
    sentence.map((piece) => (typeof piece === "string" ? piece : `[${piece.group}]`)).join(""),
  );
}

const amounts = (before: string, after: string) => {
  const all = { before, after, change: String(BigInt(after) - BigInt(before)) };
  return { ...all, compared: all };
};

test("a rise, a fall, no change, and a beginning", () => {
  const rose = "from 1,200 (2026-11-02 to 2026-11-08) to 1,344 (2026-11-09 to 2026-11-15)";
  expect(words({})).toEqual([`Requests rose by 12%, ${rose}.`]);
  expect(words(amounts("1344", "1200"))[0]).toMatch(/^Requests fell by 10.7%, from 1,344 /);
  expect(words(amounts("7", "7"))).toEqual([
    "Requests did not change: 7 in 2026-11-09 to 2026-11-15 as in 2026-11-02 to 2026-11-08.",
  ]);
  expect(words(amounts("0", "7"))[0]).toMatch(/^Requests rose, from 0 \(.*\) to 7 \(/);
  expect(words({ ...amounts("100000", "100001"), metric: "hours" })[0]).toMatch(/^Hours rose, from 100,000 /);
});

test("the groups that account for the change, the new ones and the vanished ones are named", () => {
  const parts = [
    part("nova-3", "100", "190"),
    part(null, "0", "60", { status: "new", firstDay: "2026-11-12" }),
    part("old", "10", "0", { status: "vanished", lastDay: "2026-11-05" }),
    part("base", "5", "9"),
    part(null, "0", "0", { part: "not attributed", status: null }),
  ];
  const breakdown = {
    grouping: "model",
    daysCompared: 7,
    daysInAll: 7,
    newGroups: 3,
    vanishedGroups: 1,
    parts,
  } as const;
  expect(words({ breakdowns: [breakdown] }).slice(1)).toEqual([
    "By model, [nova-3] accounts for +90 of +144, [null] +60, [old] -10.",
    "New by model: [null] since 2026-11-12 (+60) and 2 more.",
    "Vanished by model: [old] last seen on 2026-11-05 (-10).",
  ]);
});

test("days that are not compared, not read or not final are told", () => {
  const compared = { before: "600", after: "600", change: "0" };
  const told = words(
    {
      compared,
      notCompared: { before: "600", after: "744", change: "144" },
      daysCompared: 6,
      breakdowns: [{ grouping: "tags", daysCompared: 5, daysInAll: 7, newGroups: 0, vanishedGroups: 0, parts: [] }],
    },
    { lackingDays: ["2026-11-03"], notFinalDays: ["2026-11-13", "2026-11-14", "2026-11-15"] },
  );
  expect(told).toEqual([
    "Requests did not change on the 6 days of 7 that both have: 600 in 2026-11-09 to 2026-11-15 as in 2026-11-02 to 2026-11-08.",
    "Left out are days that only one of the two has: 600 before, 744 after.",
    "1 day was not read: 2026-11-03.",
    "By tags only 5 of 7 days can be compared, as it was not read on the others.",
    "3 days are not final yet and may still change: 2026-11-13 to 2026-11-15.",
  ]);
  expect(words({ daysCompared: 0 })[0]).toBe(
    "Requests can't be compared: no day was read both in 2026-11-09 to 2026-11-15 and in 2026-11-02 to 2026-11-08.",
  );
});

test("the days by which a month is longer than the other are not compared, and it is said what they had", () => {
  const months = {
    before: { start: "2026-08-01", end: "2026-08-31" },
    period: { start: "2026-09-01", end: "2026-09-30" },
  };
  const metric = {
    ...{ before: "800", after: "300", change: "-500", daysCompared: 30, daysInAll: 31 },
    compared: { before: "300", after: "300", change: "0" },
    notCompared: { before: "500", after: "0", change: "-500" },
  };
  expect(words(metric, months)).toEqual([
    "Requests did not change on the 30 days of 31 that both have: 300 in 2026-09-01 to 2026-09-30 as in 2026-08-01 to 2026-08-31.",
    "Left out is 2026-08-31, which has no day in the other period to be compared with: 500 before, 0 after.",
  ]);
  expect(words({ ...metric, daysCompared: 29 }, { ...months, lackingDays: ["2026-08-02"] })[1]).toBe(
    "Left out are days that only one of the two has, among them 2026-08-31: 500 before, 0 after.",
  );
  const longer = { before: months.period, period: { start: "2026-10-01", end: "2026-10-31" } };
  expect(words({ ...metric, notCompared: { before: "0", after: "7", change: "7" } }, longer)[1]).toMatch(
    /^Left out is 2026-10-31, .*: 0 before, 7 after\.$/,
  );
});

test("days of several projects are counted together, and a grouping that only one is read by lacks no day", () => {
  const breakdown = {
    grouping: "model",
    daysCompared: 7,
    daysInAll: 7,
    newGroups: 0,
    vanishedGroups: 0,
    parts: [],
  } as const;
  const told = (daysCompared: number) =>
    words({ daysCompared, daysInAll: 14, breakdowns: [breakdown] }, { projects: ["production", "staging"] });
  expect(told(14)).toHaveLength(1);
  expect(told(13)).toHaveLength(1);
  expect(told(13)[0]).toMatch(/, on the 13 days of 14 \(of 2 projects together\) that both have\.$/);
});
