// A program: does what a worker does in an hour in which nothing is due, without the pauses, and prints its time and memory. Needs
// DATABASE_URL, the path of the configuration as its argument, and --expose-gc.

import type { WorkerContext } from "../../src/worker/context.ts";
import { tick } from "../../src/worker/tick.ts";
import { withWorkerContext } from "./worker-context.ts";

const MINUTES = 60;
const MINUTES_SHOWN = 10;

await withWorkerContext(process.env, process.argv[2] ?? "", idle);

async function idle(context: WorkerContext): Promise<void> {
  let tickMs = 0;
  for (let minute = 1; minute <= MINUTES; minute++) {
    tickMs += await timed(async () => {
      const { started } = await tick(context);
      if (started) throw new Error("something was due");
    });
    if (minute % MINUTES_SHOWN === 0) {
      globalThis.gc?.();
      const { heapUsed, rss } = process.memoryUsage();
      const figures = { minute, tickMs: tickMs / MINUTES_SHOWN, heapUsed, rss };
      process.stdout.write(`${JSON.stringify(figures)}\n`);
      tickMs = 0;
    }
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}
