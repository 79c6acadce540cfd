import { expect, test } from "vitest";
import { METRICS } from "../../src/usage/metrics.ts";
import {
  type Doubt,
  decideSlice,
  doubtAfter,
  type IncomingSlice,
  type SliceDecision,
  type StoredSlice,
  type Totals,
} from "../../src/usage/slice.ts";

const NOW = new Date("2026-03-19T03:00:00Z");
const minutesAgo = (minutes: number) => new Date(NOW.getTime() - minutes * 60_000);
const sums = (part: Partial<Record<(typeof METRICS)[number], number>>): Totals => METRICS.map((metric) => part[metric]);

const stored: StoredSlice = { fetchNo: 5, contentHash: "full", rows: 3, doubt: undefined };
const incoming: IncomingSlice = {
  ...{ fetchNo: 9, runId: "run-2", contentHash: "other", rows: 4, askedAt: NOW },
  totals: sums({ requests: 1_000 }),
};
const empty = { contentHash: "empty", rows: 0, totals: [] };
const never: StoredSlice = { fetchNo: 0, contentHash: undefined, rows: 0, doubt: undefined };
const GUARDED = { emptyGuard: "confirm", cliffGuard: "confirm" } as const;

const doubt = (part: Partial<Doubt> = {}): { readonly doubt: Doubt } => ({
  doubt: { kind: "empty", runId: "run-1", since: minutesAgo(60), fetchNo: 7, ...part },
});

const ignored = { filterDoubt: { kind: "filter-ignored", reason: "ignored", isConfirmable: false } } as const;
const nothing = { filterDoubt: { kind: "filter-empty", reason: "nothing", isConfirmable: true }, ...empty } as const;

test.each<[string, Partial<StoredSlice>, Partial<IncomingSlice>, SliceDecision]>([
  ["a filter that is ignored is suspect on its first day", never, ignored, "suspect"],
  [
    "a filter that is ignored is suspect although the same is stored",
    {},
    { ...ignored, contentHash: "full" },
    "suspect",
  ],
  ["a filter that is ignored is confirmed by no run", doubt({ kind: "filter-ignored" }), ignored, "suspect"],
  ["an older answer whose filter is ignored is stale", { fetchNo: 10 }, ignored, "stale"],
  ["a filter with nothing on its first days is suspect", never, nothing, "suspect"],
  ["a later run confirms a filter with nothing", { ...never, ...doubt({ kind: "filter-empty" }) }, nothing, "replace"],
  ["a doubt of another kind confirms no filter", { ...never, ...doubt() }, nothing, "suspect"],
  ["a filter with nothing on days that were confirmed is unchanged", empty, nothing, "unchanged"],
  ["the first rows are stored", never, {}, "replace"],
  ["a first answer without rows is stored as that", never, empty, "replace"],
  ["other numbers replace", {}, {}, "replace"],
  ["other numbers of fewer rows replace", {}, { rows: 1 }, "replace"],
  ["the same numbers are unchanged", {}, { contentHash: "full", rows: 3 }, "unchanged"],
  ["a day that was empty and is empty again is unchanged", empty, empty, "unchanged"],
  ["a day that was empty and has rows now is replaced", empty, {}, "replace"],
  ["the same fetch again is no older than itself", { fetchNo: 9 }, {}, "replace"],
  ["an older fetch is stale", { fetchNo: 10 }, {}, "stale"],
  ["an older fetch with the same numbers is stale too", { fetchNo: 10 }, { contentHash: "full" }, "stale"],
  ["an older empty fetch is stale, not suspect", { fetchNo: 10 }, empty, "stale"],
  ["rows that vanish all at once are suspect", {}, empty, "suspect"],
  ["the run that made a slice suspect can't confirm it", doubt({ runId: "run-2" }), empty, "suspect"],
  ["another run that finds it empty an hour later confirms it", doubt(), empty, "replace"],
  ["another run of the same hour does not", doubt({ since: minutesAgo(59) }), empty, "suspect"],
  [
    "a doubt of the future, by a clock that was set back, is not confirmed",
    doubt({ since: minutesAgo(-90) }),
    empty,
    "suspect",
  ],
  ["a suspect slice whose rows are back is unchanged", doubt(), { contentHash: "full" }, "unchanged"],
  ["a suspect slice with other rows is replaced", doubt(), {}, "replace"],
  ["rows that were fetched before a doubt do not settle it", doubt({ fetchNo: 10 }), {}, "stale"],
  [
    "the same numbers, fetched before a doubt, do not settle it",
    doubt({ fetchNo: 10 }),
    { contentHash: "full" },
    "stale",
  ],
])("%s", (_, storedPart, incomingPart, decision) => {
  expect(decideSlice({ ...stored, ...storedPart }, { ...incoming, ...incomingPart }, GUARDED)).toBe(decision);
});

