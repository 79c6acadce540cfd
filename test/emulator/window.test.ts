import { expect, test } from "vitest";
import { type EmulatorOptions, startEmulator } from "../support/emulator.ts";
import { breakdown, CONSOLE_KEY, NOON } from "./ask.ts";

const start = (options: Partial<EmulatorOptions> = {}) =>
  startEmulator({ consoleKeys: [CONSOLE_KEY], now: () => NOON, usage: () => [{ requests: 1 }], ...options });

test.each([
  ["start=2026-03-01&end=2026-03-02", "2026-03-01", "2026-03-02", 2],
  ["start=2026-03-02&end=2026-03-02", "2026-03-02", "2026-03-02", 1],
  ["start=2024-02-28&end=2024-03-01", "2024-02-28", "2024-03-01", 3],
  ["start=2026-03-02&end=2026-03-01", "2026-03-02", "2026-03-01", 0],
  ["start=2026-03-17&end=2026-03-20", "2026-03-17", "2026-03-20", 2],
  ["", "2026-02-16", "2026-03-17", 30],
  ["start=2026-03-15", "2026-03-15", "2026-03-17", 3],
  ["end=2026-01-31", "2026-01-02", "2026-01-31", 30],
])(
  "the query '%s' is answered for %s to %s, with rows for past days and today only",
  async (query, first, last, days) => {
    await using emulator = await start();
    const answer = await breakdown(emulator, query);
    expect(answer).toMatchObject({ start: first, end: last, resolution: { units: "day", amount: 1 } });
    expect(answer.results).toHaveLength(days);
  },
);

/** A day has as many requests as its number in the month, so that a sum shows which days it includes. */
const dayOfMonth: EmulatorOptions["usage"] = (_, day) => [{ requests: Number(day.slice(-2)) }];

/** Matches an answer (as JSON) that names any day. The quote keeps "endpoint" from matching. */
const A_DAY = /start|end"|2026|resolution/;

test("an undated service answers with one summary of yesterday, with no day in it", async () => {
  await using emulator = await start({ window: "undated", usage: dayOfMonth });
  const answer = await breakdown(emulator, "start=2026-03-01&end=2026-03-02&grouping=endpoint");
  expect(answer.results.map(({ requests }) => requests)).toEqual([17]);
  expect(JSON.stringify(answer)).not.toMatch(A_DAY);
});

test("a cumulative service answers with all usage up to now, whatever window is asked for, with no day in it", async () => {
  await using emulator = await start({ window: "cumulative", countsFrom: "2026-03-16", usage: dayOfMonth });
  const query = "start=2026-03-01&end=2026-03-02&grouping=endpoint";
  const requests = async () => (await breakdown(emulator, query)).results.map((row) => row.requests);
  expect(await requests()).toEqual([16 + 17 + 18]);
  emulator.now = () => new Date("2026-03-19T00:00:00Z");
  expect(await requests()).toEqual([16 + 17 + 18 + 19]);
  expect(JSON.stringify(await breakdown(emulator, query))).not.toMatch(A_DAY);
});

test.each([
  ["start=2026-03-01&end=2026-03-02", 1 + 2],
  ["start=2026-03-02&end=2026-03-02", 2],
  ["", 17],
])(
  "a service that honours the window '%s' without naming it answers with one summary of that window",
  async (query, requests) => {
    await using emulator = await start({ window: "unnamed", usage: dayOfMonth });
    const answer = await breakdown(emulator, query);
    expect(answer.results.map((row) => row.requests)).toEqual([requests]);
    expect(JSON.stringify(answer)).not.toMatch(A_DAY);
  },
);

test("a service that ignores the grouping returns every dimension with the value null", async () => {
  const usage = () => [
    { endpoint: "listen", requests: 1 },
    { endpoint: "speak", requests: 2 },
  ];
  await using emulator = await start({ grouping: "ignored", usage });
  const { results } = await breakdown(emulator, "start=2026-03-01&end=2026-03-01&grouping=endpoint");
  expect(results).toMatchObject([{ requests: 3, grouping: { endpoint: null, model: null } }]);
});
