import { pino } from "pino";
import { expect, test } from "vitest";
import { isDatabaseFailure } from "../../src/db/connection/errors.ts";
import { AppError } from "../../src/errors.ts";
import {
  type ExportDeps,
  type ExportRun,
  exportUsage,
  type FetchedAnswer,
  type StoredAnswer,
} from "../../src/usage/export.ts";
import type { UsageRequest } from "../../src/usage/plan.ts";
import { PROJECT, RUN_DAY, sampleRequest, windowless } from "./sample-request.ts";

const NEVER = new AbortController().signal;
const LISTEN = sampleRequest("endpoint");
const TOTAL = sampleRequest("none");
const GOOD: FetchedAnswer = { slices: [] };

const BOTH_REPLACED: StoredAnswer = {
  slices: [
    { day: "2026-03-16", decision: "replace" },
    { day: "2026-03-17", decision: "unchanged" },
  ],
  rowsChanged: 3,
};

type Failed = {
  readonly grouping: string;
  readonly fetchNo: number;
  readonly days: readonly string[];
  readonly reason: string;
};

/** Deps whose calls all succeed, unless `part` replaces them, with the failures and log lines that they have recorded. */
function testDeps(part: Partial<ExportDeps> = {}) {
  const failed: Failed[] = [];
  const lines: string[] = [];
  let fetches = 0;
  const deps: ExportDeps = {
    nextFetchNo: async () => ++fetches,
    fetch: async () => GOOD,
    store: async () => BOTH_REPLACED,
    fail: async ({ series }, fetchNo, days, { reason }) => {
      failed.push({ grouping: series.grouping, fetchNo, days, reason });
    },
    isDatabaseFailure,
    log: pino({}, { write: (line) => lines.push(line) }),
    ...part,
  };
  return { deps, failed, lines };
}

const run = (...requests: UsageRequest[]): ExportRun => ({ requests, runDay: RUN_DAY, concurrency: 2 });
const oneByOne = (...requests: UsageRequest[]): ExportRun => ({ ...run(...requests), concurrency: 1 });

const failing = (reason: Error): Partial<ExportDeps> => ({
  fetch: async ({ series }) => {
    if (series.grouping === "endpoint") throw reason;
    return GOOD;
  },
});

test("the result counts the stored slices", async () => {
  const { deps, failed } = testDeps();
  expect(await exportUsage(run(TOTAL, LISTEN), deps, NEVER)).toEqual({
    requests: 2,
    planned: 4,
    complete: 4,
    suspect: 0,
    failed: 0,
    undated: 0,
    stale: 0,
    rowsChanged: 6,
    failures: [],
    doubts: [],
  });
  expect(failed).toEqual([]);
});

test("a request that fails is recorded on its days and counted, and the others are stored", async () => {
  const { deps, failed, lines } = testDeps(failing(new AppError("unavailable", "no answer in 30 s")));
  const result = await exportUsage(run(LISTEN, TOTAL, sampleRequest("model")), deps, NEVER);

  expect(result).toMatchObject({ requests: 3, planned: 6, complete: 4, failed: 2, rowsChanged: 6 });
  expect(result.failures).toEqual([{ request: LISTEN, reason: "no answer in 30 s", code: "unavailable" }]);
  expect(failed).toEqual([
    { grouping: "endpoint", fetchNo: 1, days: ["2026-03-16", "2026-03-17"], reason: "no answer in 30 s" },
  ]);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    {
      msg: "usage request failed",
      code: "unavailable",
      project: PROJECT.name,
      grouping: "endpoint",
      start: "2026-03-16",
    },
  ]);
});

test("a failure without a window is recorded under the day of the run", async () => {
  const { deps, failed } = testDeps(failing(new AppError("unavailable", "down")));
  await exportUsage(run(windowless("endpoint")), deps, NEVER);
  expect(failed.map(({ days }) => days)).toEqual([[RUN_DAY]]);
});

test.each(["22003", "22P05", "21000", "23514"])(
  "data that Postgres refuses (%s) fails only its own request",
  async (code) => {
    const { deps } = testDeps({
      store: async ({ series }) => {
        if (series.grouping === "endpoint") throw Object.assign(new Error("out of range"), { code });
        return BOTH_REPLACED;
      },
    });
    expect(await exportUsage(run(LISTEN, TOTAL), deps, NEVER)).toMatchObject({ complete: 2, failed: 2 });
  },
);

