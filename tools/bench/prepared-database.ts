// A database as the first start of a worker leaves it: migrated, and with the series and jobs of a configuration.

import { type Config, parseConfig } from "../../src/config/config.ts";
import { type Database, openPostgres } from "../../src/db/connection/database.ts";
import { migrateToLatest } from "../../src/db/connection/migrate.ts";
import { inTransaction } from "../../src/db/connection/transaction.ts";
import { lockJob } from "../../src/db/jobs/jobs.ts";
import { registerSeries, type SeriesIds } from "../../src/db/usage/stored-series.ts";
import { configuredSeries } from "../../src/usage/export-plan.ts";

export type Prepared = AsyncDisposable & {
  readonly db: Database;
  readonly config: Config;
  readonly ids: SeriesIds;
};

export async function prepareDatabase(databaseUrl: string, json: object): Promise<Prepared> {
  const config = parseConfig(JSON.stringify(json), "the benchmark", ".");
  const db = openPostgres(databaseUrl);
  await migrateToLatest(db);
  const ids = await registerSeries(db, configuredSeries(config.exports));
  for (const { name } of config.exports) await inTransaction(db, (tx) => lockJob(tx, { kind: "export", name }));
  return { db, config, ids, [Symbol.asyncDispose]: () => db.destroy() };
}
