// The world of a worker that neither listens nor takes work.

import { openApp, openDatabase, readConfig } from "../../src/app.ts";
import { openMetrics } from "../../src/monitor/metrics.ts";
import { openWorld } from "../../src/worker/open-world.ts";
import type { WorkerWorld } from "../../src/worker/world.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The database has the schema of this version. */
export async function withWorld<T>(
  env: Environment,
  configPath: string,
  work: (world: WorkerWorld) => Promise<T>,
): Promise<T> {
  const app = await openApp(env, configPath, new AbortController().signal);
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
  try {
    return await work(world);
  } finally {
    await world.queue.stop();
    await world.service.close();
    await db.destroy();
  }
}
