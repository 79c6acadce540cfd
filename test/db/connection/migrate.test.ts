import { sql } from "kysely";
import pg from "pg";
import { expect, test } from "vitest";
import { type Database, openPostgres } from "../../../src/db/connection/database.ts";
import { migrateToLatest, requireCurrentSchema } from "../../../src/db/connection/migrate.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { type Program, startProgram } from "../../support/program.ts";
import { emptyDatabase, schemasOf } from "./empty-database.ts";

const BOTH = ["bi", "usage_export"];

function migrateProcess(url: string): Program {
  return startProgram(["migrate", "--json"], { env: { DATABASE_URL: url, LOG_LEVEL: "warn" } });
}

test("an empty database gets the tables and views, and a second migrate changes nothing", async () => {
  await using empty = await emptyDatabase();
  await using db = openPostgres(empty.url);
  expect((await migrateToLatest(db)).migrations).toEqual(["0001_baseline"]);
  expect(await migrateToLatest(db)).toMatchObject({ migrations: [], views: 0 });
});

test("three processes that migrate an empty database at once all succeed, and only one applies migrations", async () => {
  await using empty = await emptyDatabase();
  const processes = [migrateProcess(empty.url), migrateProcess(empty.url), migrateProcess(empty.url)];
  const results = await Promise.all(processes.map(({ ended }) => ended));
  expect(results.map(({ status, stderr }) => [status, stderr])).toEqual([
    [0, ""],
    [0, ""],
    [0, ""],
  ]);
  const counts = results.map(({ stdout }) => JSON.parse(stdout).applied.length);
  expect(counts.filter((count) => count > 0)).toHaveLength(1);
  expect(await schemasOf(empty.url)).toEqual(BOTH);
});

test("no lock is left behind in a session that has migrated", async () => {
  await using empty = await emptyDatabase();
  await using db = openPostgres(empty.url);
  await migrateToLatest(db);
  const { rows } = await sql`
    select locktype, mode from pg_locks l join pg_database d on d.oid = l.database
    where locktype = 'advisory' and d.datname = current_database()
  `.execute(db);
  expect(rows).toEqual([]);
});

// Where the process is killed: at the first table, the first view and the first grant.
test.each(["CREATE TABLE", "CREATE VIEW", "GRANT"])(
  "a process that is killed at %s leaves nothing behind, and the next one applies every migration",
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
      await expect.poll(() => migrators(empty.url)).toEqual(["Lock"]);
      migrating.kill("SIGKILL");
      await migrating.ended;
      await sql`select pg_advisory_unlock(1)`.execute(holder);
    });
    await expect.poll(() => migrators(empty.url)).toEqual([]);
    expect(await schemasOf(empty.url)).toEqual([]);

    const { status, stdout } = await migrateProcess(empty.url).ended;
    expect(status).toBe(0);
    expect(JSON.parse(stdout).applied).toHaveLength(1);
  },
);

/** What each migrating session waits for. */
async function migrators(url: string): Promise<readonly unknown[]> {
  const rows = await runStatement(
    url,
    `select wait_event_type from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null`,
  );
  return rows.map((row) => row.wait_event_type);
}

/** A session that has read a view and left its transaction open, as a person at a tool does. */
async function openReader(url: string): Promise<pg.Client> {
  const reader = new pg.Client({ connectionString: url, application_name: "a tool" });
  await reader.connect();
  await reader.query("begin; select * from bi.usage_total");
  return reader;
}

async function olderViews(db: Database): Promise<void> {
  await sql`update usage_export.schema_version set views_hash = 'of other texts', program_version = '0.0.1'`.execute(
    db,
  );
}

test("a migration behind a reader's open transaction lets other readers pass, says what it waits for, and goes on after it", async () => {
  await using empty = await emptyDatabase();
  await using db = openPostgres(empty.directUrl);
  await migrateToLatest(db);
  await olderViews(db);
  const reader = await openReader(empty.directUrl);
  const waits: string[] = [];
  try {
    const migrated = migrateToLatest(db, { onWait: (text) => waits.push(text), lockMs: 400, pauseMs: 200 });
    await using other = openPostgres(empty.directUrl);
    // Each of these readers must succeed although `migrate` tries again and again in between.
    while (waits.length < 3) {
      await other.transaction().execute(async (tx) => {
        await sql`set local statement_timeout = '20s'`.execute(tx);
        await sql`select from bi.usage_total`.execute(tx);
      });
    }
    expect(waits[0]).toMatch(/^what is to change is in use by another session.*; the next attempt is in 1 s$/);
    await reader.query("commit");
    expect((await migrated).views).toBeGreaterThan(0);
  } finally {
    await reader.end();
  }
});

test("a migration that stays blocked gives up, changes nothing, and says what to do", async () => {
  await using empty = await emptyDatabase();
  await using db = openPostgres(empty.directUrl);
  await migrateToLatest(db);
  await olderViews(db);
  const reader = await openReader(empty.directUrl);
  try {
    await expect(migrateToLatest(db, { lockMs: 200, pauseMs: 100, giveUpMs: 500 })).rejects.toMatchObject({
      code: "database",
      message: expect.stringMatching(/^nothing was migrated: .*pg_stat_activity.*; then run migrate again$/),
    });
  } finally {
    await reader.end();
  }
  const { rows } = await sql`select views_hash from usage_export.schema_version`.execute(db);
  expect(rows).toEqual([{ views_hash: "of other texts" }]);
});

