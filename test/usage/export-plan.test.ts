import fc from "fast-check";
import { expect, test } from "vitest";
import { addDays, type Day, dayCount, daysOf, type Window } from "../../src/usage/days.ts";
import type { DueDays, DueSlice, ExportJob, Selection } from "../../src/usage/export-plan.ts";
import {
  configuredSeries,
  describeRequest,
  dueDays,
  isDueForRetry,
  isDueInRun,
  planRun,
  REQUEST_DAYS_MAX,
  requestsAtOnce,
  seriesOf,
  totalSliceCount,
} from "../../src/usage/export-plan.ts";
import { type Filter, seenFilter, seriesKey } from "../../src/usage/series.ts";
import { ALL_USAGE, PROJECT, sampleJob, sampleRequest, windowless } from "./sample-request.ts";

const TODAY = "2026-03-18";
const LISTEN: Filter = { name: "listen", features: {}, dimensions: { endpoint: "listen" } };
const STAGING = { id: "p2", name: "staging" };

function windowsOf(job: ExportJob, today: Day = TODAY, selection?: Selection): Window[] {
  return planRun(job, today, selection).requests.flatMap(({ window }) => window ?? []);
}

test("the newest days of every series are read before older days of any series", () => {
  const job = sampleJob({ groupings: ["none", "model"], window: { days: 40, today: false } });
  expect(planRun(job, TODAY).requests.map(({ series, window }) => [window?.end, series.grouping])).toEqual([
    ["2026-03-17", "none"],
    ["2026-03-17", "model"],
    ["2026-02-14", "none"],
    ["2026-02-14", "model"],
  ]);
});

const aDay = fc.integer({ min: 0, max: 40_000 }).map((days) => addDays("1990-01-01", days));

/** Windows around the ends of months, of a year and of both kinds of February. */
const AROUND_ENDS: [today: string, days: number, withToday: boolean][] = [
  ["2024-03-01", 31, false],
  ["2024-03-01", 366, false],
  ["2023-03-01", 62, true],
  ["2026-01-01", 1, false],
];

test("the requests of any window cover each of its days exactly once, newest first, 31 days at most", () => {
  fc.assert(
    fc.property(aDay, fc.integer({ min: 1, max: 800 }), fc.boolean(), (today, days, withToday) => {
      const windows = windowsOf(sampleJob({ window: { days, today: withToday } }), today);
      const wanted = daysOf({ start: addDays(today, -days), end: withToday ? today : addDays(today, -1) });
      expect([...windows].reverse().flatMap(daysOf)).toEqual(wanted);
      expect(Math.max(...windows.map(dayCount))).toBeLessThanOrEqual(REQUEST_DAYS_MAX);
    }),
    { examples: AROUND_ENDS },
  );
});

test("the requests for any selected days cover exactly these days, each once", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 120 }), { maxLength: 150 }), (offsets) => {
      const days = offsets.map((offset) => addDays("2023-12-01", offset));
      const windows = windowsOf(sampleJob(), TODAY, { days });
      expect([...windows].reverse().flatMap(daysOf)).toEqual([...new Set(days)].sort());
      expect(windows.every((window) => dayCount(window) <= REQUEST_DAYS_MAX)).toBe(true);
    }),
  );
});

test.each<[string, Selection, readonly string[]]>([
  ["a project", { projects: ["staging"] }, ["staging all none", "staging listen none"]],
  ["a filter", { filters: ["listen"] }, ["production listen none", "staging listen none"]],
  ["a grouping the job does not have", { groupings: ["tags"] }, []],
  ["no project at all", { projects: [] }, []],
])("a selection of %s narrows the plan", (_, selection, expected) => {
  const job = sampleJob({ projects: [PROJECT, STAGING], filters: [ALL_USAGE, LISTEN] });
  const { requests } = planRun(job, TODAY, selection);
  const found = requests.map(({ series }) => `${series.project.name} ${series.filter.name} ${series.grouping}`);
  expect(found).toEqual(expected);
});

const inAnyOrder = <T>(a: T, b: T) => [
  [a, b],
  [b, a],
];

test("a series of two jobs is registered once, with the longer window, whichever job comes first", () => {
  const week = sampleJob({ name: "week", groupings: ["none", "model"], window: { days: 7, today: false } });
  const month = sampleJob({ name: "month", groupings: ["none"], window: { days: 30, today: false } });
  for (const jobs of inAnyOrder(week, month)) {
    const configured = configuredSeries(jobs).map(({ series, windowDays }) => `${series.grouping} ${windowDays}`);
    expect(configured.sort()).toEqual(["model 7", "none 30"]);
  }
});

