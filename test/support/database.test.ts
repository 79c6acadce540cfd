import { sql } from "kysely";
import { expect, inject, test } from "vitest";
import { testDatabase } from "./database.ts";
import { databaseUrl, runStatement } from "./postgres-admin.ts";

const { db, url } = await testDatabase();
const other = await testDatabase();

test("a copy has the migrated schema and no rows", async () => {
  expect((await sql`select from usage_export.series`.execute(db)).rows).toEqual([]);
});

test("a table of one copy is not in another", async () => {
  await runStatement(url, "create table only_here ()");
  await expect(runStatement(other.url, "table only_here")).rejects.toMatchObject({ code: "42P01" });
});

test("the template accepts no connections, so that it can always be copied", async () => {
  const { url: serverUrl, template } = inject("postgres");
  await expect(runStatement(databaseUrl(serverUrl, template), "select 1")).rejects.toMatchObject({ code: "55000" });
});
