// `migrate` on empty, blocked and foreign databases: several at once, killed, or without the rights.

import { type RawBuilder, sql } from "kysely";
import pg from "pg";
import { test as base, expect } from "vitest";
import { openApp } from "../../../src/app.ts";
import { type Database, openPostgres } from "../../../src/db/connection/database.ts";
import { isNewer, migrateToLatest, requireCurrentSchema } from "../../../src/db/connection/migrate.ts";
import { withDatabase } from "../../../src/open-database.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { type Program, startProgram } from "../../support/program.ts";
import { emptyDatabase, schemasOf } from "./empty-database.ts";

const BOTH_SCHEMAS = ["bi", "usage_export"];

/** Each test has an empty database of its own. */
const test = base.extend<{ empty: Awaited<ReturnType<typeof emptyDatabase>>; db: Database }>({
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern which fixtures are used.
  empty: async ({}, use) => {
    await using empty = await emptyDatabase();
    await use(empty);
  },
  db: async ({ empty }, use) => {
    await using db = openPostgres(empty.url);
    await use(db);
  },
});

function migrateProcess(url: string): Program {
  return startProgram(["migrate", "--json"], { env: { DATABASE_URL: url, LOG_LEVEL: "warn" } });
}

test("of three processes that migrate at the same time, one applies migrations", async ({ empty }) => {
  const processes = [migrateProcess(empty.url), migrateProcess(empty.url), migrateProcess(empty.url)];
  const results = await Promise.all(processes.map(({ ended }) => ended));
  expect(results.map(({ status, stderr }) => [status, stderr])).toEqual([
    [0, ""],
    [0, ""],
    [0, ""],
  ]);
  const counts = results.map(({ stdout }) => JSON.parse(stdout).applied.length);
  expect(counts.filter((count) => count > 0)).toHaveLength(1);
  expect(await schemasOf(empty.url)).toEqual(BOTH_SCHEMAS);
});

test("a second migrate changes nothing", async ({ db }) => {
  await migrateToLatest(db);
  expect(await migrateToLatest(db)).toMatchObject({ migrations: [], views: 0 });
  const { rows } = await sql`
    select locktype, mode from pg_locks l join pg_database d on d.oid = l.database
    where locktype = 'advisory' and d.datname = current_database()
  `.execute(db);
  expect(rows).toEqual([]);
});

// The process is killed at its first table, view or grant.
test.each(["CREATE TABLE", "CREATE VIEW", "GRANT"])(
  "a process that is killed at %s leaves nothing behind",
  async (tag) => {
    await using empty = await emptyDatabase();
    // The migration waits there for a lock that the test holds, so the test knows when the migration has come that far.
    await runStatement(
      empty.url,
      `create function public.wait_here() returns event_trigger language plpgsql as $$
         begin perform pg_advisory_xact_lock(1); end
       $$;
       create event trigger wait_here on ddl_command_end when tag in ('${tag}') execute function public.wait_here()`,
    );
    // Not through the pooler: the lock belongs to the session, and a pooler could give the session to the migration.
    await using db = openPostgres(empty.directUrl);
    await db.connection().execute(async (holder) => {
      await sql`select pg_advisory_lock(1)`.execute(holder);
      await using migrating = migrateProcess(empty.url);
      await expect.poll(() => waitsOfMigrations(empty.url)).toEqual(["Lock"]);
      migrating.kill("SIGKILL");
      await migrating.ended;
      await sql`select pg_advisory_unlock(1)`.execute(holder);
    });
    await expect.poll(() => waitsOfMigrations(empty.url)).toEqual([]);
    expect(await schemasOf(empty.url)).toEqual([]);

    const { status, stdout } = await migrateProcess(empty.url).ended;
    expect(status).toBe(0);
    expect(JSON.parse(stdout).applied).toHaveLength(1);
  },
);

