// How long a night's calls take at the configured rate, and what would fit if they take too long.

import { expect, test } from "vitest";
import { planNights } from "../../src/schedule/nights.ts";
import { ALL_USAGE, type Grouping } from "../../src/usage/series.ts";
import { type LimitedKey, type Pace, workloadOf } from "../../src/usage/workload.ts";
import { exportJob } from "./sample-export.ts";

const NOW = new Date("2026-03-10T12:00:00Z");
const at = (requestsPerSecond: number): Pace => ({ requestsPerSecond, limitOf: () => undefined });
const STREAMED = { name: "streamed", features: {}, dimensions: { method: "streaming" } };
const GROUPINGS: readonly Grouping[] = ["accessor", "endpoint", "none", "model"];

test("a night makes a request for each series and 31 days, lists each project's keys and reads totals to compare filters with", () => {
  const job = exportJob({
    projects: 100,
    groupings: GROUPINGS,
    filters: [ALL_USAGE, STREAMED],
    window: { days: 40, today: true },
  });
  expect(workloadOf(job)).toEqual({ requests: 1_600, otherCalls: 300, slices: 100 * 4 * 2 * 41 });
  expect(workloadOf(exportJob({ projects: 100 }))).toEqual({ requests: 100, otherCalls: 100, slices: 700 });
  // Billing has balances besides.
  expect(workloadOf({ ...exportJob({ projects: 100 }), source: "billing" }).otherCalls).toBe(200);

  const [night] = planNights([job], at(1), NOW).exports;
  expect(night).toMatchObject({
    seconds: 1_900,
    startsAt: new Date("2026-03-11T02:15:00Z"),
    endsAt: new Date("2026-03-11T02:46:40Z"),
  });
  expect(night).not.toHaveProperty("fit");
});

test("a night that ends too late comes with a rate, a window and groupings each of which ends in time", () => {
  const job = exportJob({
    projects: 2_000,
    groupings: GROUPINGS,
    filters: [ALL_USAGE, STREAMED],
    window: { days: 40, today: false },
  });
  const fit = planNights([job], at(0.3), NOW).exports[0]?.fit;
  expect(fit).toEqual({ requestsPerSecond: 0.5, windowDays: 31, groupings: ["none", "model"] });

  const isInTime = (part: object, rate: number) =>
    planNights([{ ...job, ...part }], at(rate), NOW).exports[0]?.fit === undefined;
  expect(isInTime({}, 0.5)).toBe(true);
  expect(isInTime({ window: { days: 31, today: false } }, 0.3)).toBe(true);
  expect(isInTime({ window: { days: 32, today: false } }, 0.3)).toBe(false);
  expect(isInTime({ groupings: fit?.groupings }, 0.3)).toBe(true);
  expect(isInTime({ groupings: GROUPINGS }, 0.3)).toBe(false);
});

test("the shortest time between two runs counts, and all exports together may need more than a day", () => {
  // 200 calls at one a second take longer than the two minutes between 02:15 and 02:17.
  const uneven = exportJob({ projects: 100, schedule: "15,17 2 * * *" });
  expect(planNights([uneven], at(1), NOW).exports[0]).toMatchObject({
    secondsBetween: 120,
    fit: { requestsPerSecond: 1.7 },
  });

  const hourly = exportJob({ projects: 1_500, schedule: "0 * * * *" });
  const plan = planNights([hourly, { ...hourly, name: "other" }], at(1), NOW);
  expect(plan.exports.map(({ fit }) => fit)).toEqual([undefined, undefined]);
  expect(plan).toMatchObject({ callsPerDay: 2 * 24 * 3_000, secondsPerDay: 144_000 });
});

test("a night takes as long as its slowest key, if that is longer than all calls at the installation's rate", () => {
  // 100 projects make 200 calls: 20 s at ten a second.
  const job = exportJob({ projects: 100 });
  const planOf = (limitOf: (id: number) => LimitedKey | undefined, exports = [job]) =>
    planNights(exports, { requestsPerSecond: 10, limitOf: ({ id }) => limitOf(Number(id.slice(1))) }, NOW);

  // 30 projects share a key: 60 calls.
  const shared = (requestsPerSecond: number) =>
    planOf((id) => (id < 30 ? { name: "env A", requestsPerSecond } : undefined));
  const slow = { key: "env A", calls: 60, requestsPerSecond: 0.5 };
  expect(shared(0.5)).toMatchObject({
    exports: [{ seconds: 120, slowestKey: slow }],
    secondsPerDay: 120,
    slowestKeyPerDay: slow,
  });
  expect(shared(0.5).exports[0]?.endsAt).toEqual(new Date("2026-03-11T02:17:00Z"));
  expect(shared(4).exports[0]).toMatchObject({ seconds: 20 });
  expect(shared(4).exports[0]).not.toHaveProperty("slowestKey");
  // A rate above the installation's makes nothing faster.
  expect(shared(100).exports[0]?.seconds).toBe(20);

  // Each project has a key of its own: two calls each.
  const own = planOf((id) => ({ name: `file ${id}.key`, requestsPerSecond: id === 7 ? 0.01 : 0.02 }));
  expect(own.exports[0]).toMatchObject({ seconds: 200, slowestKey: { key: "file 7.key", calls: 2 } });

  // Several exports wait for one key together, and what helps is the key's rate alone.
  const hourly = exportJob({ projects: 100, schedule: "0 * * * *" });
  const two = planOf((id) => (id < 50 ? { name: "env A", requestsPerSecond: 0.02 } : undefined), [hourly, hourly]);
  expect(two).toMatchObject({ callsPerDay: 9_600, secondsPerDay: 240_000, slowestKeyPerDay: { calls: 4_800 } });
  expect(two.exports[0]?.fit).toEqual({ ofKeys: { keys: ["env A"], requestsPerSecond: 0.1 } });
});

test("a key that may make few calls at once says how quick its answers must be", () => {
  const job = exportJob({ projects: 100 });
  const limitOf = ({ id }: { id: string }) => (id === "p0" ? undefined : { name: "env A", maxConcurrent: 2 });
  const { tightestCap, exports } = planNights([job], { requestsPerSecond: 10, limitOf }, NOW);
  expect(exports[0]?.seconds).toBe(20);
  // 198 calls in 20 s, two at once.
  expect(tightestCap).toEqual({ key: "env A", maxConcurrent: 2, answerSeconds: 40 / 198 });
});
