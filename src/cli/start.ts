// The command `start`: checks the configuration, opens the database and runs the worker until it is told to stop.

import { setTimeout as sleep } from "node:timers/promises";
import { type App, databaseUrlOf, openDatabase, readConfig } from "../app.ts";
import { AppError } from "../errors.ts";
import { requireStaticKeys } from "../jobs/api-keys.ts";
import { requireAccess, requireReceivers } from "../jobs/monitor-secrets.ts";
import { readMasterKeys } from "../keys/seal.ts";
import { openLiveness } from "../worker/liveness.ts";
import { openMonitoring } from "../worker/monitoring.ts";
import { runWorker } from "../worker/worker.ts";
import { listJobs, renderJob } from "./jobs.ts";

/** A database that does not answer does not take leave either. */
const CLOSE_MS_MAX = 300;

type StartOptions = { /** Works on the embedded database. */ readonly embedded?: boolean };

/** Runs until it is told to stop, which is no failure. */
export async function runStart(app: App, { embedded = false }: StartOptions): Promise<number> {
  const config = await readConfig(app);
  requireIntendedDatabase(app, embedded);
  await requireStaticKeys(app, config);
  const receivers = await requireReceivers(app, config);
  const access = await requireAccess(app, config);
  if (config.rotations.length > 0) readMasterKeys(app.env);
  const liveness = openLiveness(app.log, () => performance.now());
  // What is in hand when it is told to stop has all the time there is to stop in.
  const db = await openDatabase(app, "DATABASE_URL", config.worker.drainSeconds * 1000, liveness.reportLostConnection);
  try {
    await using monitoring = await openMonitoring(app, config, { db, liveness, access });
    // Without a terminal the log already says all of this.
    const say = (text: string) => (app.terminal ? app.write(text) : undefined);
    say(`dashboard, health and metrics: ${monitoring.url}/\n`);
    const onReady = async () => {
      say((await listJobs(db, config)).map(renderJob).join(""));
      say("a line a run follows; Ctrl-C stops the worker when it has finished what it has in hand\n");
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

/**
 * A worker runs for months. Without DATABASE_URL it would silently write to the embedded database beside the real one, so
 * `--embedded` has to ask for that.
 */
function requireIntendedDatabase({ env }: App, embedded: boolean): void {
  const url = databaseUrlOf(env);
  if (url === undefined && !embedded) {
    throw new AppError(
      "config",
      "DATABASE_URL is not set: expected postgres://user:password@host:port/database, or --embedded to work on the embedded database in ./data",
    );
  }
  if (url !== undefined && embedded) {
    throw new AppError("config", "--embedded: DATABASE_URL is set, so one of the two is not meant: leave one out");
  }
}
