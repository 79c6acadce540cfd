// The command `migrate`: applies the migrations that are missing.

import type { App } from "../app.ts";
import type { Database } from "../db/connection/database.ts";
import { migrateToLatest } from "../db/connection/migrate.ts";
import { raiseLaggingSequences } from "../db/usage/fetch-numbers.ts";
import { withDatabase } from "../open-database.ts";
import { writeAnswer } from "./output.ts";

export async function runMigrate(app: App, options: { readonly json?: boolean }): Promise<number> {
  const migrate = async (db: Database) => {
    const migrated = await migrateToLatest(db, { onWait: (text) => app.log.warn(text), signal: app.signal });
    // After a restore, sequences may be behind the stored rows.
    await raiseLaggingSequences(db, app.log);
    return migrated;
  };
  const { migrations, views: viewCount, hasReader } = await withDatabase(app, migrate, { anyVersion: true });
  writeAnswer(app, options, { applied: migrations, views: viewCount }, ({ applied }) => {
    if (applied.length + viewCount === 0) return "the database is up to date\n";
    const created = viewCount > 0 ? [`created ${viewCount} views and functions\n`] : [];
    return [...applied.map((name) => `applied ${name}\n`), ...created].join("");
  });
  const next = "have an administrator run `create role usage_reader`, then run migrate again to grant its rights";
  if (!hasReader) app.log.warn(`role usage_reader does not exist, and this user may not create roles: ${next}`);
  return 0;
}