/** What each other session with an open transaction waits for. Only migrations have one here. */
async function waitsOfMigrations(url: string): Promise<readonly unknown[]> {
  const rows = await runStatement(
    url,
    `select wait_event_type from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null`,
  );
  return rows.map((row) => row.wait_event_type);
}

/** Opens a database with older views. A reader's transaction is still open, so a migration waits for it. */
async function blockedDatabase() {
  const stack = new AsyncDisposableStack();
  const empty = stack.use(await emptyDatabase());
  const db = stack.use(openPostgres(empty.directUrl));
  await migrateToLatest(db);
  const differ = sql`update usage_export.schema_version set views_hash = 'of other texts', program_version = '0.0.1'`;
  await differ.execute(db);
  const reader = new pg.Client({ connectionString: empty.directUrl, application_name: "a tool" });
  await reader.connect();
  stack.defer(() => reader.end());
  await reader.query("begin; select * from bi.usage_total");
  return {
    db,
    reader,
    other: stack.use(openPostgres(empty.directUrl)),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

test("a migration behind a reader's open transaction lets other readers pass", async () => {
  await using blocked = await blockedDatabase();
  const waits: string[] = [];
  const migrated = migrateToLatest(blocked.db, { onWait: (text) => waits.push(text), lockMs: 400, pauseMs: 200 });
  // Each of these readers must succeed although `migrate` tries again and again in between.
  while (waits.length < 3) {
    await blocked.other.transaction().execute(async (tx) => {
      await sql`set local statement_timeout = '20s'`.execute(tx);
      await sql`select from bi.usage_total`.execute(tx);
    });
  }
  expect(waits[0]).toMatch(/^another session with an open transaction uses.*; the next attempt is in 1 s$/);
  await blocked.reader.query("commit");
  expect((await migrated).views).toBeGreaterThan(0);
});

test("a migration that stays blocked gives up without a change", async () => {
  await using blocked = await blockedDatabase();
  await expect(migrateToLatest(blocked.db, { lockMs: 200, pauseMs: 100, giveUpMs: 500 })).rejects.toMatchObject({
    code: "database",
    message: expect.stringMatching(/^nothing was migrated: .*pg_stat_activity.*; then run migrate again$/),
  });
  const { rows } = await sql`select views_hash from usage_export.schema_version`.execute(blocked.db);
  expect(rows).toEqual([{ views_hash: "of other texts" }]);
});

test("the error names the migration that failed", async ({ empty, db }) => {
  await runStatement(
    empty.directUrl,
    `create function public.refuse() returns event_trigger language plpgsql as $$ begin raise exception 'no sequence here'; end $$;
     create event trigger refuse on ddl_command_end when tag in ('CREATE SEQUENCE') execute function public.refuse()`,
  );
  await expect(migrateToLatest(db)).rejects.toMatchObject({
    code: "database",
    message: "migration 0001_baseline failed; nothing was changed",
    cause: { message: "no sequence here" },
  });
  expect(await schemasOf(empty.url)).toEqual([]);
});

const NEVER_EQUAL_OPERATORS = ["text", "name", "oid", "integer"].map(
  (type) => `
    create function other.never(${type}, ${type}) returns boolean language sql as 'select false';
    create operator other.= (leftarg = ${type}, rightarg = ${type}, function = other.never);`,
);

test.each([
  ["standard_conforming_strings = off", ""],
  [
    "search_path = other, pg_catalog",
    `create schema other; create table other.pg_namespace (); create table other.pg_class (); ${NEVER_EQUAL_OPERATORS.join("")}`,
  ],
])("a database with %s is migrated", async (setting, prepare) => {
  await using empty = await emptyDatabase();
  await runStatement(empty.directUrl, `${prepare}; alter database ${empty.name} set ${setting}`);
  await using db = openPostgres(empty.url);
  await migrateToLatest(db);
  await requireCurrentSchema(db);
});

test.for(["no rights", "nosuperuser", "superuser"])(
  "a user who lacks a right is told how to get it (%s)",
  async (kind, { empty }) => {
    const role = `${empty.name}_role`;
    const urlOf = (username: string) =>
      Object.assign(new URL(empty.directUrl), { username, password: "just-for-this-test" }).href;
    const connect = (username: string) => openPostgres(urlOf(username));
    for (const one of [role, `${role}_other`])
      await runStatement(empty.directUrl, `create role ${one} login password 'just-for-this-test'`);
    try {
      await using db = connect(role);
      if (kind === "no rights") {
        const advice = `user ${role} may not create schemas: have ${new URL(empty.directUrl).username} run: grant create on database ${empty.name} to ${role}`;
        return await expect(migrateToLatest(db)).rejects.toThrow(advice);
      }
      await runStatement(empty.directUrl, `alter role ${role} ${kind}; alter database ${empty.name} owner to ${role}`);
      await migrateToLatest(db);
      await requireCurrentSchema(db);
      await using asOther = connect(`${role}_other`);
      const grant = kind === "superuser" ? "" : `, or have an administrator run: grant ${role} to ${role}_other`;
      const advice = `this is user ${role}_other, and the tables are ${role}'s: connect as ${role}${grant}`;
      const message = `permission denied for schema usage_export: ${advice}`;
      await expect(requireCurrentSchema(asOther)).rejects.toMatchObject({ code: "database", message });
      await expect(migrateToLatest(asOther)).rejects.toMatchObject({ message: expect.stringContaining(advice) });
      const env = { DATABASE_URL: urlOf(`${role}_other`), LOG_LEVEL: "silent" };
      const app = await openApp(env, "jobs.config.json", new AbortController().signal);
      const reading = withDatabase(app, (other) => other.selectFrom("usage_export.run").execute(), {
        anyVersion: true,
      });
      await expect(reading).rejects.toMatchObject({ message });
    } finally {
      const roles = `${role}, ${role}_other`;
      await runStatement(empty.directUrl, `reassign owned by ${role} to current_user; drop owned by ${roles}`);
      await runStatement(empty.directUrl, `drop role ${roles}`);
    }
  },
);

test("a database that is not in UTF8 is refused", async () => {
  await using latin = await emptyDatabase("encoding 'LATIN1' locale 'C' template template0");
  await using db = openPostgres(latin.url);
  await expect(migrateToLatest(db)).rejects.toThrow(/expected a database in UTF8 .*, got one in LATIN1 in Postgres \d/);
});

test("the error about an older or newer schema says what to run", async ({ db }) => {
  const older = { code: "database", message: "the database is not up to date; run: usage-export migrate" };
  await expect(requireCurrentSchema(db)).rejects.toMatchObject(older);
  await migrateToLatest(db);
  await requireCurrentSchema(db);

  const set = (change: RawBuilder<unknown>) => sql`update usage_export.schema_version set ${change}`.execute(db);
  const newer =
    /^the database was migrated by a newer version \(9\.9\.9, this is [0-9.a-z-]+\); run that version of usage-export$/;
  await set(sql`program_version = '9.9.9', migrations = '{}'`);
  await expect(requireCurrentSchema(db)).rejects.toMatchObject(older);
  for (const later of [
    sql`migrations = '{0001_baseline,9999_later}'`,
    sql`migrations = '{0001_baseline}', views_hash = 'x'`,
  ]) {
    await set(later);
    await expect(requireCurrentSchema(db)).rejects.toThrow(newer);
    await expect(migrateToLatest(db)).rejects.toThrow(newer);
  }
});

test.each([
  ["1.0.0", "1.0.0-rc.2"],
  ["1.0.0-rc.10", "1.0.0-rc.9"],
  ["0.10.0", "0.9.9"],
])("version %s is newer than %s", (version, than) => {
  expect([isNewer(version, than), isNewer(than, version)]).toEqual([true, false]);
});
