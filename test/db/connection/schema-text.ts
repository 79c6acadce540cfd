// Reads the schema from the catalogue as text with its comments.

import { sql } from "kysely";
import type { Database } from "../../../src/db/connection/database.ts";

/** One line for each view, table, column, constraint, index and function, ordered by name. */
export async function schemaText(db: Database): Promise<string> {
  // The text must not depend on the server's version, so it leaves out not-null constraints, which only Postgres 18 and later catalogue.
  const { rows } = await sql<{ line: string }>`
    with ours as (
      select c.oid, c.relname, c.relkind, n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname in ('bi', 'usage_export')
    ), lines as (
      select oid::regclass::text as name, 0 as part, 0 as i,
        case relkind when 'r' then 'table' when 'v' then 'view' else 'sequence' end || ' ' || oid::regclass
          || coalesce(' -- ' || obj_description(oid, 'pg_class'), '') as line
      from ours where relkind in ('r', 'v') or (relkind = 'S' and not exists (
        select from pg_depend d where d.objid = ours.oid and d.deptype = 'i'))
      union all
      select ours.oid::regclass::text, 1, attnum,
        '  ' || quote_ident(attname) || ' ' || format_type(atttypid, atttypmod)
          || case when attnotnull then ' not null' else '' end
          || case when attidentity <> '' then ' identity' else '' end
          || coalesce(' default ' || pg_get_expr(adbin, adrelid), '')
          || coalesce(' -- ' || col_description(ours.oid, attnum), '')
      from ours
      join pg_attribute a on a.attrelid = ours.oid and attnum > 0 and not attisdropped and relkind in ('r', 'v')
      left join pg_attrdef on adrelid = ours.oid and adnum = attnum
      union all
      select ours.oid::regclass::text, 2, 0, '  ' || pg_get_constraintdef(k.oid)
      from ours join pg_constraint k on k.conrelid = ours.oid and contype <> 'n'
      union all
      select ours.oid::regclass::text, 3, 0, '  ' || pg_get_indexdef(indexrelid)
      from ours join pg_index on indrelid = ours.oid
      union all
      select p.oid::regprocedure::text, 4, 0,
        'function ' || p.oid::regprocedure || ' returns ' || pg_get_function_result(p.oid)
          || coalesce(' -- ' || obj_description(p.oid, 'pg_proc'), '')
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname in ('bi', 'usage_export')
    )
    select line from lines order by name collate "C", part, i, line collate "C"
  `.execute(db);
  return rows.map(({ line }) => `${line}\n`).join("");
}
