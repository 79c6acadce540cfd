import { expect, test } from "vitest";
import { type EmulatorOptions, startEmulator } from "../../src/emulator/server.ts";
import { ask, breakdown, CONSOLE_KEY, NOON } from "./ask.ts";

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
])("the window '%s' answers %s to %s, days to come left out", async (query, first, last, days) => {
  await using emulator = await start();
  const answer = await breakdown(emulator, query);
  expect(answer).toMatchObject({ start: first, end: last, resolution: { units: "day", amount: 1 } });
  expect(answer.results).toHaveLength(days);
});

test.each(["2026-02-30", "2026-3-1", "yesterday", "2026-03-01T00:00:00Z", ""])(
  "'%s' is not a day, and refused",
  async (day) => {
    await using emulator = await start();
    expect((await ask(emulator, `usage/breakdown?start=${day}`)).status).toBe(400);
  },
);

test("a service that ignores the window answers its own last 30 days", async () => {
  await using emulator = await start({ window: "ignored" });
  const answer = await breakdown(emulator, "start=2026-03-01&end=2026-03-02");
  expect(answer).toMatchObject({ start: "2026-02-16", end: "2026-03-17" });
  expect(answer.results).toHaveLength(30);
});

test("an undated service answers one summary of yesterday with no day in it", async () => {
  await using emulator = await start({ window: "undated", usage: (_, day) => [{ requests: Number(day.slice(-2)) }] });
  const answer = await breakdown(emulator, "start=2026-03-01&end=2026-03-02&grouping=endpoint");
  expect(answer.results.map(({ requests }) => requests)).toEqual([17]);
  expect(JSON.stringify(answer)).not.toMatch(/start|end"|2026|resolution/);
});

const dayOfMonth: EmulatorOptions["usage"] = (_, day) => [{ requests: Number(day.slice(-2)) }];

test("a cumulative service answers all usage up to now, whatever is asked, with no day in it", async () => {
  await using emulator = await start({ window: "cumulative", countsFrom: "2026-03-16", usage: dayOfMonth });
  const query = "start=2026-03-01&end=2026-03-02&grouping=endpoint";
  const requests = async () => (await breakdown(emulator, query)).results.map((row) => row.requests);
  expect(await requests()).toEqual([16 + 17 + 18]);
  emulator.now = () => new Date("2026-03-19T00:00:00Z");
  expect(await requests()).toEqual([16 + 17 + 18 + 19]);
  expect(JSON.stringify(await breakdown(emulator, query))).not.toMatch(/start|end"|2026|resolution/);
});

test.each([
  ["start=2026-03-01&end=2026-03-02", 1 + 2],
  ["start=2026-03-02&end=2026-03-02", 2],
  ["", 17],
])("a service that honours the window '%s' and does not name it answers one summary of it", async (query, requests) => {
  await using emulator = await start({ window: "unnamed", usage: dayOfMonth });
  const answer = await breakdown(emulator, query);
  expect(answer.results.map((row) => row.requests)).toEqual([requests]);
  expect(JSON.stringify(answer)).not.toMatch(/start|end"|2026|resolution/);
});

test("a service that ignores the grouping names every dimension, and no value of any", async () => {
  const usage = () => [
    { endpoint: "listen", requests: 1 },
    { endpoint: "speak", requests: 2 },
  ];
  await using emulator = await start({ grouping: "ignored", usage });
  const { results } = await breakdown(emulator, "start=2026-03-01&end=2026-03-01&grouping=endpoint");
  expect(results).toMatchObject([{ requests: 3, grouping: { endpoint: null, model: null } }]);
});
