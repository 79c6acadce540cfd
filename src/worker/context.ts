// The opened resources that the parts of a worker share, and how they are opened once the database is reached.

import { setTimeout as sleep } from "node:timers/promises";
import { type App, databaseUnreachable, openServiceFor, raiseSequencesOf, turnsOf } from "../app.ts";
import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { requireCurrentSchema } from "../db/connection/migrate.ts";
import { isTransient } from "../db/connection/transaction.ts";
import { registerJobs } from "../db/jobs/jobs.ts";
import { openQueue, type Queue } from "../db/jobs/queue.ts";
import { registerSeries, renewNextDue, type SeriesIds } from "../db/usage/series.ts";
import type { ProcessMetrics } from "../health/metrics.ts";
import { openKeyRing, openMasterKeys } from "../jobs/api-keys.ts";
import { openDialects } from "../jobs/dialects.ts";
import { openSharedParts, type RequestContext } from "../jobs/request-deps.ts";
import type { MasterKeys } from "../keys/seal.ts";
import { nextDueOf } from "../schedule/due.ts";
import { configuredSeries } from "../usage/plan.ts";
import type { Liveness } from "./liveness.ts";

/** The signal of its app ends work in hand; that the worker is to stop is known before. */
export type WorkerContext = RequestContext & {
  readonly config: Config;
  readonly queue: Queue;
  readonly ids: SeriesIds;
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
  contact: Liveness,
  stop: AbortSignal,
  open: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      const opened = await open();
      contact.reportDatabase();
      return opened;
    } catch (error) {
      stop.throwIfAborted();
      if (!(error instanceof Error) || !isTransient(error)) throw error;
      contact.reportDatabase(databaseUnreachable(app, error));
      contact.heartbeat();
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
  await raiseSequencesOf(app, db);
  const keys = await openKeyRing(app, config, db, metrics.keyFallback);
  const masterKeys = config.rotations.length > 0 ? await openMasterKeys(app, db) : undefined;
  const configured = configuredSeries(config.exports);
  const ids = await registerSeries(db, configured);
  const series = configured.map((one) => one.series);
  await renewNextDue(db, nextDueOf(series, ids, config.exports, await databaseNow(db)));
  await registerJobs(db, [
    ...config.exports.map(({ name }) => ({ kind: "export", name }) as const),
    ...config.rotations.map(({ name }) => ({ kind: "rotation", name }) as const),
  ]);
  const queue = await openQueue(db, app.log);
  const service = await openServiceFor(app, config, {
    onAttempt: metrics.attemptEnded,
    turns: turnsOf(config, db),
    waitMsMax: WAIT_MS_MAX,
  });
  const dialects = openDialects({ app, db, service, keys });
  return { app, config, db, service, keys, dialects, ...openSharedParts(db), masterKeys, queue, ids, metrics };
}
