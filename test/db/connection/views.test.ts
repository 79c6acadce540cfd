// What `migrate` does if the views and functions of the database differ from those in migrations/views.

import { sql } from "kysely";
import { test as base, expect } from "vitest";
import { type Database, openPostgres } from "../../../src/db/connection/database.ts";
import { migrateToLatest, requireCurrentSchema } from "../../../src/db/connection/migrate.ts";
import { readViews } from "../../../src/db/connection/view-files.ts";
import { copyDatabase } from "../../support/database.ts";
import { schemaText } from "./schema-text.ts";

const fileNames = readViews().map(({ name }) => name.split(".")[1]);

/** Each test has a migrated database of its own. */
const test = base.extend<{ db: Database }>({
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern which fixtures are used.
  db: async ({}, use) => {
    await using copy = await copyDatabase();
    await using db = openPostgres(copy.directUrl);
    await use(db);
  },
});

/** Makes the views look as if an older version of the program had created them from other texts. */
async function makeOlder(db: Database): Promise<void> {
  const differ = sql`update usage_export.schema_version set views_hash = 'of other texts', program_version = '0.0.1'`;
  await differ.execute(db);
}

const run = (db: Database, ...statements: readonly string[]) => sql.raw(statements.join(";")).execute(db);

test("every view and every function of both schemas, except for triggers, has a file of its name", async ({ db }) => {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class
    where relkind = 'v' and relnamespace in ('bi'::regnamespace, 'usage_export'::regnamespace)
    union select proname from pg_proc where pronamespace = 'bi'::regnamespace
    union select proname from pg_proc where pronamespace = 'usage_export'::regnamespace and prokind = 'f' and prorettype <> 'trigger'::regtype
  `.execute(db);
  expect(fileNames.toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
});

test("views of an older version are replaced", async ({ db }) => {
  const before = await schemaText(db);
  await run(
    db,
    `create or replace view bi.coverage_gaps as
     select project_id, project, "grouping", filter, status, usage_date as from_date, usage_date as to_date, 1 as days, error,
       source
     from bi.coverage`,
  );
  await makeOlder(db);
  await expect(requireCurrentSchema(db)).rejects.toThrow("the database is not up to date; run: usage-export migrate");
  expect(await migrateToLatest(db)).toMatchObject({ migrations: [], views: fileNames.length });
  await requireCurrentSchema(db);
  expect(await schemaText(db)).toBe(before);
  const { rows } = await sql<{ text: string }>`select pg_get_viewdef('bi.coverage_gaps'::regclass) as text`.execute(db);
  expect(rows[0]?.text).toContain("row_number()");
});

test("dropped views are created again", async ({ db }) => {
  const before = await schemaText(db);
  await run(db, "drop view bi.runs", "drop function bi.usage_change, bi.cost_change, bi.billed_change, bi.unused_keys");
  await run(db, "drop view bi.coverage_gaps, bi.freshness, bi.coverage");
  await migrateToLatest(db);
  expect(await schemaText(db)).toBe(before);
});

/** Gives other columns to usage_export.visible_usage, which nearly all usage views read, and to bi.usage_total. */
const OTHER_SHAPE = [
  "drop view usage_export.visible_usage cascade",
  `create view usage_export.visible_usage as select 'project-1'::text as project, 1 as other_column`,
  "create view bi.usage_total as select project, other_column from usage_export.visible_usage",
];

test("views with changed columns are created anew, with dependent views and all grants", async ({ db }) => {
  const role = `bi_${crypto.randomUUID().slice(0, 8)}`;
  const before = await schemaText(db);
  await run(db, ...OTHER_SHAPE, `create role ${role}`);
  try {
    await run(
      db,
      `grant select on bi.usage_total to ${role} with grant option`,
      "grant select on bi.usage_total to public",
    );
    await makeOlder(db);
    await migrateToLatest(db);
    await requireCurrentSchema(db);
    expect(await schemaText(db)).toBe(before);
    const { rows } = await sql`
      select grantee::regrole::text as grantee, is_grantable from pg_class, aclexplode(relacl)
      where oid = 'bi.usage_total'::regclass and grantee in (0, (select oid from pg_roles where rolname = ${role}))
      order by grantee
    `.execute(db);
    expect(rows).toEqual([
      { grantee: "-", is_grantable: false },
      { grantee: role, is_grantable: true },
    ]);
  } finally {
    await run(db, `drop owned by ${role}`, `drop role ${role}`);
  }
});

test("a view on which somebody else's view depends is not dropped", async ({ db }) => {
  await run(db, ...OTHER_SHAPE, "create materialized view public.my_report as select project from bi.usage_total");
  await makeOlder(db);
  await expect(migrateToLatest(db)).rejects.toMatchObject({
    code: "database",
    message:
      "nothing was migrated, as materialized view public.my_report depends on view bi.usage_total: drop the dependent object, run migrate again, and create it anew",
  });
  const { rows } = await sql`select project from public.my_report`.execute(db);
  expect(rows).toEqual([{ project: "project-1" }]);
  const { rows: columns } = await sql`select other_column from usage_export.visible_usage`.execute(db);
  expect(columns).toHaveLength(1);
});

test("somebody else's view stays if the view that it reads is replaced with the same columns", async ({ db }) => {
  await run(db, "create view public.my_report as select sum(requests) as requests from bi.usage_total");
  await makeOlder(db);
  await migrateToLatest(db);
  expect((await sql`select requests from public.my_report`.execute(db)).rows).toEqual([{ requests: null }]);
});

test("migrate resets changed functions and rights of the reader", async ({ db }) => {
  const before = await schemaText(db);
  await run(
    db,
    "alter function bi.usage_as_of(timestamptz) security definer",
    "revoke all on all tables in schema bi from usage_reader",
    "revoke all on function bi.usage_as_of(timestamptz) from usage_reader, public",
    "revoke all on schema bi from usage_reader",
    "revoke all on all functions in schema usage_export from public",
  );
  await makeOlder(db);
  await migrateToLatest(db);
  expect(await schemaText(db)).toBe(before);
  const { rows } = await sql`
    select prosecdef from pg_proc where oid = 'bi.usage_as_of(timestamptz)'::regprocedure
  `.execute(db);
  expect(rows).toEqual([{ prosecdef: false }]);
  const asReader = db.transaction().execute(async (tx) => {
    await sql`set local role usage_reader`.execute(tx);
    for (const view of ["usage_total", "usage_history", "api_keys"])
      await sql`select * from ${sql.id("bi", view)}`.execute(tx);
    await sql`select from bi.usage_as_of(now())`.execute(tx);
  });
  await expect(asReader).resolves.toBeUndefined();
});
