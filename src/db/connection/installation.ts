// What a database has to offer the program: the rights that are missing, what `check` reports about it, and the role that BI tools use.

import { sql } from "kysely";
import { AppError, systemCode } from "../../errors.ts";
import type { Database } from "./database.ts";
import { type Tx, tryStatement } from "./transaction.ts";

/** SQLSTATE of a missing right. */
const NOT_ALLOWED = "42501";

/** The next step after the server refused a statement for lack of a right. */
export async function describeMissingRight(db: Database): Promise<string> {
  const { rows } = await sql<{ user: string; database: string; owner: string | null }>`
    select current_user::pg_catalog.text as user, pg_catalog.quote_ident(pg_catalog.current_database()) as database,
      (select pg_catalog.pg_get_userbyid(nspowner) from pg_catalog.pg_namespace where nspname = 'usage_export') as owner
  `.execute(db);
  const { user = "", database = "", owner = null } = rows[0] ?? {};
  if (owner === null) {
    return `user ${user} may not create the schemas usage_export, usage_export_queue and bi: have an administrator run: grant create on database ${database} to ${user}`;
  }
  if (owner === user) return `user ${user} lacks a right that it needs`;
  return `this is user ${user}, and the tables are ${owner}'s: connect as ${owner}`;
}

/** The error for a person, with the next step, if the server refused a statement for lack of a right; every other error as it is. */
export async function explainMissingRight(db: Database, error: unknown): Promise<unknown> {
  if (error instanceof AppError || !isMissingRight(error)) return error;
  return new AppError("database", `${error.message}: ${await describeMissingRight(db)}`, { cause: error });
}

export function isMissingRight(error: unknown): error is Error {
  return error instanceof Error && (systemCode(error) === NOT_ALLOWED || isMissingRight(error.cause));
}

export type DatabaseFinding = { readonly what: string; readonly state: "ok" | "warn" | "fail"; readonly text: string };

/** What keeps the program or BI tools from their work; empty if nothing does. */
export async function checkInstallation(db: Database): Promise<readonly DatabaseFinding[]> {
  const { rows } = await sql<{ isStandby: boolean; isReadOnly: boolean }>`
    select pg_is_in_recovery() as "isStandby", current_setting('transaction_read_only') = 'on' as "isReadOnly"
  `.execute(db);
  const text = rows[0]?.isStandby
    ? "the database is a standby, which takes no writes: connect to the primary"
    : "the database is read-only (default_transaction_read_only is on, for it or for this user): turn that off, or connect to another one";
  const isReadOnly = rows.some(({ isStandby, isReadOnly }) => isStandby || isReadOnly);
  return [...(isReadOnly ? [{ what: "writes", state: "fail" as const, text }] : []), ...(await readerFindings(db))];
}

async function readerFindings(db: Database): Promise<readonly DatabaseFinding[]> {
  const text = !(await readerExists(db))
    ? "the role that BI tools read with does not exist; run migrate; if its user may create no roles, have `create role usage_reader` run before"
    : (await missingGrants(db)).length > 0
      ? "its rights are not those it should have, as after a restore; run migrate, which grants them"
      : undefined;
  return text === undefined ? [] : [{ what: "usage_reader", state: "warn", text }];
}

// The role that BI tools use: it may read schema bi and nothing else. The role belongs to the whole server, so a dump of one
// database does not contain it.

/** The role exists already, or another session creates it at the same moment. */
const ROLE_EXISTS = ["42710", "23505"];

/** Creates the role if it is missing and grants what it lacks. False if the role is missing and this user may not create it. */
export async function repairReader(tx: Tx): Promise<boolean> {
  if (!(await readerExists(tx)) && !(await createReader(tx))) return false;
  for (const statement of await missingGrants(tx)) await sql.raw(statement).execute(tx);
  return true;
}

async function createReader(tx: Tx): Promise<boolean> {
  const creation = sql`create role usage_reader nologin`;
  return (await tryStatement(tx, creation, new Set([...ROLE_EXISTS, NOT_ALLOWED]))) !== NOT_ALLOWED;
}

async function readerExists(db: Database): Promise<boolean> {
  const { rows } = await sql`select from pg_roles where rolname = 'usage_reader'`.execute(db);
  return rows.length > 0;
}

/** The statements that give the role the rights that it lacks on the program's own views and functions. */
async function missingGrants(db: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ statement: string }>`
    with own as (
      select name, to_regclass(name) as view, to_regproc(name) as function
      from usage_export.schema_version, unnest(views) name
    )
    select 'grant usage on schema bi to usage_reader' as statement
    where not has_schema_privilege('usage_reader', 'bi', 'usage')
    union all
    select format('grant select on %s to usage_reader', name) from own
    where name like 'bi.%' and not has_table_privilege('usage_reader', view, 'select')
    union all
    -- A view calls its functions with the rights of its reader.
    select format('grant execute on function %s to usage_reader', name) from own
    where not has_function_privilege('usage_reader', function, 'execute')
  `.execute(db);
  return rows.map(({ statement }) => statement);
}
