// Opens what runs of export jobs share, on a database that is open, and closes it.

import { type App, openServiceOf, raiseSequencesOf, turnsOf } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/database.ts";
import { openDialects } from "./dialects.ts";
import { openTogether } from "./export-deps.ts";
import { followClockBack } from "./follow-clock.ts";
import { openKeyRing } from "./keys-in-use.ts";
import type { ExportContext } from "./run-export.ts";

export async function withExportContext<T>(
  app: App,
  config: Config,
  db: Database,
  work: (context: ExportContext) => Promise<T>,
): Promise<T> {
  await raiseSequencesOf(app, db);
  await followClockBack(app, db);
  const keys = await openKeyRing(app, config, db);
  const service = await openServiceOf(app, config, { turns: turnsOf(config, db) });
  try {
    const dialects = openDialects({ app, db, service, keys });
    return await work({ app, config, db, service, keys, dialects, ...openTogether(db) });
  } finally {
    await service.close();
  }
}
