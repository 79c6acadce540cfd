// Compares the occurrences of schedules with those that the cron library finds, in zones whose clocks are never set.

import { createTask, getTasks, parse } from "node-cron";
import { expect, test } from "vitest";
import { nextOccurrences, parseCron } from "../../src/schedule/cron.ts";

const RUNS = 12;
const ZONES = ["UTC", "Asia/Kolkata", "America/Phoenix", "+09:30"];

test.each([
  ["15 2 * * *", "5,35 1,13 * * *", "0 9-17 * * *", "0 22-2 * * *", "*/7 */5 * * *", "10-50/20 3 * * *", "59 23 * * *"],
  ["0 * * * *", "*/15 * * * *", "* * * * *", "7 0-23 * * *", "40,10,10 6 * * *"],
  ["0 4 1 * *", "0 4 31 * *", "0 4 29 2 *", "0 4 1-7,15 * *", "0 4 */10 * *", "0 4 ? * *"],
  ["0 4 * 1,7 *", "0 4 * JAN-MAR *", "0 4 * september *", "0 4 1 */3 *", "0 4 * 11-2 *"],
  ["0 4 * * 1-5", "0 4 * * 0", "0 4 * * 7", "0 4 * * MON,fri", "0 4 * * sunday", "0 4 * * 5-1"],
  ["0 4 13 * 5", "0 4 29 2 1", "0 4 1-7 * MON"],
  ["0 4 L * *", "0 4 L-3 * *", "0 4 LW * *", "0 4 15W * *", "0 4 1W * *", "0 4 1,L * *", "0 4 L 2 *"],
  ["0 4 * * 5L", "0 4 * * 1#2", "0 4 * * 2#5", "0 4 * * 0L,3#1", "0 4 L * 1-5", "0 4 29W 2 5", "0 4 * 6 1#1"],
  ["30 15 2 * * *", "*/20 59 23 * * *", "0,59 0 0 1 1 *", "5 0 12 L * *", "*/10 * * * * *", "0 0 4 * * 1#1"],
  ["@yearly", "@monthly", "@weekly", "@daily", "@hourly"],
])("%s, %s, %s and similar expressions occur when the library says", (...expressions) => {
  for (const schedule of expressions) {
    for (const timezone of ZONES) {
      const task = createTask(schedule, () => {}, { timezone });
      void task.destroy();
      // The library starts from its own current time, which is between the two used here.
      const before = nextOccurrences({ schedule, timezone }, new Date(), RUNS);
      const runs = task.getNextRuns(RUNS);
      const after = nextOccurrences({ schedule, timezone }, new Date(), RUNS);
      expect([before, after], `${schedule} in ${timezone}`).toContainEqual(runs);
    }
  }
});

test("lastUntil finds the same times as firstFrom", () => {
  const { firstFrom, lastUntil } = parseCron("*/20 7,19 8-14 * 2,4");
  let localMs = firstFrom(Date.UTC(2026, 0, 1));
  for (let i = 0; i < 500; i++) {
    const next = firstFrom((localMs ?? 0) + 1);
    expect(lastUntil((next ?? 0) - 1)).toBe(localMs);
    localMs = next;
  }
});

test("only an expression that names all 24 hours names every hour", () => {
  const everyHour = ["0 * * * *", "5 */1 * * *", "0 0-23 * * 1", "0 23,0-22 * * *"];
  const notEveryHour = ["0 */2 * * *", "0 1-23 * * *", "0 0-22,0 * * *", "@daily"];
  expect(everyHour.filter((expression) => !parseCron(expression).everyHour)).toEqual([]);
  expect(notEveryHour.filter((expression) => parseCron(expression).everyHour)).toEqual([]);
});

test("an expression leaves no task behind in the library", () => {
  expect(parse("0 4 L * *").dayOfMonth).toEqual(["L"]);
  parseCron("0 4 L * *");
  expect(getTasks().size).toBe(0);
});
