// Reads the numbers that a monitor shows, all of one moment.

import { sql } from "kysely";
import { seriesFigures } from "./coverage-figures.ts";
import type { Database } from "./database.ts";
import type { Figure } from "./figure.ts";
import { rotationFigures } from "./key-figures.ts";
import { jobFigures, type MonitoredJob, queueFigures } from "./work-figures.ts";

export type { Figure } from "./figure.ts";
export type { MonitoredJob } from "./work-figures.ts";

/** Not tried again: the next scrape does. */
export async function readMonitorFigures(db: Database, jobs: readonly MonitoredJob[]): Promise<readonly Figure[]> {
  const transaction = db.transaction().setAccessMode("read only").setIsolationLevel("repeatable read");
  return transaction.execute(async (tx) => {
    await sql`
      select pg_catalog.set_config('search_path', 'pg_catalog', true), pg_catalog.set_config('statement_timeout', '5s', true)
    `.execute(tx);
    return [
      ...(await seriesFigures(tx)),
      ...(await jobFigures(tx, jobs)),
      ...(await rotationFigures(tx)),
      ...(await queueFigures(tx)),
    ];
  });
}
