import { expect, test } from "vitest";
import { METRICS } from "../../src/usage/metrics.ts";
import {
  type Doubt,
  decideSlice,
  decideSnapshot,
  type IncomingSlice,
  type SliceDecision,
  type StoredSlice,
  type Totals,
} from "../../src/usage/slice-decision.ts";

type Amounts = Partial<Record<(typeof METRICS)[number], number>>;

const NOW = new Date("2026-03-19T03:00:00Z");
const minutesAgo = (minutes: number) => new Date(NOW.getTime() - minutes * 60_000);
const sums = (part: Amounts): Totals => METRICS.map((metric) => part[metric]);

const stored: StoredSlice = { fetchNo: 5, contentHash: "full", rows: 3, doubt: undefined };
const incoming: IncomingSlice = {
  ...{ fetchNo: 9, runId: "run-2", contentHash: "other", rows: 4, askedAt: NOW },
  totals: sums({ requests: 1_000 }),
};
const empty = { contentHash: "empty", rows: 0, totals: [] };
const unread: StoredSlice = { fetchNo: 0, contentHash: undefined, rows: 0, doubt: undefined };
const GUARDED = { emptyGuard: "confirm", cliffGuard: "confirm" } as const;

const doubt = (part: Partial<Doubt> = {}): { readonly doubt: Doubt } => ({
  doubt: { kind: "empty", runId: "run-1", since: minutesAgo(60), fetchNo: 7, ...part },
});

const ignored = { filterDoubt: { kind: "filter-ignored", reason: "ignored", isConfirmable: false } } as const;
const noMatch = { filterDoubt: { kind: "filter-empty", reason: "nothing", isConfirmable: true }, ...empty } as const;

test.each<[string, Partial<StoredSlice>, Partial<IncomingSlice>, SliceDecision]>([
  ["an answer whose filter is ignored is suspect, even if nothing is stored", unread, ignored, "suspect"],
  ["the same numbers are suspect if their filter is ignored", {}, { ...ignored, contentHash: "full" }, "suspect"],
  ["no run confirms an answer whose filter is ignored", doubt({ kind: "filter-ignored" }), ignored, "suspect"],
  ["an older answer whose filter is ignored is stale", { fetchNo: 10 }, ignored, "stale"],
  ["an empty answer of a filter is suspect, even if nothing is stored", unread, noMatch, "suspect"],
  ["a later run confirms an empty filter", { ...unread, ...doubt({ kind: "filter-empty" }) }, noMatch, "replace"],
  ["a doubt of another kind does not confirm an empty filter", { ...unread, ...doubt() }, noMatch, "suspect"],
  ["an empty answer of a filter is unchanged if it was confirmed before", empty, noMatch, "unchanged"],
  ["the first rows of a slice are stored", unread, {}, "replace"],
  ["a first answer without rows is stored", unread, empty, "replace"],
  ["other numbers replace the stored ones", {}, {}, "replace"],
  ["other numbers in fewer rows replace the stored ones", {}, { rows: 1 }, "replace"],
  ["the same numbers are unchanged", {}, { contentHash: "full", rows: 3 }, "unchanged"],
  ["a day that was empty and is empty again is unchanged", empty, empty, "unchanged"],
  ["a day that was empty and has rows now is replaced", empty, {}, "replace"],
  ["an answer with the fetch number that is stored is not stale", { fetchNo: 9 }, {}, "replace"],
  ["an older fetch is stale", { fetchNo: 10 }, {}, "stale"],
  ["an older fetch with the same numbers is stale too", { fetchNo: 10 }, { contentHash: "full" }, "stale"],
  ["an older empty fetch is stale, not suspect", { fetchNo: 10 }, empty, "stale"],
  ["rows that vanish all at once are suspect", {}, empty, "suspect"],
  ["the run that made a slice suspect can't confirm it", doubt({ runId: "run-2" }), empty, "suspect"],
  ["another run that finds the slice empty an hour later confirms it", doubt(), empty, "replace"],
  ["another run within the hour does not confirm an empty slice", doubt({ since: minutesAgo(59) }), empty, "suspect"],
  ["an empty answer does not confirm a doubt about a fall", doubt({ kind: "fall" }), empty, "suspect"],
  ["a doubt from before the clock was set back is not confirmed", doubt({ since: minutesAgo(-90) }), empty, "suspect"],
  ["a suspect slice whose rows are back is unchanged", doubt(), { contentHash: "full" }, "unchanged"],
  ["a suspect slice with other rows is replaced", doubt(), {}, "replace"],
  ["rows that were fetched before a doubt do not settle it", doubt({ fetchNo: 10 }), {}, "stale"],
  ["the same numbers from before a doubt do not settle it", doubt({ fetchNo: 10 }), { contentHash: "full" }, "stale"],
])("%s", (_, storedPart, incomingPart, decision) => {
  expect(decideSlice({ ...stored, ...storedPart }, { ...incoming, ...incomingPart }, GUARDED).decision).toBe(decision);
});

