// Brings the schema up to date, checks whether it is, and names the sessions that block a migration.

import fs from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { sql } from "kysely";
import { AppError, systemCode } from "../../errors.ts";
import { MIGRATIONS_FOLDER } from "../../package-files.ts";
import { installQueue } from "../jobs/queue.ts";
import type { Database } from "./database.ts";
import { describeMissingRight, explainMissingRight, isMissingRight, repairReader } from "./installation.ts";
import { withStatementTimeout } from "./timeouts.ts";
import { setUntilCommit, type Tx } from "./transaction.ts";
import {
  expandLists,
  newerVersion,
  olderVersion,
  replaceViews,
  requireCurrentViews,
  STORED_VIEWS,
  type StoredView,
} from "./views.ts";

/** Any fixed number works, but it must not change between versions. */
const MIGRATION_LOCK = 7_205_521_846_402;
/** An index on years of usage takes minutes, and so does the wait for another replica that creates it. */
const STATEMENT_MS_MAX = 30 * 60_000;
/** SQLSTATE of a lock timeout and of a deadlock. */
const LOCK_CONFLICT = new Set(["55P03", "40P01"]);
/** SQLSTATE of a change to an object that another object depends on. */
const DEPENDED_ON = new Set(["2BP01"]);

export type MigrateOptions = {
  /** Called with a text that names who holds the lock. */
  readonly onWait?: (text: string) => void;
  readonly signal?: AbortSignal | undefined;
  /** Longest wait for a lock: readers of the same view queue behind a waiting migration. */
  readonly lockMs?: number;
  /** Pause before the next attempt, in which readers can go on. */
  readonly pauseMs?: number;
  readonly giveUpMs?: number;
};

/** What `migrate` did, by name: the numbered migrations, and the views and functions that were created or replaced. */
export type Migrated = {
  readonly migrations: readonly string[];
  readonly views: readonly string[];
  /** Whether the role usage_reader exists and has its rights. */
  readonly hasReader: boolean;
};

/**
 * Applies the missing migrations, then replaces the views whose text changed, all in one transaction that holds a lock. Replicas
 * that migrate at once wait for the first and find nothing left to do. A crash leaves the schema as it was. The lock ends with the
 * transaction, so that it can't stay behind on a pooler's connection.
 */
export async function migrateToLatest(db: Database, options: MigrateOptions = {}): Promise<Migrated> {
  return withStatementTimeout(STATEMENT_MS_MAX, async () => {
    const migrated = await retryWhileLocked(db, options);
    // The queue's library has migrations of its own, which do nothing if its tables are up to date.
    await installQueue(db);
    return migrated;
  });
}

/** Repeats the whole migration while another session's open transaction holds what has to be changed. */
async function retryWhileLocked(
  db: Database,
  { onWait, signal, lockMs = 3000, pauseMs = 5000, giveUpMs = 5 * 60_000 }: MigrateOptions,
): Promise<Migrated> {
  const startedMs = performance.now();
  for (;;) {
    try {
      return await db.transaction().execute((tx) => applyMigrations(tx, lockMs));
    } catch (error) {
      if (isMissingRight(error)) {
        const text = `${await describeMissingRight(db)}. Nothing was changed`;
        throw new AppError("database", text, { cause: error });
      }
      if (!hasCode(error, LOCK_CONFLICT)) throw error;
      const holders = await describeLockHolders(db);
      if (performance.now() - startedMs > giveUpMs) {
        throw new AppError("database", `nothing was migrated: ${holders}; then run migrate again`, { cause: error });
      }
      onWait?.(`${holders}; the next attempt is in ${Math.ceil(pauseMs / 1000)} s`);
      await sleep(pauseMs, undefined, { signal });
    }
  }
}

/** Whether the error, or one that caused it, has one of these codes. */
function hasCode(error: unknown, codes: ReadonlySet<string>): error is Error {
  return error instanceof Error && (codes.has(systemCode(error)) || hasCode(error.cause, codes));
}

async function applyMigrations(tx: Tx, lockMs: number): Promise<Migrated> {
  await setUntilCommit(tx, {
    // A process that stalls or dies must not keep the lock: other replicas wait for it as long as a migration may take.
    idle_in_transaction_session_timeout: "60s",
    // What is created must not use an object that somebody else put into a schema of the search path.
    search_path: "pg_catalog, pg_temp",
    lock_timeout: "0",
  });
  await sql`select pg_advisory_xact_lock(${sql.lit(MIGRATION_LOCK)})`.execute(tx);
  await setUntilCommit(tx, { lock_timeout: `${lockMs}ms` });
  const migrations = await missingMigrations(await appliedMigrations(tx));
  for (const file of migrations) await applyMigration(tx, file);
  const views = await replaceViews(tx);
  return { migrations: migrations.map(nameOf), views, hasReader: await repairReader(tx) };
}

