// The command `start`: checks the configuration, opens the database and runs the worker until a signal stops it.

import { setTimeout as sleep } from "node:timers/promises";
import { type App, databaseUrlOf, openDatabase, readConfig } from "../app.ts";
import { AppError } from "../errors.ts";
import { requireSecrets } from "../jobs/monitor-secrets.ts";
import { openLiveness } from "../worker/liveness.ts";
import { openMonitoring } from "../worker/monitoring.ts";
import { runWorker } from "../worker/worker.ts";
import { listJobs, renderJob } from "./jobs.ts";

/** Closing waits at most this long for a database that does not answer. */
const CLOSE_MS_MAX = 300;

type StartOptions = { /** Works on the embedded database. */ readonly embedded?: boolean };

/** Runs until a signal stops it, which is no failure. */
export async function runStart(app: App, { embedded = false }: StartOptions): Promise<number> {
  const config = await readConfig(app);
  requireIntendedDatabase(app, embedded);
  const { receivers, access } = await requireSecrets(app, config);
  const liveness = openLiveness(app.log, () => performance.now());
  // After the stop signal, statements may run until the drain ends: the claimed jobs still use the database.
  const db = await openDatabase(app, "DATABASE_URL", config.worker.drainSeconds * 1000, liveness.reportLostConnection);
  try {
    await using monitoring = await openMonitoring(app, config, { db, liveness, access });
    // Without a terminal nobody reads this: the log says the same.
    const writeToTerminal = (text: string) => (app.terminal ? app.write(text) : undefined);
    writeToTerminal(`dashboard, health and metrics: ${monitoring.url}/\n`);
    const onReady = async () => {
      writeToTerminal((await listJobs(db, config)).map(renderJob).join(""));
      writeToTerminal("one line for each run follows; Ctrl-C stops the worker when its claimed jobs are finished\n");
    };
    // The actor includes the process id, so that the process can be looked up while it lives.
    const actor = `${app.actor} worker, pid ${process.pid}`;
    const deps = { liveness, metrics: monitoring.metrics, receivers, onReady };
    await runWorker({ ...app, actor }, config, db, deps);
  } catch (error) {
    if (!app.signal.aborted) throw error;
  } finally {
    await Promise.race([db.destroy(), sleep(CLOSE_MS_MAX, undefined, { ref: false })]);
  }
  return 0;
}

/** A worker runs for months: it must not write to the embedded database only because DATABASE_URL was forgotten. */
function requireIntendedDatabase({ env }: App, embedded: boolean): void {
  const url = databaseUrlOf(env);
  if (url === undefined && !embedded) {
    throw new AppError(
      "config",
      "DATABASE_URL is not set: expected postgres://user:password@host:port/database, or --embedded to work on the embedded database in ./data",
    );
  }
  if (url !== undefined && embedded) {
    throw new AppError(
      "config",
      "--embedded: DATABASE_URL is set too, which names another database: leave out one of the two",
    );
  }
}