test("the error names the migration that failed, and no migration is applied", async () => {
  await using empty = await emptyDatabase();
  await runStatement(
    empty.directUrl,
    `create function public.refuse() returns event_trigger language plpgsql as $$ begin raise exception 'no sequence here'; end $$;
     create event trigger refuse on ddl_command_end when tag in ('CREATE SEQUENCE') execute function public.refuse()`,
  );
  await using db = openPostgres(empty.url);
  await expect(migrateToLatest(db)).rejects.toMatchObject({
    code: "database",
    message: "migration 0001_baseline failed; nothing was changed",
    cause: { message: "no sequence here" },
  });
  expect(await schemasOf(empty.url)).toEqual([]);
});

/** Runs `work` as a new role in an empty database, beside another one, after an administrator has run the statements of `prepare`. Then drops all. */
async function withRole(
  prepare: (role: string, database: string) => string,
  work: (db: Database, asOther: Database, role: string) => Promise<void>,
): Promise<void> {
  await using empty = await emptyDatabase();
  const role = `${empty.name}_role`;
  const roles = [role, `${role}_other`];
  const connect = (username = "") =>
    openPostgres(Object.assign(new URL(empty.directUrl), { username, password: "just-for-this-test" }).href);
  for (const one of roles)
    await runStatement(empty.directUrl, `create role ${one} login password 'just-for-this-test'`);
  try {
    await runStatement(empty.directUrl, prepare(role, empty.name));
    await using db = connect(role);
    await using asOther = connect(roles[1]);
    await work(db, asOther, role);
  } finally {
    await runStatement(empty.directUrl, `reassign owned by ${role} to current_user; drop owned by ${roles}`);
    await runStatement(empty.directUrl, `drop role ${roles}`);
  }
}

test("a user who owns the database and nothing else can migrate it", async () => {
  await withRole(
    (role, name) => `alter database ${name} owner to ${role}`,
    async (db) => {
      await migrateToLatest(db);
      await requireCurrentSchema(db);
    },
  );
});

const SHADOWING = ["text", "name", "oid", "integer"].map(
  (type) => `
    create function other.never(${type}, ${type}) returns boolean language sql as 'select false';
    create operator other.= (leftarg = ${type}, rightarg = ${type}, function = other.never);`,
);

test.each([
  ["standard_conforming_strings = off", ""],
  [
    "search_path = other, pg_catalog",
    `create schema other; create table other.pg_namespace (); create table other.pg_class (); ${SHADOWING.join("")}`,
  ],
])("a database with %s is migrated", async (setting, prepare) => {
  await using empty = await emptyDatabase();
  await runStatement(empty.directUrl, `${prepare}; alter database ${empty.name} set ${setting}`);
  await using db = openPostgres(empty.url);
  await migrateToLatest(db);
  await requireCurrentSchema(db);
});

test("the error for a user without rights names the right, before the first migration and after it", async () => {
  await withRole(
    () => "",
    async (db, _, role) => {
      const advice = new RegExp(
        `user ${role} may not create schemas: have postgres run: grant create on database \\w+ to ${role}$`,
      );
      await expect(migrateToLatest(db)).rejects.toThrow(advice);
    },
  );
  for (const kind of ["nosuperuser", "superuser"]) {
    await withRole(
      (role, name) => `alter role ${role} ${kind}; alter database ${name} owner to ${role}`,
      async (db, asOther, role) => {
        await migrateToLatest(db);
        const grant = kind === "superuser" ? "" : `, or have an administrator run: grant ${role} to ${role}_other`;
        const advice = `this is user ${role}_other, and the tables are ${role}'s: connect as ${role}${grant}`;
        const message = `permission denied for schema usage_export: ${advice}`;
        await expect(requireCurrentSchema(asOther)).rejects.toMatchObject({ code: "database", message });
        await expect(migrateToLatest(asOther)).rejects.toMatchObject({ message: expect.stringContaining(advice) });
      },
    );
  }
});

test("a database without the schema is not up to date", async () => {
  await using empty = await emptyDatabase();
  await using db = openPostgres(empty.url);
  await expect(requireCurrentSchema(db)).rejects.toMatchObject({
    code: "database",
    message: "the database is not up to date; run: usage-export migrate",
  });
});

test("a database of this version is up to date, one of an older version is not, and one of a newer version is refused", async () => {
  await using empty = await emptyDatabase();
  await using db = openPostgres(empty.url);
  await migrateToLatest(db);
  await requireCurrentSchema(db);

  const migrations = (names: readonly string[]) =>
    sql`update usage_export.schema_version set migrations = ${names}, program_version = '9.9.9'`.execute(db);
  await migrations(["0001_baseline", "9999_later"]);
  const newer =
    /^the database was migrated by a newer version \(9\.9\.9, this is .*; run that version of usage-export$/;
  await expect(requireCurrentSchema(db)).rejects.toThrow(newer);
  await expect(migrateToLatest(db)).rejects.toThrow(newer);

  await migrations([]);
  await expect(requireCurrentSchema(db)).rejects.toThrow("run: usage-export migrate");
});
