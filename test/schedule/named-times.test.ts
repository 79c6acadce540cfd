// Compares the occurrences of schedules with those at which node-cron, which wakes the worker, would fire, in zones whose clocks are never set.

import { createTask } from "node-cron";
import { expect, test } from "vitest";
import { nextOccurrences } from "../../src/schedule/cron.ts";

const RUNS = 12;
const ZONES = ["UTC", "Asia/Kolkata", "America/Phoenix", "+09:30"];

test.each([
  ["15 2 * * *", "5,35 1,13 * * *", "0 9-17 * * *", "*/7 */5 * * *", "10-50/20 3 * * *", "59 23 * * *"],
  ["0 * * * *", "*/15 * * * *", "* * * * *", "7 0-23 * * *", "40,10,10 6 * * *"],
  ["0 4 1 * *", "0 4 31 * *", "0 4 29 2 *", "0 4 1-7,15 * *", "0 4 */10 * *", "0 4 ? * *"],
  ["0 4 * 1,7 *", "0 4 * JAN-MAR *", "0 4 1 */3 *"],
  ["0 4 * * 1-5", "0 4 * * 0", "0 4 * * 7", "0 4 * * MON,fri"],
  ["0 4 13 * 5", "0 4 29 2 1", "0 4 1-7 * MON"],
  ["0 4 L * *", "0 4 LW * *", "0 4 15W * *", "0 4 1W * *", "0 4 1,L * *", "0 4 L 2 *"],
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
