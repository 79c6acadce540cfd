// Opens what a worker needs of its database, once that is there.

import { setTimeout as sleep } from "node:timers/promises";
import { type App, databaseAway, openServiceOf, raiseSequencesOf, turnsOf } from "../app.ts";
import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/database.ts";
import { registerJobs } from "../db/jobs.ts";
import { requireCurrentSchema } from "../db/migrate.ts";
import { openQueue } from "../db/queue.ts";
import { registerSeries, renewNextDue } from "../db/series.ts";
import { isTransient } from "../db/transaction.ts";
import { openDialects } from "../jobs/dialects.ts";
import { openTogether } from "../jobs/export-deps.ts";
import { openKeyRing, openMasterKeys } from "../jobs/keys-in-use.ts";
import { nextDueOf } from "../jobs/next-due.ts";
import type { ProcessMetrics } from "../monitor/process-metrics.ts";
import { configuredSeries } from "../usage/plan.ts";
import type { Contact } from "./contact.ts";
import type { WorkerWorld } from "./world.ts";

const WAIT_MS = 1_000;
/** Who works all day can wait for as long as the service asks, within reason. */
const WAIT_MS_MAX = 60 * 60_000;

/** A database that is not there yet, or is busy, is waited for until the signal; one that refuses, or has another schema, is not. */
export async function onceReached<T>(
  app: App,
  contact: Contact,
  stop: AbortSignal,
  open: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      const opened = await open();
      contact.note();
      return opened;
    } catch (error) {
      stop.throwIfAborted();
      if (!(error instanceof Error) || !isTransient(error)) throw error;
      contact.note(databaseAway(app, error));
      contact.beat();
      await sleep(WAIT_MS, undefined, { signal: stop });
    }
  }
}

/** `app` is the one whose signal ends work in hand. */
export async function openWorld(app: App, config: Config, db: Database, metrics: ProcessMetrics): Promise<WorkerWorld> {
  await requireCurrentSchema(db);
  await raiseSequencesOf(app, db);
  const keys = await openKeyRing(app, config, db, metrics.fellBack);
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
  const service = await openServiceOf(app, config, {
    onAttempt: metrics.attemptEnded,
    turns: turnsOf(config, db),
    waitMsMax: WAIT_MS_MAX,
  });
  const dialects = openDialects({ app, db, service, keys });
  return { app, config, db, service, keys, dialects, ...openTogether(db), masterKeys, queue, ids, metrics };
}
