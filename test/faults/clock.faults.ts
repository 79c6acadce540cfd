// Somebody sets the database's clock while a worker works: back by a day, or forward and back again. The worker says so, waits for no
// moment of the clock as it was, and soon every run is over and all that is due is complete. (Which numbers those are is for
// test/cli/recovery/clock-steps.test.ts: here days of usage move beside requests that wait for them.)

import { expect } from "vitest";
import { programTest } from "../cli/program-context.ts";
import { breakdowns, coverage, farSchedule, runs, serveAndConfigure } from "../cli/workers.ts";
import { setClock } from "../support/clock-step.ts";
import { testDatabase } from "../support/database.ts";
import { countTests } from "./count-tests.ts";
import { reportHighest } from "./figures.ts";
import { TAKES_ALL } from "./scope.ts";

const PART = "clock steps";
/** The tick that finds out, the tick after the run that was under way then, and what a try of the queue may have to wait. */
const RECOVERY_MS_MAX = 150_000;

const STEPS: Readonly<Record<string, readonly number[]>> = { back: [-1], "forward and back": [1, -1] };
/** After how many of the run's twelve requests. */
const POINTS = TAKES_ALL ? [1, 4, 9, 12] : [4];
const CASES = Object.keys(STEPS).flatMap((step) =>
  POINTS.flatMap((point) => [true, false].map((killed) => ({ step, point, killed }))),
);

const GROUPINGS = ["none", "endpoint", "tags"];

countTests(PART, "the clock is set");

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

for (const { step, point, killed } of CASES) {
  const what = `the clock goes ${step} after request ${point}${killed ? ", and the worker is killed then" : ""}`;
  test(what, { timeout: 2 * RECOVERY_MS_MAX }, async ({ context }) => {
    const filters = [{ name: "all" }, { name: "listen", dimensions: { endpoint: "listen" } }];
    const emulator = await serveAndConfigure(context, {
      service: { requestsPerSecond: 20, maxConcurrent: 2 },
      exports: [{ schedule: farSchedule(), groupings: GROUPINGS, filters, window: { days: 2 } }],
    });
    // Some of them are tried again later, by the queue.
    emulator.fault = () => (emulator.requests.length % 3 === 0 ? { kind: "answer", status: 503 } : undefined);
    const worker = context.start(["start"], {}, { timeoutMs: 2 * RECOVERY_MS_MAX });
    const asked = (count: number, timeout: number) =>
      expect.poll(() => breakdowns(emulator).length, { timeout, interval: 20 }).toBeGreaterThanOrEqual(count);
    await asked(point, 30_000);
    if (killed) {
      worker.kill("SIGKILL");
      await worker.ended;
    }
    const startedMs = performance.now();
    for (const days of STEPS[step] ?? []) {
      await setClock(db, days);
      // Where there is more to ask for it is asked for by the clock as it is now.
      if (!killed) await asked(breakdowns(emulator).length + 1, 3_000).catch(() => {});
    }
    if (killed) context.start(["start"], {}, { timeoutMs: 2 * RECOVERY_MS_MAX });
    const over = async () => {
      const { missing = 0, failed = 0 } = await coverage(db);
      const open = (await runs(db)).filter(({ status }) => ["running", "interrupted"].includes(status));
      return missing + failed + open.length === 0;
    };
    emulator.fault = undefined;
    await expect.poll(over, { timeout: RECOVERY_MS_MAX, interval: 500 }).toBe(true);
    reportHighest(`${PART}: all complete within`, Math.round((performance.now() - startedMs) / 1000), "s", what);
  });
}
