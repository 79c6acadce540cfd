// The context of a worker that neither listens on a port nor claims jobs.

import { openApp } from "../../src/app.ts";
import { loadConfig } from "../../src/config/config.ts";
import { openDatabase } from "../../src/database.ts";
import { openMetrics } from "../../src/show/prometheus.ts";
import { openWorkerContext, type WorkerContext } from "../../src/worker/context.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The database must have the schema of this version. */
export async function withWorkerContext<T>(
  env: Environment,
  configPath: string,
  work: (context: WorkerContext) => Promise<T>,
): Promise<T> {
  const app = await openApp(env, configPath, new AbortController().signal);
  const config = await loadConfig(app.configPath);
  const db = await openDatabase(app);
  const metrics = openMetrics({
    build: { version: "bench", schema: "bench" },
    config: () => ({ hash: "bench", rotations: [] }),
    ready: () => true,
  });
  const context = await openWorkerContext(app, config, db, metrics);
  try {
    return await work(context);
  } finally {
    await context.queue.stop();
    await context.service.close();
    await db.destroy();
  }
}
