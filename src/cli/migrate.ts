import { type App, withDatabaseToMigrate } from "../app.ts";
import { migrateToLatest } from "../db/migrate.ts";

export async function runMigrate(app: App, options: { readonly json?: boolean }): Promise<number> {
  const applied = await withDatabaseToMigrate(app, migrateToLatest);
  if (options.json) app.write(`${JSON.stringify({ applied })}\n`);
  else if (applied.length === 0) app.write("the database is up to date\n");
  else app.write(applied.map((name) => `applied ${name}\n`).join(""));
  return 0;
}
