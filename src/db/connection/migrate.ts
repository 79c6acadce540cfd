// Brings the schema up to date, and checks whether it is.

import fs from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { sql } from "kysely";
import { AppError, systemCode } from "../../errors.ts";
import { MIGRATIONS_FOLDER, programVersion } from "../../package-files.ts";
import { installQueue } from "../jobs/queue.ts";
import type { Database } from "./database.ts";
import { CONFLICT, explainMissingRight, NOT_ALLOWED } from "./errors.ts";
import { withStatementTimeout } from "./timeouts.ts";
import { setUntilCommit, type Tx } from "./transaction.ts";
import { createViews, repairReader } from "./view-creation.ts";
import { fillPlaceholders, readViews, type ViewText, viewsHash } from "./view-files.ts";

/** Any number works, but it must be the same in all versions. */
const MIGRATION_LOCK = 7_205_521_846_402;
/** Creating an index on years of usage takes minutes, and so does the wait for another replica that creates it. */
const STATEMENT_MS_MAX = 30 * 60_000;
/** The SQLSTATE if Postgres refuses to drop or change an object because another one depends on it. */
const DEPENDED_ON = ["2BP01"];
/** The SQLSTATEs of a table and of a schema that does not exist. */
const NOT_THERE = ["42P01", "3F000"];

type MigrateOptions = {
  readonly onWait?: (text: string) => void;
  readonly signal?: AbortSignal | undefined;
  /** The longest wait for a lock. Short, because new readers of a table or view must wait behind a migration that waits to change it. */
  readonly lockMs?: number;
  /** The pause before the next attempt, in which readers can continue. */
  readonly pauseMs?: number;
  readonly giveUpMs?: number;
};

/**
 * In one transaction, applies the missing migrations and then, if a view differs or is gone, replaces all views: a crash leaves the schema
 * as it was. Replicas that migrate at the same time wait for the first one and find nothing left to do. Their lock ends with the
 * transaction: it can't stay behind on a pooler's connection.
 */
export async function migrateToLatest(db: Database, options: MigrateOptions = {}) {
  const migrated = await withStatementTimeout(STATEMENT_MS_MAX, () => retryWhileLocked(db, options), {
    // Ends the session of a process that stalls. Otherwise it would keep the lock, for which other replicas wait up to STATEMENT_MS_MAX.
    idle_in_transaction_session_timeout: "60s",
    // New objects must not use an object that somebody else has put into a schema of the search path.
    search_path: "pg_catalog, pg_temp",
    // STATEMENT_MS_MAX alone limits the wait for another replica's migration. `applyMigrations` limits the waits for later locks.
    lock_timeout: "0",
  });
  // pg-boss has migrations of its own, which do nothing if its tables are up to date.
  await withStatementTimeout(STATEMENT_MS_MAX, () => installQueue(db));
  return migrated;
}

const IN_USE =
  "another session with an open transaction uses what the migration has to change: end that session (select pid, usename, application_name, xact_start from pg_stat_activity where xact_start is not null)";

/** If another session's open transaction blocks a change, the lock timeout (in CONFLICT) ends the attempt, and another attempt follows. */
async function retryWhileLocked(
  db: Database,
  { onWait, signal, lockMs = 3000, pauseMs = 5000, giveUpMs = 5 * 60_000 }: MigrateOptions,
) {
  const startedMs = performance.now();
  for (;;) {
    try {
      return await db.transaction().execute((tx) => applyMigrations(tx, lockMs));
    } catch (error) {
      const refusal = findCause(error, [NOT_ALLOWED]);
      if (refusal) throw await explainMissingRight(db, refusal);
      const dependency = findCause(error, DEPENDED_ON);
      if (dependency && "detail" in dependency) {
        const text = `nothing was migrated, as ${dependency.detail}: drop the dependent object, run migrate again, and create it anew`;
        throw new AppError("database", text, { cause: error });
      }
      if (!findCause(error, CONFLICT)) throw error;
      if (performance.now() - startedMs > giveUpMs) {
        throw new AppError("database", `nothing was migrated: ${IN_USE}; then run migrate again`, { cause: error });
      }
      onWait?.(`${IN_USE}; the next attempt is in ${Math.ceil(pauseMs / 1000)} s`);
      await sleep(pauseMs, undefined, { signal });
    }
  }
}

/** Returns the error that has one of these codes: the given one, or one that caused it. */
function findCause(error: unknown, codes: readonly string[]): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  return codes.includes(systemCode(error)) ? error : findCause(error.cause, codes);
}

/** `views`: how many were created or replaced, all or none. `hasReader`: whether the role usage_reader exists and has its rights. */
async function applyMigrations(tx: Tx, lockMs: number) {
  await sql`select pg_advisory_xact_lock(${sql.lit(MIGRATION_LOCK)})`.execute(tx);
  await setUntilCommit(tx, { lock_timeout: `${lockMs}ms` });
  await createVersionTable(tx);
  const views = readViews();
  const stored = await storedSchema(tx);
  const missing = await findMissing(stored, views);
  for (const file of missing.migrations) await applyMigration(tx, file);
  const migrations = missing.migrations.map(migrationName);
  const replacesViews = missing.viewsDiffer || stored.lacksView;
  const created = replacesViews ? await createViews(tx, views, stored.views) : stored.views;
  if (migrations.length > 0 || replacesViews) {
    await sql`
      update usage_export.schema_version set migrations = migrations || ${migrations}::text[],
        views = ${created}::text[], views_hash = ${viewsHash(views)}, program_version = ${await programVersion()}
    `.execute(tx);
  }
  return { migrations, views: replacesViews ? views.length : 0, hasReader: await repairReader(tx) };
}

