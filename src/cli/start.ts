// The command `start`: checks the configuration, opens the database and runs the worker until a signal stops it.

import { setTimeout as sleep } from "node:timers/promises";
import { isatty } from "node:tty";
import type { App } from "../app.ts";
import { type Config, loadConfig } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { requireCurrentSchema } from "../db/connection/migrate.ts";
import { heartbeatWorker } from "../db/jobs/jobs.ts";
import { AppError } from "../errors.ts";
import { withKnownProjects } from "../jobs/discovery.ts";
import { databaseUrlOf, openDatabase } from "../open-database.ts";
import { type Liveness, openLiveness } from "../worker/liveness.ts";
import { requireSecrets } from "../worker/monitor-secrets.ts";
import { openMonitoring } from "../worker/monitoring.ts";
import { type Loaded, loadForWorker, openReloader, type Reloader } from "../worker/reload.ts";
import { newWorker, runWorker } from "../worker/worker.ts";
import { requireStartable, retryUntilReached } from "../worker/worker-context.ts";
import { listJobs, renderJob } from "./jobs.ts";

/** How long closing waits for a database that does not answer. */
const CLOSE_MS_MAX = 300;

/** Runs until a signal stops it. Being stopped is no failure. */
export async function runStart(app: App, { embedded = false }: { readonly embedded?: boolean }): Promise<number> {
  const config = await loadConfig(app.configPath);
  requireIntendedDatabase(app, embedded);
  const first = { config, ...(await requireSecrets(app, config)) };
  const liveness = openLiveness(app.log, () => performance.now());
  // After the stop signal, claimed jobs may use the database for `drainSeconds` more.
  const db = await openDatabase(app, config.worker.drainSeconds * 1000);
  try {
    await work(app, first, db, liveness);
  } catch (error) {
    if (!app.signal.aborted) throw error;
  } finally {
    await Promise.race([db.destroy(), sleep(CLOSE_MS_MAX, undefined, { ref: false })]);
  }
  return 0;
}

/** The monitor also answers while the worker still waits for its database. */
async function work(app: App, first: Loaded, db: Database, liveness: Liveness): Promise<void> {
  const worker = await newWorker();
  let reloader: Reloader | undefined;
  await using monitoring = await openMonitoring(app, () => reloader?.current() ?? first, { db, liveness });
  using _ = onHangup(app, () => reloader?.request());
  // On a terminal the log has only warnings, so these lines are written directly. Elsewhere the log says the same.
  const writeToTerminal = (text: string) => (app.hasTerminal ? app.write(text) : undefined);
  writeToTerminal(`dashboard, health and metrics: ${monitoring.url}/\n`);

  const withProjects = async (loaded: Loaded) => ({ ...loaded, config: await withKnownProjects(loaded.config, db) });
  const firstWithProjects = await retryUntilReached(app, liveness, async () => {
    await requireCurrentSchema(db);
    return withProjects(first);
  });
  await using opened = openReloader(firstWithProjects, {
    log: app.log,
    load: async () => withProjects(await loadForWorker(app)),
    requireStartable: (config) => requireStartable(app, config, db),
    // `status` shows the refusal. If the database is away, the next tick stores it.
    onRefusalChange: (refusal) => void heartbeatWorker(db, worker, refusal).catch(() => {}),
  });
  reloader = opened;
  // With the pid, the process that did something can be looked up while it lives.
  const workerApp = { ...app, actor: `${app.actor} worker, pid ${process.pid}` };
  const deps = {
    worker,
    liveness,
    metrics: monitoring.metrics,
    reloader: opened,
    async onReady(config: Config) {
      writeToTerminal((await listJobs(db, config)).map(renderJob).join(""));
      writeToTerminal("one line for each run follows; Ctrl-C stops the worker after its requests in flight\n");
    },
  };
  // `runWorker` ends when the configuration changes. The next call gets the new one from the reloader.
  while (!app.signal.aborted) await runWorker(workerApp, db, deps);
}

/** On SIGHUP the worker reads its configuration again. If the signal comes because its terminal was closed, the worker stops instead. */
function onHangup(app: App, reload: () => void): Disposable {
  const isTerminalClosed = () => app.hasTerminal && !isatty(process.stderr.fd);
  const stop = () => process.kill(process.pid, "SIGTERM");
  const handle = () => (isTerminalClosed() ? stop() : reload());
  process.on("SIGHUP", handle);
  // The program ignores the signal while it starts, so the terminal may have closed unnoticed.
  if (isTerminalClosed()) stop();
  return { [Symbol.dispose]: () => process.removeListener("SIGHUP", handle) };
}

/** A worker must not write to the embedded database for months only because DATABASE_URL was forgotten. */
function requireIntendedDatabase({ env }: App, embedded: boolean): void {
  const isEmbedded = databaseUrlOf(env) === undefined;
  if (isEmbedded === embedded) return;
  const message = embedded
    ? "--embedded: DATABASE_URL is set too, which names another database: leave out one of the two"
    : "DATABASE_URL is not set: expected postgres://user:password@host:port/database, or --embedded to work on the embedded database in ./data";
  throw new AppError("config", message);
}
