// A worker logs it if the database's clock goes forward compared with its own.

import { pino } from "pino";
import { expect, test } from "vitest";
import { openClockWatch } from "../../src/jobs/clocks.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();

test.each([
  { passedMs: -86_400_000, logged: 1 },
  { passedMs: -40_000, logged: 1 },
  { passedMs: -20_000, logged: 0 },
  { passedMs: 0, logged: 0 },
  // The database's clock went back compared with the worker's: recoverFromClockSetBack finds that in stored times, and logs it.
  { passedMs: 86_400_000, logged: 0 },
])(
  "if the worker's clock moves by $passedMs ms between two calls, $logged lines are logged",
  async ({ passedMs, logged }) => {
    const lines: string[] = [];
    let nowMs = 1_000_000_000;
    const log = pino({}, { write: (line) => lines.push(line) });
    const watchClock = openClockWatch({ log }, db, () => nowMs);
    await watchClock();
    nowMs += passedMs;
    await watchClock();
    await watchClock();
    expect(lines).toHaveLength(logged);
    for (const line of lines) expect(JSON.parse(line).seconds).toBe(Math.round(-passedMs / 1000));
  },
);
