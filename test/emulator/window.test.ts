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