test("a series that one job reads with a window and another job without keeps the window", () => {
  const { window: _, ...dateless } = sampleJob({ name: "dateless" });
  for (const jobs of inAnyOrder(sampleJob(), dateless)) {
    expect(configuredSeries(jobs).map(({ windowDays }) => windowDays)).toEqual([7]);
  }
  expect(configuredSeries([dateless]).map(({ windowDays }) => windowDays)).toEqual([undefined]);
});

const YESTERDAY = "2026-03-17";

test("a scheduled run makes its whole window due, up to yesterday", () => {
  expect(dueDays(sampleJob({ window: { days: 40, today: false } }), TODAY)).toEqual({
    first: "2026-02-06",
    oldestWindow: { start: "2026-02-06", end: YESTERDAY },
    through: YESTERDAY,
  });
});

test("today is never due, even if it is read", () => {
  expect(dueDays(sampleJob({ window: { days: 1, today: true } }), TODAY).through).toBe(YESTERDAY);
  expect(dueDays(sampleJob(), TODAY, { days: [TODAY] }).through).toBe(YESTERDAY);
});

test("without a window no day is due before the answer is known", () => {
  const { window: _, ...job } = sampleJob();
  expect(dueDays(job, TODAY)).toEqual({ through: YESTERDAY });
});

const due = (first: Day | undefined, start: Day, end: Day, through = end): DueDays => {
  return { first, oldestWindow: { start, end }, through };
};

test.each<[string, readonly Day[], DueDays]>([
  ["before yesterday", ["2025-06-01", "2025-06-02"], due(undefined, "2025-06-01", "2025-06-02")],
  ["up to yesterday", ["2026-03-16", YESTERDAY], due("2026-03-16", "2026-03-16", YESTERDAY)],
  [
    "up to yesterday after a gap",
    ["2025-06-01", "2026-03-16", YESTERDAY],
    due("2026-03-16", "2025-06-01", "2025-06-01", YESTERDAY),
  ],
])("picked days are due if they adjoin yesterday: days %s", (_, days, expected) => {
  expect(dueDays(sampleJob(), TODAY, { days })).toEqual(expected);
});

/** The filters of a fan-out: async was seen only outside the window, and sync in it from 2026-03-15 on. */
const METHODS = [seenFilter("method", "async"), seenFilter("method", "sync", { start: "2026-03-15", end: YESTERDAY })];
const FANNED_OUT = sampleJob({
  projects: [PROJECT, STAGING],
  groupings: ["none", "method", "model"],
  seen: new Map([[PROJECT.id, METHODS]]),
});

test.each<[string, readonly string[], readonly string[]]>([
  ["every value that was seen in the project", ["method=*"], ["method=async", "method=sync"]],
  ["one value", ["method=sync"], ["method=sync"]],
  ["a filter of the job", ["all"], []],
])("in a fan-out, a selection of %s (%j) chooses the series %j", (_, filters, read) => {
  const fanned = seriesOf(FANNED_OUT, { filters }).filter(({ filter }) => filter.seen);
  const series = { project: PROJECT, source: "usage", grouping: "model" };
  expect(fanned).toEqual(METHODS.filter(({ name }) => read.includes(name)).map((filter) => ({ ...series, filter })));
});

test("a series of a fan-out is due from the day on which its value was seen, whichever job comes first", () => {
  const withoutSeen = sampleJob({ filters: METHODS.map(({ seen: _, ...filter }) => filter), groupings: ["model"] });
  for (const jobs of inAnyOrder(FANNED_OUT, withoutSeen)) {
    const seen = configuredSeries(jobs).filter(({ series }) => series.filter.seen?.dueDays);
    expect(seen.map(({ series: { filter } }) => [filter.name, filter.seen?.dueDays])).toEqual([
      ["method=sync", { start: "2026-03-15", end: YESTERDAY }],
    ]);
  }
});

const WEEK = sampleJob({ window: { days: 7, today: false } });
const toReread = new Map([
  [seriesKey(sampleRequest("none").series), [{ day: "2026-03-10" }, { day: "2026-03-11" }, { day: "2026-02-01" }]],
]);

const FEBRUARY_1 = "2026-02-01 to 2026-02-01";
const UNSCHEDULED = { toReread, readsWindow: false };
const isSettled = (_: unknown, day: Day | undefined) => day === "2026-03-14";

