// What the parts of a worker share, and what is checked before it starts.

import { setTimeout as sleep } from "node:timers/promises";
import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { isTransient } from "../db/connection/errors.ts";
import { requireCurrentSchema } from "../db/connection/migrate.ts";
import type { WorkerIdentity } from "../db/jobs/jobs.ts";
import type { Queue } from "../db/jobs/queue.ts";
import type { ExportContext } from "../jobs/context.ts";
import { openKeyRing } from "../jobs/key-ring.ts";
import { unusableDatabaseError } from "../open-database.ts";
import type { ProcessMetrics } from "../show/prometheus.ts";
import type { Liveness } from "./liveness.ts";
import { requireSecrets } from "./monitor-secrets.ts";
import type { Reloader } from "./reload.ts";

/** Here `app.signal` is not the stop signal: it aborts the claimed jobs that still run when `drainSeconds` are nearly over. */
export type WorkerContext = ExportContext & { readonly queue: Queue };

/** What a worker is started with, and keeps when its configuration changes. */
export type WorkerDeps = {
  readonly worker: WorkerIdentity;
  readonly liveness: Liveness;
  readonly metrics: ProcessMetrics;
  readonly reloader: Pick<Reloader, "current" | "refusal" | "request">;
  /** Called for each configuration that is taken up, once the database is reached, before the first tick. */
  readonly onReady: (config: Config) => Promise<void>;
};

const RETRY_MS = 1_000;

/** Retries `open` while the database can't be reached or is busy. Any other error, such as denied access, is thrown. */
export async function retryUntilReached<T>(app: App, liveness: Liveness, open: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      const opened = await open();
      liveness.reportDatabase();
      return opened;
    } catch (error) {
      app.signal.throwIfAborted();
      if (!(error instanceof Error) || !isTransient(error)) throw error;
      liveness.reportDatabase(unusableDatabaseError(app, error));
      liveness.heartbeat();
      await sleep(RETRY_MS, undefined, { signal: app.signal });
    }
  }
}

/** Throws if a worker could not start with this configuration. Writes nothing. */
export async function requireStartable(app: App, config: Config, db: Database): Promise<void> {
  await requireCurrentSchema(db);
  // Unlike openKeyRing, checks the master key even if no rotation has a project yet.
  await requireSecrets(app, config);
  await openKeyRing(app, config, db);
}
