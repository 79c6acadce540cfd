// What `check` reports about the database.

import { expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { checkInstallation } from "../../../src/db/connection/installation.ts";
import { migrateToLatest } from "../../../src/db/connection/migrate.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { emptyDatabase } from "./empty-database.ts";

test("a read-only database is reported", async () => {
  await using empty = await emptyDatabase();
  await using db = openPostgres(empty.directUrl);
  await migrateToLatest(db);
  expect(await checkInstallation(db)).toEqual([]);
  await runStatement(empty.directUrl, `alter database ${empty.name} set default_transaction_read_only = on`);
  await using later = openPostgres(empty.directUrl);
  expect(await checkInstallation(later)).toEqual([
    { what: "writes", state: "fail", text: expect.stringContaining("default_transaction_read_only is on") },
  ]);
});
