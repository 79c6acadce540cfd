// Creates the views and functions, and the role that BI tools read them with.

import { sql } from "kysely";
import { systemCode } from "../../errors.ts";
import type { Database } from "./database.ts";
import { type Tx, tryWithin } from "./transaction.ts";
import { columnComments, type ViewText } from "./view-files.ts";

/** The SQLSTATEs of a replacement that changes columns: Postgres only allows adding columns at the end. */
const COLUMNS_CHANGED = new Set(["42P16", "42P13"]);

/** Gives columns the comment that columns.json has for their name, unless the text of their view comments them itself. */
async function commentColumns(tx: Tx, views: readonly ViewText[]): Promise<void> {
  const comments = columnComments();
  const { rows } = await sql<{ view: string; column: string }>`
    select concat('bi.', relname) as view, attname as "column"
    from pg_attribute join pg_class c on c.oid = attrelid
    where relnamespace = 'bi'::regnamespace and attname = any(${Object.keys(comments)}::text[])
  `.execute(tx);
  const texts = new Map(views.map(({ name, text }) => [name, text]));
  const lacksComment = ({ view, column }: (typeof rows)[number]) =>
    texts.has(view) && !new RegExp(`^comment on column ${view}\\."?${column}"? is`, "m").test(texts.get(view) ?? "");
  const commentOn = ({ view, column }: (typeof rows)[number]) =>
    sql`comment on column ${sql.id(...view.split("."), column)} is ${sql.lit(comments[column])}`;
  const statements = rows.filter(lacksComment).map(commentOn);
  if (statements.length > 0) await sql`${sql.join(statements, sql`;\n`)}`.execute(tx);
}

/** Puts each view after the views that its text names. */
function inDependencyOrder(views: readonly ViewText[]): readonly ViewText[] {
  const ordered = new Set<ViewText>();
  const visit = (view: ViewText) => {
    if (ordered.has(view)) return;
    // A name in a comment or a text literal is no dependency.
    const code = view.text.replaceAll(/--.*$|'(?:[^']|'')*'/gm, "");
    const named = new Set([...code.matchAll(/\b(?:bi|usage_export)\.\w+/g)].map(([name]) => name));
    for (const other of views) if (other !== view && named.has(other.name)) visit(other);
    ordered.add(view);
  };
  for (const view of views) visit(view);
  return [...ordered];
}

/**
 * Creates or replaces the views and functions, and returns their names, each after those that it uses. If columns have changed, drops
 * all that are listed in `stored`, and restores the grants. Fails if somebody else's view uses one, because that view would be lost.
 */
export async function createViews(tx: Tx, unordered: readonly ViewText[], stored: readonly string[]) {
  const views = inDependencyOrder(unordered);
  const create = async () => {
    for (const { text } of views) await sql.raw(text).execute(tx);
  };
  const replaced = await tryWithin(tx, create);
  if ("error" in replaced) {
    if (!COLUMNS_CHANGED.has(systemCode(replaced.error))) throw replaced.error;
    const dropped = await readStored(tx, stored);
    for (const { dropStatement } of dropped) await sql.raw(dropStatement).execute(tx);
    await create();
    for (const grant of dropped.flatMap(({ grants }) => grants)) await sql.raw(grant).execute(tx);
  }
  await commentColumns(tx, views);
  return views.map(({ name }) => name);
}

/** `grants`: the statements that restore the rights of roles other than the owner. */
type StoredObject = { readonly dropStatement: string; readonly grants: readonly string[] };

/** Reads the stored views and functions that still exist, each before the ones that it uses. */
async function readStored(tx: Tx, names: readonly string[]): Promise<readonly StoredObject[]> {
  const { rows } = await sql<StoredObject>`
    select format('drop %s %s', type, identity) as "dropStatement",
      array(
        -- GRANT names the kind only of functions; NULL becomes an empty text.
        select format('grant %s on %s %s to %s %s', privilege_type, case type when 'function' then 'function' end, identity,
          case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end,
          case when is_grantable then 'with grant option' end)
        from aclexplode(acl) where grantee <> owner
      ) as grants
    from unnest(${names}::text[]) with ordinality as stored (name, position)
    join (
      select relnamespace, relname, 'pg_class'::regclass, oid, relacl, relowner from pg_class
      union all
      select pronamespace, proname, 'pg_proc'::regclass, oid, proacl, proowner from pg_proc
    ) as object (schema, name, class, oid, acl, owner)
      on object.name = split_part(stored.name, '.', 2) and schema = split_part(stored.name, '.', 1)::regnamespace
    cross join lateral pg_identify_object(class, oid, 0)
    order by position desc
  `.execute(tx);
  return rows;
}

// The role that BI tools use may read schema bi and nothing else. It belongs to the whole server, so a dump of one database lacks it.

/** What is wrong with the role usage_reader, or undefined. The text is printed after the role's name. */
export async function readerProblem(db: Database): Promise<string | undefined> {
  if (!(await readerExists(db))) {
    return "this role, with which BI tools read, does not exist; run migrate; if your database user may not create roles, have an administrator run `create role usage_reader` first";
  }
  if ((await grantCorrections(db)).length === 0) return undefined;
  return "the rights of this role or of PUBLIC are wrong, for example after a restore; run migrate, which corrects them";
}

/** Creates the role if it is missing, and corrects its rights. Returns false if this user may not create it. */
export async function repairReader(tx: Tx): Promise<boolean> {
  if (!(await readerExists(tx))) {
    // Another session may create the role at the same moment.
    await sql`
      do $$ begin
        create role usage_reader nologin;
      exception when insufficient_privilege or duplicate_object or unique_violation then null;
      end $$
    `.execute(tx);
    if (!(await readerExists(tx))) return false;
  }
  for (const statement of await grantCorrections(tx)) await sql.raw(statement).execute(tx);
  return true;
}

async function readerExists(db: Database): Promise<boolean> {
  const { rows } = await sql`select from pg_roles where rolname = 'usage_reader'`.execute(db);
  return rows.length > 0;
}

/** The statements that correct the rights of the role and of PUBLIC on the program's own views and functions. */
async function grantCorrections(db: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ statement: string }>`
    with program_object as (
      select name, to_regclass(name) as view from usage_export.schema_version, unnest(views) name -- view: NULL for a function
    ), routine as (
      select name, array(select grantee from aclexplode(coalesce(proacl, acldefault('f', proowner)))) as grantees
      from program_object join pg_proc p on p.oid = to_regproc(name)
    )
    select 'grant usage on schema bi to usage_reader' as statement
    where not has_schema_privilege('usage_reader', 'bi', 'usage')
    union all
    select format('grant select on %s to usage_reader', name) from program_object
    where name like 'bi.%' and not has_table_privilege('usage_reader', view, 'select')
    union all
    -- By default, every role may call a new function: its grantees include 0, which is PUBLIC.
    select format('revoke execute on function %s from public', name) from routine where name like 'bi.%' and 0 = any(grantees)
    union all
    -- A view calls its functions with the rights of its reader. Functions outside bi need no grant while PUBLIC may call them.
    select format('grant execute on function %s to usage_reader', name) from routine
    where 'usage_reader'::regrole <> all(grantees) and (name like 'bi.%' or 0 <> all(grantees))
  `.execute(db);
  return rows.map(({ statement }) => statement);
}