/** Does nothing if the table exists: the user may then lack the right to create schemas. Throws for another encoding or too old a Postgres. */
async function createVersionTable(tx: Tx): Promise<void> {
  const { rows } = await sql<{ found: string; isFit: boolean }>`
    select format('%s in Postgres %s', current_setting('server_encoding'), current_setting('server_version')) as found,
      current_setting('server_encoding') = 'UTF8' and current_setting('server_version_num')::integer >= 150000 as "isFit"
    where to_regclass('usage_export.schema_version') is null
  `.execute(tx);
  const [server] = rows;
  if (!server) return;
  const expected = "expected a database in UTF8 in Postgres 15 or later (docs/deployment.md, Database)";
  if (!server.isFit) throw new AppError("database", `nothing was migrated: ${expected}, got one in ${server.found}`);
  await sql`
    create schema usage_export;
    create table usage_export.schema_version (
      migrations      text[] not null,
      -- The views and functions of migrations/views, with their schemas, each after those that it uses.
      views           text[] not null,
      -- SHA-256 of their texts.
      views_hash      text   not null,
      program_version text   not null
    );
    comment on table usage_export.schema_version is 'One row: the version of the tables, views and functions';
    insert into usage_export.schema_version values ('{}', '{}', '', '');
  `.execute(tx);
}

async function applyMigration(tx: Tx, file: string): Promise<void> {
  try {
    const { href } = pathToFileURL(path.join(MIGRATIONS_FOLDER, file));
    const { up }: { up: (db: Tx, fill: typeof fillPlaceholders) => Promise<void> } = await import(href);
    await up(tx, fillPlaceholders);
  } catch (cause) {
    throw new AppError("database", `migration ${migrationName(file)} failed; nothing was changed`, { cause });
  }
}

export async function newestMigration(): Promise<string> {
  return migrationName((await migrationFiles()).at(-1) ?? "");
}

/** Throws an error with the next step if the schema is not that of this version. Most commands begin with this one statement. */
export async function requireCurrentSchema(db: Database): Promise<void> {
  const stored = await storedSchema(db).catch(async (cause: unknown) => {
    throw findCause(cause, NOT_THERE) ? schemaError(NOT_UP_TO_DATE) : await explainMissingRight(db, cause);
  });
  const { migrations, viewsDiffer } = await findMissing(stored, readViews());
  if (migrations.length > 0 || viewsDiffer) throw schemaError(NOT_UP_TO_DATE);
}

const NOT_UP_TO_DATE = "the database is not up to date; run: usage-export migrate";

type StoredSchema = {
  readonly migrations: readonly string[];
  readonly views: readonly string[];
  readonly viewsHash: string;
  readonly programVersion: string;
  /** Whether one of `views` does not exist any more. */
  readonly lacksView: boolean;
};

async function storedSchema(db: Database): Promise<StoredSchema> {
  const { rows } = await sql<StoredSchema>`
    select migrations, views, views_hash as "viewsHash", program_version as "programVersion",
      exists (select from unnest(views) name where coalesce(to_regclass(name)::oid, to_regproc(name)::oid) is null) as "lacksView"
    from usage_export.schema_version
  `.execute(db);
  const [stored] = rows;
  if (!stored) throw schemaError(NOT_UP_TO_DATE);
  return stored;
}

/** The files of the migrations that the database lacks, and whether its views differ. Throws if a newer version migrated it. */
async function findMissing({ migrations: applied, ...stored }: StoredSchema, views: readonly ViewText[]) {
  const files = await migrationFiles();
  const viewsDiffer = stored.viewsHash !== viewsHash(views);
  const version = await programVersion();
  const isUnknown = applied.some((name) => !files.some((file) => migrationName(file) === name));
  if (isUnknown || (viewsDiffer && isNewer(stored.programVersion, version))) {
    const versions = `${stored.programVersion}, this is ${version}`;
    throw schemaError(`the database was migrated by a newer version (${versions}); run that version of usage-export`);
  }
  return { migrations: files.filter((file) => !applied.includes(migrationName(file))), viewsDiffer };
}

function schemaError(message: string): AppError {
  return new AppError("database", message, { details: { schema: "not of this version" } });
}

/** Compares versions such as 0.10.1 and 1.0.0-rc.2. A release gets the suffix -zz, so that it comes after its candidates. */
export function isNewer(version: string, than: string): boolean {
  const [one = "", other = ""] = [version, than].map((text) => (text.includes("-") ? text : `${text}-zz`));
  return one.localeCompare(other, "en", { numeric: true }) > 0;
}

/** The file names, in the order in which the migrations are applied. */
async function migrationFiles(): Promise<readonly string[]> {
  return (await fs.readdir(MIGRATIONS_FOLDER)).filter((file) => /\.c?[jt]s$/.test(file)).sort();
}

function migrationName(file: string): string {
  return path.parse(file).name;
}
