// Hands a backfill to the workers that run: they share its requests as those of any other run, after what is newer.

import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/database.ts";
import { openQueue } from "../db/queue.ts";
import { registerSeries } from "../db/series.ts";
import { inTransaction } from "../db/transaction.ts";
import { configuredSeries } from "../usage/plan.ts";
import type { JobPlan } from "../usage/plan-backfill.ts";
import { type Shared, shareRun } from "./share-run.ts";

export type Enqueued = Shared & { readonly job: string };

/** A run a job. What waits for the workers already, or is with one, is not asked for again. */
export async function enqueueBackfill(
  app: App,
  config: Config,
  db: Database,
  plans: readonly JobPlan[],
): Promise<readonly Enqueued[]> {
  const ids = await registerSeries(db, configuredSeries(config.exports));
  const queue = await openQueue(db, app.log);
  try {
    const enqueued: Enqueued[] = [];
    for (const { job, plan } of plans) {
      const run = { job, trigger: "backfill", scheduledFor: undefined, plan } as const;
      const shared = await inTransaction(db, (tx) => shareRun(tx, { queue, ids }, run));
      if (shared) enqueued.push({ job: job.name, ...shared });
    }
    return enqueued;
  } finally {
    await queue.stop();
  }
}
