// A worker tells of a database's clock that does not go as its own does.

import { pino } from "pino";
import { expect, test } from "vitest";
import { openClockWatch } from "../../src/jobs/clocks.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();

test.each([
  { passedMs: -86_400_000, told: 1 },
  { passedMs: -40_000, told: 1 },
  { passedMs: -20_000, told: 0 },
  { passedMs: 0, told: 0 },
  // It went back, which is told where what it stored says so.
  { passedMs: 86_400_000, told: 0 },
])("if this clock went $passedMs ms meanwhile, $told times of the database are logged", async ({ passedMs, told }) => {
  const lines: string[] = [];
  let nowMs = 1_000_000_000;
  const log = pino({}, { write: (line) => lines.push(line) });
  const look = openClockWatch({ log }, db, () => nowMs);
  await look();
  nowMs += passedMs;
  await look();
  await look();
  expect(lines).toHaveLength(told);
  for (const line of lines) expect(JSON.parse(line).seconds).toBe(Math.round(-passedMs / 1000));
});
