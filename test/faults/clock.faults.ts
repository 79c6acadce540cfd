// The database's clock is set while a worker runs: back by a day, or forward and back again. The worker does not wait for times of
// the earlier clock: soon every run is over and every due slice is complete. (The numbers are checked in
// test/cli/recovery/clock-steps.test.ts. Here the days of usage move while requests wait, so the numbers are not checked.)

import { expect } from "vitest";
import { programTest } from "../cli/program-context.ts";
import { breakdowns, coverage, farSchedule, runs, serveAndConfigure } from "../cli/workers.ts";
import { setClock } from "../support/clock-step.ts";
import { testDatabase } from "../support/database.ts";
import { countTests } from "./count-tests.ts";
import { reportHighest } from "./figures.ts";
import { TAKES_ALL } from "./scope.ts";

const PART = "clock steps";
/** The tick that notices the change, the tick after the run that was under way, and the wait before the queue's next attempt. */
const RECOVERY_MS_MAX = 150_000;

const STEPS: Readonly<Record<string, readonly number[]>> = { back: [-1], "forward and back": [1, -1] };
/** After how many of the run's twelve requests the clock is set. */
const POINTS = TAKES_ALL ? [1, 4, 9, 12] : [4];
/** In CI the worker is killed only where the clock goes back for good. */
const CASES = Object.keys(STEPS).flatMap((step) =>
  POINTS.flatMap((point) => (TAKES_ALL ? [true, false] : [step === "back"]).map((killed) => ({ step, point, killed }))),
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
    // Every third request fails, so that the queue tries some again later.
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
      // If requests are left, the worker sends one by the new time before the clock is set again.
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