test.each<[string, Totals, Totals, Partial<StoredSlice>, SliceDecision]>([
  ["over 90 % fewer requests are suspect", sums({ requests: 1_000 }), sums({ requests: 99 }), {}, "suspect"],
  ["90 % fewer are not", sums({ requests: 1_000 }), sums({ requests: 100 }), {}, "replace"],
  ["more requests are not", sums({ requests: 1_000 }), sums({ requests: 5_000 }), {}, "replace"],
  ["a day of 100 requests is guarded", sums({ requests: 100 }), sums({ requests: 1 }), {}, "suspect"],
  ["a day of less is not", sums({ requests: 99 }), sums({ requests: 0 }), {}, "replace"],
  [
    "requests decide, whatever the hours do",
    sums({ requests: 500, hours: 90 }),
    sums({ requests: 500, hours: 1 }),
    {},
    "replace",
  ],
  ["hours decide where no requests are stored", sums({ hours: 90 }), sums({ requests: 500, hours: 1 }), {}, "suspect"],
  ["hours decide where none come", sums({ requests: 500, hours: 90 }), sums({ hours: 1 }), {}, "suspect"],
  ["tokens decide where there is nothing else", sums({ tokens_in: 90_000 }), sums({ tokens_in: 8_999 }), {}, "suspect"],
  ["without a metric that both have nothing tells", sums({ hours: 90 }), sums({ tokens_in: 1 }), {}, "replace"],
  [
    "another fall of a later run confirms it",
    sums({ requests: 1_000 }),
    sums({ requests: 20 }),
    doubt({ kind: "fall" }),
    "replace",
  ],
  [
    "a fall does not confirm that a day is empty",
    sums({ requests: 1_000 }),
    sums({ requests: 20 }),
    doubt(),
    "suspect",
  ],
])("cliff guard: %s", (_, before, after, part, decision) => {
  expect(decideSlice({ ...stored, ...part, totals: before }, { ...incoming, totals: after }, GUARDED)).toBe(decision);
});

test("an empty answer does not confirm that a day has fallen", () => {
  expect(decideSlice({ ...stored, ...doubt({ kind: "fall" }) }, { ...incoming, ...empty }, GUARDED)).toBe("suspect");
});

test("each guard can be off, and then its answer is taken at its word", () => {
  const fallen = { ...stored, totals: sums({ requests: 1_000 }) };
  const low = { ...incoming, totals: sums({ requests: 1 }) };
  expect(decideSlice(stored, { ...incoming, ...empty }, { ...GUARDED, emptyGuard: "off" })).toBe("replace");
  expect(decideSlice(fallen, low, { ...GUARDED, emptyGuard: "off" })).toBe("suspect");
  expect(decideSlice(fallen, low, { ...GUARDED, cliffGuard: "off" })).toBe("replace");
});

test("without the guard an older fetch is stale all the same", () => {
  const guards = { ...GUARDED, emptyGuard: "off" } as const;
  expect(decideSlice({ ...stored, fetchNo: 10 }, { ...incoming, ...empty }, guards)).toBe("stale");
});

test("a doubt is as old as its first answer, and as new as its last", () => {
  const again = doubtAfter({ ...stored, ...doubt({ since: minutesAgo(30) }) }, { ...incoming, ...empty }, GUARDED);
  expect(again).toMatchObject({ kind: "empty", runId: "run-1", since: minutesAgo(30), fetchNo: 9 });
});

test("another kind of doubt is a first one, and so is one of the future", () => {
  const first = { runId: "run-2", since: NOW, fetchNo: 9 };
  const emptied = { ...incoming, ...empty };
  expect(doubtAfter({ ...stored, ...doubt({ kind: "fall" }) }, emptied, GUARDED)).toMatchObject(first);
  const ahead = doubtAfter({ ...stored, ...doubt({ since: minutesAgo(-5) }) }, emptied, GUARDED);
  expect(ahead).toMatchObject({ since: NOW });
});
