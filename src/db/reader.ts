// The role that BI tools use: it may read schema bi and nothing else. The role belongs to the whole server, so a dump of one
// database does not contain it.

import { sql } from "kysely";
import type { Database } from "./database.ts";
import type { Tx } from "./transaction.ts";

/** The role exists already, or another session creates it at the same moment. */
const EXISTS = new Set(["42710", "23505"]);
const NOT_ALLOWED = "42501";

/** Creates the role if it is missing and grants what it lacks. False if the role is missing and this user may not create it. */
export async function repairReader(tx: Tx): Promise<boolean> {
  if (!(await readerExists(tx)) && !(await isCreated(tx))) return false;
  for (const statement of await missingGrants(tx)) await sql.raw(statement).execute(tx);
  return true;
}

async function isCreated(tx: Tx): Promise<boolean> {
  await sql`savepoint create_reader`.execute(tx);
  try {
    await sql`create role usage_reader nologin`.execute(tx);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (!EXISTS.has(code) && code !== NOT_ALLOWED) throw error;
    await sql`rollback to savepoint create_reader`.execute(tx);
    return code !== NOT_ALLOWED;
  }
  await sql`release savepoint create_reader`.execute(tx);
  return true;
}

export async function readerExists(db: Database): Promise<boolean> {
  const { rows } = await sql`select from pg_roles where rolname = 'usage_reader'`.execute(db);
  return rows.length > 0;
}

/** The statements that correct the rights of the role. Views of other owners are not touched. */
export async function missingGrants(db: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ statement: string }>`
    with ours as (select name from usage_export.view_version),
    routine as (
      select n.nspname, proname, p.oid, format('%I.%I(%s)', n.nspname, proname, pg_get_function_identity_arguments(p.oid)) as signature,
        coalesce(proacl, acldefault('f', proowner)) as acl
      from pg_proc p join pg_namespace n on n.oid = pronamespace
      where n.nspname || '.' || proname in (select name from ours)
    )
    select 'grant usage on schema bi to usage_reader' as statement
    where not has_schema_privilege('usage_reader', 'bi', 'usage')
    union all
    select format('grant select on %I.%I to usage_reader', n.nspname, relname)
    from pg_class c join pg_namespace n on n.oid = relnamespace
    where n.nspname = 'bi' and n.nspname || '.' || relname in (select name from ours)
      and not has_table_privilege('usage_reader', c.oid, 'select')
    union all
    select format('revoke execute on function %s from public', signature) from routine
    where nspname = 'bi' and exists (select from aclexplode(acl) where grantee = 0)
    union all
    -- Whoever reads a view calls the functions of it, whatever its schema.
    select format('grant execute on function %s to usage_reader', signature) from routine
    where not exists (
      select from aclexplode(acl)
      where grantee = 'usage_reader'::regrole or (grantee = 0 and nspname <> 'bi')
    )
  `.execute(db);
  return rows.map(({ statement }) => statement);
}