const THOUSAND = { requests: 1_000 };

test.each<[string, SliceDecision, before: Amounts, after: Amounts, Partial<StoredSlice>]>([
  ["over 90 % fewer requests are suspect", "suspect", THOUSAND, { requests: 99 }, {}],
  ["exactly 90 % fewer requests are not suspect", "replace", THOUSAND, { requests: 100 }, {}],
  ["more requests are not suspect", "replace", THOUSAND, { requests: 5_000 }, {}],
  ["a day of 100 requests is guarded", "suspect", { requests: 100 }, { requests: 1 }, {}],
  ["a day of fewer than 100 requests is not guarded", "replace", { requests: 99 }, { requests: 0 }, {}],
  ["requests decide, whatever the hours", "replace", { requests: 500, hours: 90 }, { requests: 500, hours: 1 }, {}],
  ["hours decide if no requests are stored", "suspect", { hours: 90 }, { requests: 500, hours: 1 }, {}],
  ["hours decide if the answer has no requests", "suspect", { requests: 500, hours: 90 }, { hours: 1 }, {}],
  ["tokens decide if there is no other metric", "suspect", { tokens_in: 90_000 }, { tokens_in: 8_999 }, {}],
  ["numbers without a common metric are not suspect", "replace", { hours: 90 }, { tokens_in: 1 }, {}],
  ["a later fall confirms a doubt about a fall", "replace", THOUSAND, { requests: 20 }, doubt({ kind: "fall" })],
  ["a fall does not confirm a doubt about an empty answer", "suspect", THOUSAND, { requests: 20 }, doubt()],
])("cliff guard: %s", (_, decision, before, after, part) => {
  const [was, is] = [sums(before), sums(after)];
  const decided = decideSlice({ ...stored, ...part, totals: was }, { ...incoming, totals: is }, GUARDED).decision;
  expect(decided).toBe(decision);
});

test("a guard that is off doubts no answer", () => {
  const fallen = { ...stored, totals: sums({ requests: 1_000 }) };
  const low = { ...incoming, totals: sums({ requests: 1 }) };
  expect(decideSlice(stored, { ...incoming, ...empty }, { ...GUARDED, emptyGuard: "off" }).decision).toBe("replace");
  expect(decideSlice(fallen, low, { ...GUARDED, emptyGuard: "off" }).decision).toBe("suspect");
  expect(decideSlice(fallen, low, { ...GUARDED, cliffGuard: "off" }).decision).toBe("replace");
  const older = { ...incoming, ...empty, fetchNo: 4 };
  expect(decideSlice(stored, older, { ...GUARDED, emptyGuard: "off" }).decision).toBe("stale");
});

const RECENT = doubt({ since: minutesAgo(59) });
const CONTINUED = { ...RECENT.doubt, fetchNo: 9 };
const FIRST = { kind: "empty", runId: "run-2", since: NOW, fetchNo: 9 };

test.each<[string, Partial<StoredSlice>, Partial<IncomingSlice>, object | undefined]>([
  ["begins with the first doubtful answer", {}, empty, FIRST],
  ["has the run and time of its first answer, and the fetch number of its last", RECENT, empty, CONTINUED],
  ["of another kind starts anew", doubt({ kind: "fall" }), empty, FIRST],
  ["with a time in the future starts now", doubt({ since: minutesAgo(-5) }), empty, { ...FIRST, runId: "run-1" }],
  ["ends with an answer that is believed", doubt(), {}, undefined],
])("a doubt %s", (_, storedPart, part, expected) => {
  const { doubt: after } = decideSlice({ ...stored, ...storedPart }, { ...incoming, ...part }, GUARDED);
  expect(after).toEqual(expected && expect.objectContaining(expected));
});

test("a doubt's reason is that of the filter's doubt, both amounts, or the lack of rows", () => {
  const before = { ...stored, totals: sums({ requests: 4_000 }) };
  const reasonAfter = (part: Partial<IncomingSlice>) =>
    decideSlice(before, { ...incoming, ...part }, GUARDED).doubt?.reason;
  expect(reasonAfter({ ...noMatch, ...empty })).toBe("nothing");
  expect(reasonAfter({ totals: sums({ requests: 77 }) })).toMatch(/ 77 requests .* 4000\b/);
  expect(reasonAfter(empty)).toContain("no rows");
});

const snapshot = (fetchNo: number, contentHash = "same") => ({ fetchNo, contentHash });

test.each([
  ["the first snapshot is stored", undefined, snapshot(1), "replace"],
  ["other numbers are another snapshot", snapshot(1), snapshot(2, "other"), "replace"],
  ["the same numbers are the same snapshot", snapshot(1), snapshot(2), "unchanged"],
  ["an older fetch changes nothing", snapshot(2), snapshot(1, "other"), "stale"],
  ["a fetch that is stored already changes nothing", snapshot(2), snapshot(2), "stale"],
])("without a date, %s", (_title, newest, answer, decision) => {
  expect(decideSnapshot(newest, answer)).toBe(decision);
});
