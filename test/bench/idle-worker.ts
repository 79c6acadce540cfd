// A program: what a worker does in an hour in which nothing is due, as fast as it can, and what that costs. Needs DATABASE_URL,
// the configuration as its argument, and --expose-gc.

import { openApp, openDatabase, readConfig } from "../../src/app.ts";
import { touchSharedRuns } from "../../src/db/shared-runs.ts";
import { openMetrics } from "../../src/monitor/metrics.ts";
import { openWorld } from "../../src/worker/open-world.ts";
import { tick } from "../../src/worker/tick.ts";

const MINUTES = 60;
const MINUTES_SHOWN = 10;

const app = await openApp(process.env, process.argv[2] ?? "", new AbortController().signal);
const config = await readConfig(app);
const db = await openDatabase(app);
const metrics = openMetrics({
  log: app.log,
  build: { version: "bench", schema: "bench" },
  configHash: "bench",
  rotations: [],
  ready: () => true,
  readFigures: async () => [],
});
const world = await openWorld(app, config, db, metrics);

let tickMs = 0;
let pollMs = 0;
for (let minute = 1; minute <= MINUTES; minute++) {
  tickMs += await timed(async () => {
    const { began } = await tick(world);
    if (began) throw new Error("something was due");
    await touchSharedRuns(db);
  });
  pollMs += await timed(async () => {
    for (let second = 1; second <= 60; second++) {
      await world.queue.take("usage_request", config.service.maxConcurrent);
      if (second % 2 === 0) await world.queue.take("rotation", 1);
      if (second % 5 === 0) await world.queue.take("usage_request_dead", 1);
    }
  });
  if (minute % MINUTES_SHOWN === 0) {
    globalThis.gc?.();
    const { heapUsed, rss } = process.memoryUsage();
    const figures = { minute, tickMs: tickMs / MINUTES_SHOWN, pollMs: pollMs / MINUTES_SHOWN, heapUsed, rss };
    process.stdout.write(`${JSON.stringify(figures)}\n`);
    tickMs = 0;
    pollMs = 0;
  }
}
await world.queue.stop();
await world.service.close();
await db.destroy();

async function timed(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}
