// The opened resources that the parts of a worker share, and how they are opened once the database is reached.

import { setTimeout as sleep } from "node:timers/promises";
import { type App, databaseUnreachable } from "../app.ts";
import { type Config, jobsOf } from "../config/config.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { isTransient } from "../db/connection/errors.ts";
import { requireCurrentSchema } from "../db/connection/migrate.ts";
import { registerJobs } from "../db/jobs/jobs.ts";
import { openQueue, type Queue } from "../db/jobs/queue.ts";
import { renewNextDue } from "../db/usage/series.ts";
import type { ProcessMetrics } from "../health/metrics.ts";
import { openMasterKeys } from "../jobs/api-keys.ts";
import type { ExportContext } from "../jobs/export-context.ts";
import { openExportContext } from "../jobs/open-context.ts";
import type { MasterKeys } from "../keys/seal.ts";
import { nextDueOf } from "../schedule/due.ts";
import { configuredSeries } from "../usage/plan.ts";
import type { Liveness } from "./liveness.ts";

/** The signal of its app ends work in hand; that the worker is to stop is known before. */
export type WorkerContext = ExportContext & {
  readonly queue: Queue;
  /** Undefined where there is no rotation. */
  readonly masterKeys: MasterKeys | undefined;
  readonly metrics: ProcessMetrics;
};

// Opens what a worker needs of its database, once that is there.

const WAIT_MS = 1_000;
/** Who works all day can wait for as long as the service asks, within reason. */
const WAIT_MS_MAX = 60 * 60_000;

/** A database that is not there yet, or is busy, is waited for until the signal; one that refuses, or has another schema, is not. */
export async function retryUntilReached<T>(
  app: App,
  liveness: Liveness,
  stop: AbortSignal,
  open: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      const opened = await open();
      liveness.reportDatabase();
      return opened;
    } catch (error) {
      stop.throwIfAborted();
      if (!(error instanceof Error) || !isTransient(error)) throw error;
      liveness.reportDatabase(databaseUnreachable(app, error));
      liveness.heartbeat();
      await sleep(WAIT_MS, undefined, { signal: stop });
    }
  }
}

/** `app` is the one whose signal ends work in hand. */
export async function openWorkerContext(
  app: App,
  config: Config,
  db: Database,
  metrics: ProcessMetrics,
): Promise<WorkerContext> {
  await requireCurrentSchema(db);
  const masterKeys = config.rotations.length > 0 ? await openMasterKeys(app, db) : undefined;
  const context = await openExportContext(app, config, db, {
    onAttempt: metrics.attemptEnded,
    onKeyFallback: metrics.keyFallback,
    waitMsMax: WAIT_MS_MAX,
  });
  try {
    const series = configuredSeries(config.exports).map((one) => one.series);
    await renewNextDue(db, nextDueOf(series, context.ids, config.exports, await databaseNow(db)));
    await registerJobs(db, jobsOf(config));
    return { ...context, masterKeys, queue: await openQueue(db, app.log), metrics };
  } catch (error) {
    await context[Symbol.asyncDispose]();
    throw error;
  }
}
