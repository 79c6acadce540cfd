// The embedded database behaves as a Postgres server does.

import path from "node:path";
import { sql } from "kysely";
import { afterAll, describe, expect, test } from "vitest";
import { openEmbedded } from "../../src/db/connection/database.ts";
import { migrateToLatest } from "../../src/db/connection/migrate.ts";
import { readerProblem } from "../../src/db/connection/view-creation.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { testBehaviour } from "./behaviour.ts";
import { newSeries, shown } from "./stored-usage.ts";

const root = temporaryFolder(afterAll);
const db = await openEmbedded(path.join(root, "data"));
await migrateToLatest(db);
// Hooks run in reverse order: the folder is removed last.
afterAll(() => db.destroy());

test("stored usage is there when the embedded database is opened again", async () => {
  const other = path.join(root, "reopened");
  const first = await openEmbedded(other);
  await migrateToLatest(first);
  const usage = { "2026-03-17": { listen: "1" } };
  const { project } = await newSeries(first, "endpoint", { usage });
  await first.destroy();

  await using second = await openEmbedded(other);
  expect(await shown(second, project)).toEqual(usage);
});

test("migrating a restored database whose reader's role is missing creates the role with its rights", async () => {
  await sql`drop owned by usage_reader; drop role usage_reader`.execute(db);
  expect(await readerProblem(db)).toMatch(/^this role, with which BI tools read, does not exist; run migrate/);
  // A user who may not create roles can migrate, too.
  await sql`create role limited nosuperuser in role postgres; set role limited`.execute(db);
  expect(await migrateToLatest(db)).toEqual({ migrations: [], views: 0, hasReader: false });
  await sql`reset role; drop role limited`.execute(db);
  expect(await migrateToLatest(db)).toEqual({ migrations: [], views: 0, hasReader: true });
  await db.transaction().execute(async (tx) => {
    await sql`set local role usage_reader`.execute(tx);
    await sql`select * from bi.usage_as_of(now()), bi.usage_total`.execute(tx);
  });
});

/** The tests that also run on a server. They take half a minute, so they run only in CI. */
describe.runIf(process.env.CI !== undefined)("as a server does", () => testBehaviour(db));
