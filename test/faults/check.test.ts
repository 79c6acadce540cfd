// The checker (check.ts, which lists the invariants I1 to I10) finds each planted violation, and nothing in correct evidence. The
// fault tests depend on it: with a checker that can't fail they would prove nothing.

import { expect, test } from "vitest";
import type { Evidence, ProgramEnd, Visible } from "./case-evidence.ts";
import { violations } from "./check.ts";
import type { Exchange } from "./history.ts";

/** By tags, with an empty filter. */
const SERIES = "tags / ";
const DAY = "2026-03-01";
const SLICE = `${SERIES} @ ${DAY}`;

/** The rows of an answer: group a in every version, and a second group whose name contains the version. */
const rows = (version: number) => [`["a","${version}"]`, `["b${version}","${version}"]`];

function answer(version: number, who: string, arrivedAt: number, part: Partial<Exchange> = {}): Exchange {
  const days = new Map([[DAY, rows(version)]]);
  const asked = { series: SERIES, days: [DAY] };
  const times = { arrivedAt, answeredAt: arrivedAt + 5, endedAt: arrivedAt + 5 };
  return { who, path: `/breakdown?${who}`, asked, ...times, status: 200, version, days, ...part };
}

const visible = (version: number): Visible => new Map([[SLICE, rows(version)]]);

function program(who: string, startedAt: number, part: Partial<ProgramEnd> = {}): ProgramEnd {
  return { who, command: "export", status: 0, output: "", startedAt, notCompleteAfter: [], ...part };
}

/** A first export, one that was killed after its answer had come, and the recovery run. */
const RECOVERED: Evidence = {
  exchanges: [answer(1, "first", 1_000), answer(2, "a", 11_000), answer(3, "recovery", 21_000)],
  moments: [visible(1), visible(2), visible(3)],
  now: visible(3),
  coverage: new Map([[SLICE, "complete"]]),
  due: [SLICE],
  dueBefore: [SLICE],
  programs: [program("first", 0), program("a", 10_000, { status: null }), program("recovery", 20_000)],
  recovery: "recovery",
  runs: [{ status: "ok", planned: 2, complete: 1, stale: 1 }],
  caps: { concurrent: 2, attempts: 2, exempt: new Set() },
};

test("correct evidence has no violations", () => {
  expect(violations(RECOVERED)).toEqual([]);
});

test("it is no violation if nothing of the killed program was stored", () => {
  expect(violations({ ...RECOVERED, moments: [visible(1), visible(3)] })).toEqual([]);
});

/** A fetch begins up to 300 ms before its call arrives, so the fetches of calls that arrive within 300 ms overlap. */
const CONCURRENT = { ...RECOVERED, programs: [program("a", 0), program("b", 0), program("recovery", 20_000)] };
/** The program `who` was killed or stopped. */
const killed = (who: string) => ({ ...RECOVERED, caps: { ...RECOVERED.caps, exempt: new Set([who]) } });

test("fetches that overlap may be stored in either order", () => {
  const exchanges = [answer(1, "a", 10), answer(2, "b", 20), answer(3, "recovery", 21_000)];
  expect(violations({ ...CONCURRENT, exchanges, moments: [visible(2), visible(1), visible(3)] })).toEqual([]);
});

test("either of two overlapping fetches may be the one that stays", () => {
  const exchanges = [answer(1, "a", 10), answer(2, "b", 20)];
  expect(violations({ ...CONCURRENT, exchanges, moments: [visible(1)], now: visible(1) })).toEqual([]);
});

test("an answer that a killed program stored may stay if no later program requested the day again", () => {
  const exchanges = [answer(2, "a", 11_000)];
  expect(violations({ ...killed("a"), exchanges, moments: [visible(2)], now: visible(2) })).toEqual([]);
});

const mixed: Visible = new Map([[SLICE, [rows(1)[0] ?? "", rows(2)[1] ?? ""]]]);
const doubled: Visible = new Map([[SLICE, [...rows(3), rows(3)[0] ?? ""]]]);

/** Three calls where RECOVERED allows two: of three programs at once, and of one program again and again. */
const AT_ONCE = [0, 1, 2].map((n) => answer(n + 1, `p${n}`, 10 + n));
const TRIES = [0, 1, 2].map((n) => answer(n + 1, "recovery", 10 * n));

const PLANTED: Readonly<Record<string, readonly [string, Partial<Evidence>]>> = {
  "rows of two answers at once": ["I1", { moments: [visible(1), mixed, visible(3)] }],
  "rows of two answers at the end": ["I1", { now: mixed }],
  "half of an answer": ["I1", { moments: [visible(1), new Map([[SLICE, rows(2).slice(1)]]), visible(3)] }],
  "numbers that nobody sent": ["I1", { now: new Map([[SLICE, ['["a","99"]']]]) }],
  "a slice that is missing after the recovery run": ["I2", { coverage: new Map([[SLICE, "missing"]]) }],
  "a slice that is not even due after the recovery run": ["I2", { coverage: new Map() }],
  "an older answer after the recovery run": ["I2", { now: visible(2) }],
  "a slice that was never asked for": ["I2", { due: [SLICE, SLICE.replace("tags", "none")] }],
  "a due slice without a status before the recovery run": ["I2", { recovery: undefined, coverage: new Map() }],
  "a group that counts twice": ["I3", { now: doubled }],
  "an older answer that replaces a newer one": ["I4", { moments: [visible(1), visible(2), visible(1), visible(3)] }],
  "rows that disappear for a while": ["I5", { moments: [visible(1), new Map(), visible(3)] }],
  "rows that have disappeared at the end": ["I5", { now: new Map() }],
  "a recovery run that fails": ["I8", { programs: [program("first", 0), program("recovery", 20_000, { status: 1 })] }],
  "exit status 0 while a slice is missing": ["I9", { programs: [program("a", 1, { notCompleteAfter: [SLICE] })] }],
  "a stack trace in the output": ["I9", { programs: [program("a", 1, { output: "TypeError: x\n    at main.ts:1" })] }],
  "a complete slice that shows nothing": ["I9", { now: new Map() }],
  "an ok run with an incomplete slice": ["I9", { runs: [{ status: "ok", planned: 3, complete: 1, stale: 1 }] }],
  "more calls at once than allowed": ["I10", { exchanges: AT_ONCE, moments: [], now: visible(3) }],
  "more tries than allowed": ["I10", { exchanges: TRIES, moments: [], now: visible(3) }],
};

test.each(Object.entries(PLANTED))("%s is found", (_, [invariant, planted]) => {
  const found = violations({ ...RECOVERED, ...planted });
  expect(found).toContainEqual(expect.stringMatching(new RegExp(`^${invariant}: `)));
});

test("calls of a killed or stopped program do not count towards the limits", () => {
  expect(violations({ ...killed("p0"), exchanges: AT_ONCE, moments: [], now: visible(3) })).toEqual([]);
});