test.each<[string, Parameters<typeof planRun>[3], Selection, readonly string[]]>([
  ["its window", {}, {}, ["2026-03-11 to 2026-03-17"]],
  ["earlier days that need another reading, too", { toReread }, {}, ["2026-03-10 to 2026-03-17", FEBRUARY_1]],
  ["picked days alone", { toReread }, { days: [YESTERDAY] }, ["2026-03-17 to 2026-03-17"]],
  [
    "only days that need another reading, if it is unscheduled",
    UNSCHEDULED,
    {},
    ["2026-03-10 to 2026-03-11", FEBRUARY_1],
  ],
  ["nothing, if it is unscheduled and no day needs it", { readsWindow: false }, {}, []],
  ["no settled day", { isSettled }, {}, ["2026-03-15 to 2026-03-17", "2026-03-11 to 2026-03-13"]],
])("a run reads %s", (_, knownDays, selection, expected) => {
  const { requests } = planRun(WEEK, TODAY, selection, knownDays);
  expect(requests.map(({ window }) => `${window?.start} to ${window?.end}`)).toEqual(expected);
});

test("a series without a window is read once, by a scheduled run", () => {
  const { window: _, ...job } = sampleJob({ groupings: ["none", "model"] });
  const read = (known: Parameters<typeof planRun>[3]) =>
    planRun(job, TODAY, {}, known).requests.map(({ series, window }) => [series.grouping, window]);
  expect(read({})).toEqual([
    ["none", undefined],
    ["model", undefined],
  ]);
  expect(read({ isSettled: ({ grouping }) => grouping === "none" })).toEqual([["model", undefined]]);
  expect(read({ readsWindow: false })).toEqual([]);
});

test("a request reads a slice for each day of its window, or one without a window", () => {
  expect(totalSliceCount([sampleRequest("none"), sampleRequest("model"), windowless("none")])).toBe(2 + 2 + 1);
  expect(totalSliceCount([])).toBe(0);
});

test("a request is described by its series, its days and, for billing, its source", () => {
  const usage = { project: "production", grouping: "none", filter: "all", start: "2026-03-16", end: YESTERDAY };
  expect(describeRequest(sampleRequest("none"))).toEqual(usage);
  expect(describeRequest(sampleRequest("none", undefined, "billing"))).toEqual({ ...usage, source: "billing" });
});

test.each([
  // A project alone has two for each slot. One of several leaves a slot to the others.
  [5, 1, 10],
  [5, 3, 4],
  [1, 3, 1],
])("with %i slots, each of %i projects has %i requests at once", (slots, projects, requests) => {
  expect(requestsAtOnce(slots, projects)).toBe(requests);
});

const NOW = new Date("2026-03-19T12:00:00Z");
const hoursAgo = (hours: number) => new Date(NOW.getTime() - hours * 3_600_000);
const slice = (part: Partial<DueSlice>): DueSlice => ({
  ...{ seriesId: 1, day: "2026-03-18", status: "failed", since: hoursAgo(1), attemptedAt: hoursAgo(1) },
  ...part,
});

test("a slice that was never read, or only before its day was over, is read at once", () => {
  expect(isDueForRetry(slice({ status: "missing", attemptedAt: null }), NOW)).toBe(true);
  expect(isDueForRetry(slice({ status: "missing", attemptedAt: hoursAgo(0) }), NOW)).toBe(true);
  expect(isDueForRetry(slice({ attemptedAt: null }), NOW)).toBe(true);
});

const RUN_BEGAN = hoursAgo(1);

test.each<[string, Partial<DueSlice>, boolean]>([
  ["a slice that the run has not tried, if a retry was due when it began", { attemptedAt: hoursAgo(2) }, true],
  ["no slice that the run has not tried, if no retry was due when it began", { attemptedAt: hoursAgo(1.1) }, false],
  ["a slice that the run has tried, if the service was away", { attemptedAt: hoursAgo(0), code: "unavailable" }, true],
  ["a slice at whose attempt the run began", { attemptedAt: RUN_BEGAN, code: "rate_limited" }, true],
  ["no slice whose answer the run could not read", { attemptedAt: hoursAgo(0), code: "bad_answer" }, false],
  ["no slice that became suspect in the run", { attemptedAt: hoursAgo(0), status: "suspect", code: null }, false],
  ["a missing slice that was read before its day was over", { attemptedAt: hoursAgo(0), status: "missing" }, true],
])("a run reads again %s", (_, part, isDue) => {
  expect(isDueInRun(slice({ since: hoursAgo(2), ...part }), RUN_BEGAN)).toBe(isDue);
});

test.each([
  [0, 1],
  [1, 1],
  [6, 6],
  [400, 24],
])("a slice that had failed for %i hours when it was read last is read again after %i hours", (lasted, hours) => {
  const readBefore = (ago: number) => slice({ attemptedAt: hoursAgo(ago), since: hoursAgo(ago + lasted) });
  expect(isDueForRetry(readBefore(hours), NOW)).toBe(true);
  expect(isDueForRetry(readBefore(hours - 0.001), NOW)).toBe(false);
});
