// The command `migrate`: applies the migrations that are missing.

import { type App, raiseSequencesOf, withDatabaseToMigrate } from "../app.ts";
import { migrateToLatest } from "../db/connection/migrate.ts";

export async function runMigrate(app: App, options: { readonly json?: boolean }): Promise<number> {
  const {
    migrations: applied,
    views,
    hasReader,
  } = await withDatabaseToMigrate(app, async (db) => {
    const migrated = await migrateToLatest(db, { onWait: (text) => app.log.warn(text), signal: app.signal });
    await raiseSequencesOf(app, db);
    return migrated;
  });
  if (options.json) app.write(`${JSON.stringify({ applied, views })}\n`);
  else if (applied.length + views.length === 0) app.write("the database is up to date\n");
  else {
    app.write(applied.map((name) => `applied ${name}\n`).join(""));
    if (views.length > 0) app.write(`replaced ${views.toSorted().join(", ")}\n`);
  }
  if (!hasReader) {
    app.log.warn(
      "role usage_reader is not there, and this user may not create roles: have an administrator run `create role usage_reader`, then run migrate again, which grants it what it may read",
    );
  }
  return 0;
}