test.each<[string, Error]>([
  ["a lost database", Object.assign(new Error("Connection terminated unexpectedly"), { code: "08006" })],
  ["an error about the product's database", new AppError("database", "the schema is not the expected one")],
  ["a table that is missing", Object.assign(new Error('relation "slice" does not exist'), { code: "42P01" })],
])("%s ends the run", async (_, error) => {
  const { deps, failed } = testDeps({ store: () => Promise.reject(error) });
  await expect(exportUsage(run(TOTAL, LISTEN), deps, NEVER)).rejects.toBe(error);
  expect(failed).toEqual([]);
});

test.each<[string, Partial<ExportDeps>]>([
  ["the answer is read", failing(new TypeError("x is not a function"))],
  [
    "the answer is stored",
    {
      store: async ({ series }) => {
        if (series.grouping === "endpoint") throw new TypeError("x is not a function");
        return BOTH_REPLACED;
      },
    },
  ],
])("a mistake in this program while %s fails its request alone, and the log has the stack", async (_, part) => {
  const { deps, failed, lines } = testDeps(part);
  const result = await exportUsage(run(LISTEN, TOTAL, sampleRequest("model")), deps, NEVER);
  expect(result).toMatchObject({ requests: 3, complete: 4, failed: 2, failures: [{ code: "internal" }] });
  expect(failed).toMatchObject([{ grouping: "endpoint", reason: "x is not a function" }]);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { msg: "usage request failed", code: "internal", stack: expect.stringContaining("export.test.ts") },
  ]);
});

test("an answer is stored with the fetch number that was taken when its last attempt had its permit", async () => {
  const stored: number[] = [];
  const { deps } = testDeps({
    fetch: async (_request, _runDay, _signal, onPermit) => {
      await onPermit();
      await onPermit();
      return GOOD;
    },
    store: async (_request, { fetchNo }) => {
      stored.push(fetchNo);
      return BOTH_REPLACED;
    },
  });
  await exportUsage(oneByOne(TOTAL, LISTEN), deps, NEVER);
  expect(stored).toEqual([2, 4]);
});

test("a stop is not a failure: it ends the run, and nothing is recorded as failed", async () => {
  const stop = new AbortController();
  const reason = new AppError("stopped", "received SIGTERM");
  let calls = 0;
  const { deps, failed, lines } = testDeps({
    fetch: async () => {
      calls++;
      stop.abort(reason);
      throw new Error("aborted by the client");
    },
  });
  await expect(exportUsage(oneByOne(TOTAL, LISTEN), deps, stop.signal)).rejects.toBe(reason);
  expect({ calls, failed, lines }).toEqual({ calls: 1, failed: [], lines: [] });
});

test("after stopStarting the requests in flight are completed, and no other is started", async () => {
  const stop = new AbortController();
  let calls = 0;
  const { deps } = testDeps({
    fetch: async () => {
      calls++;
      stop.abort();
      await new Promise((resolve) => setImmediate(resolve));
      return GOOD;
    },
  });
  const result = await exportUsage({ ...oneByOne(TOTAL, LISTEN, TOTAL), stopStarting: stop.signal }, deps, NEVER);
  expect(calls).toBe(1);
  expect(result).toMatchObject({ requests: 1, complete: 2, failed: 0 });
});

test("a run that ends early has no request in flight when it returns", async () => {
  let open = 0;
  const slow = Promise.withResolvers<unknown>();
  const { deps } = testDeps({
    fetch: async ({ series }) => {
      if (series.grouping === "endpoint") throw new AppError("database", "gone");
      open++;
      slow.resolve(undefined);
      await new Promise((resolve) => setImmediate(resolve));
      open--;
      return GOOD;
    },
  });
  await expect(exportUsage(run(TOTAL, LISTEN), deps, NEVER)).rejects.toThrow("gone");
  await slow.promise;
  expect(open).toBe(0);
});

test("a request is in hand until its answer is stored", async () => {
  let unstored = 0;
  let most = 0;
  const { deps } = testDeps({
    fetch: async () => {
      most = Math.max(most, ++unstored);
      return GOOD;
    },
    store: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      unstored--;
      return BOTH_REPLACED;
    },
  });
  const requests = Array.from({ length: 10 }, () => TOTAL);
  await exportUsage(run(...requests), deps, NEVER);
  expect(most).toBe(2);
});
