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
import { expandLists } from "./expand-lists.ts";
import {
  describeMissingRight,
  explainMissingRight,
  isMissingRight,
  prepareSchemas,
  repairReader,
} from "./installation.ts";
import { withStatementTimeout } from "./timeouts.ts";
import { setUntilCommit, type Tx } from "./transaction.ts";
import {
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
  await prepareSchemas(tx);
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

async function appliedMigrations(db: Database): Promise<readonly string[]> {
  const { rows: tables } = await sql`
    select where to_regclass('usage_export.kysely_migration') is not null
  `.execute(db);
  if (tables.length === 0) return [];
  const { rows } = await sql<{ name: string }>`
    select name from usage_export.kysely_migration order by name
  `.execute(db);
  return rows.map(({ name }) => name);
}

// Finds the sessions that block a change of the schema: they have read what is to change, and their transaction is still open.

type LockHolder = {
  readonly pid: number;
  readonly transaction: string;
  readonly user: string | null;
  readonly application: string | null;
  readonly relations: readonly string[];
};

/** A session that still holds its locks after this time is not just running a short query. */
const LOCK_SAMPLE_MS = 300;
const LOCK_HOLDERS_NAMED_MAX = 3;

/** Names the sessions and the next step, worded as the beginning of a sentence. */
async function describeLockHolders(db: Database): Promise<string> {
  const before = await readLockHolders(db);
  await sleep(LOCK_SAMPLE_MS);
  const transactions = new Set(before.map(({ transaction }) => transaction));
  const holders = (await readLockHolders(db)).filter(({ transaction }) => transactions.has(transaction));
  if (holders.length === 0)
    return "the objects to be changed are in use, but the sessions that use them could not be found: wait until they end";
  return holders.slice(0, LOCK_HOLDERS_NAMED_MAX).map(describeLockHolder).join("; ");
}

function describeLockHolder({ pid, user, application, relations }: LockHolder): string {
  const [first = "", ...others] = relations;
  const what = others.length === 0 ? `${first} is` : `${first} and ${others.length} more are`;
  const who = [`user ${user ?? "unknown"}`, ...(application ? [application] : [])]
    .join(", ")
    .replaceAll(/[^ -~]/g, "?");
  return `${what} in use by process ${pid} of the database (${who}), whose transaction is open: end it there, or by select pg_terminate_backend(${pid})`;
}

async function readLockHolders(db: Database): Promise<readonly LockHolder[]> {
  const { rows } = await sql<LockHolder>`
    select l.pid, l.virtualtransaction as transaction, a.usename::text as "user", a.application_name as application,
      array_agg(distinct n.nspname || '.' || c.relname order by n.nspname || '.' || c.relname) as relations
    from pg_catalog.pg_locks l
    join pg_catalog.pg_database d on d.oid = l.database and d.datname = current_database()
    join pg_catalog.pg_class c on c.oid = l.relation and c.relkind in ('r', 'v')
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname in ('bi', 'usage_export')
    left join pg_catalog.pg_stat_activity a on a.pid = l.pid
    where l.granted and l.pid <> pg_backend_pid()
    group by l.pid, l.virtualtransaction, a.usename, a.application_name
    order by l.pid
  `.execute(db);
  return rows;
}