async function applyMigration(tx: Tx, file: string): Promise<void> {
  const name = nameOf(file);
  try {
    const { up }: { up: (db: Tx, expand: typeof expandLists) => Promise<void> } = await import(
      pathToFileURL(path.join(MIGRATIONS_FOLDER, file)).href
    );
    await up(tx, expandLists);
  } catch (cause) {
    const advice =
      hasCode(cause, DEPENDED_ON) && "detail" in cause
        ? `, as ${cause.detail}: drop that, run migrate again, and create it anew`
        : "";
    throw new AppError("database", `migration ${name} failed${advice}; nothing was changed`, { cause });
  }
  await sql`
    insert into usage_export.kysely_migration (name, timestamp) values (${name}, ${new Date().toISOString()})
  `.execute(tx);
}

/** The name of the newest migration that this program knows. */
export async function newestMigration(): Promise<string> {
  return nameOf((await migrationFiles()).at(-1) ?? "");
}

/** SQLSTATE of a table or a schema that does not exist. */
const NOT_THERE = new Set(["42P01", "3F000"]);

/**
 * Throws an error that names the next step if the schema is not the one this program was written for. One statement, as every command
 * begins with it.
 */
export async function requireCurrentSchema(db: Database): Promise<void> {
  const stored = await sql<{ migrations: readonly string[]; views: readonly StoredView[] }>`
    select array(select name::text from usage_export.kysely_migration order by name) as migrations,
      coalesce((select json_agg(v) from (${STORED_VIEWS}) v), '[]') as views
  `
    .execute(db)
    .catch(async (cause: unknown) => {
      throw hasCode(cause, NOT_THERE) ? olderVersion() : await explainMissingRight(db, cause);
    });
  const { migrations = [], views = [] } = stored.rows[0] ?? {};
  if ((await missingMigrations(migrations)).length > 0) throw olderVersion();
  await requireCurrentViews(views);
}

/** The files of the migrations that are not applied. Throws if one is applied that this program does not know. */
async function missingMigrations(applied: readonly string[]): Promise<readonly string[]> {
  const files = await migrationFiles();
  const unknown = applied.filter((name) => !files.some((file) => nameOf(file) === name));
  if (unknown.length > 0) throw newerVersion(`it has ${unknown.join(", ")}`);
  return files.filter((file) => !applied.includes(nameOf(file)));
}

/** In the order in which they are applied. */
async function migrationFiles(): Promise<readonly string[]> {
  return (await fs.readdir(MIGRATIONS_FOLDER)).filter((file) => /\.c?[jt]s$/.test(file)).sort();
}

function nameOf(file: string): string {
  return path.parse(file).name;
}

/** Creates the table of migrations if it is missing. Creating a schema that exists needs a right that an owner of the tables may lack. */
async function appliedMigrations(tx: Tx): Promise<readonly string[]> {
  const { rows: schemas } = await sql`select from pg_namespace where nspname = 'usage_export'`.execute(tx);
  if (schemas.length === 0) await sql`create schema usage_export`.execute(tx);
  await sql`
    create table if not exists usage_export.kysely_migration (name varchar(255) primary key, timestamp varchar(255) not null)
  `.execute(tx);
  const { rows } = await sql<{ name: string }>`
    select name from usage_export.kysely_migration order by name
  `.execute(tx);
  return rows.map(({ name }) => name);
}

/**
 * Names the sessions that have read what is to change and whose transactions are still open, and the next step, worded as the beginning of
 * a sentence.
 */
async function describeLockHolders(db: Database): Promise<string> {
  const { rows } = await sql<{ pid: number; who: string; relation: string }>`
    select l.pid, concat_ws(', ', 'user ' || coalesce(a.usename, 'unknown'), nullif(a.application_name, '')) as who,
      min(n.nspname || '.' || c.relname) as relation
    from pg_catalog.pg_locks l
    join pg_catalog.pg_database d on d.oid = l.database and d.datname = current_database()
    join pg_catalog.pg_class c on c.oid = l.relation and c.relkind in ('r', 'v')
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname in ('bi', 'usage_export')
    left join pg_catalog.pg_stat_activity a on a.pid = l.pid
    where l.granted and l.pid <> pg_backend_pid()
    group by l.pid, who order by l.pid limit 3
  `.execute(db);
  const holders = rows.map(
    ({ pid, who, relation }) =>
      `${relation} is in use by process ${pid} of the database (${who.replaceAll(/[^ -~]/g, "?")}), whose transaction is open: end it there, or by select pg_terminate_backend(${pid})`,
  );
  return holders.join("; ") || "the objects to be changed are in use: wait until the sessions that use them end";
}
