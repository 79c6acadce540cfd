// What is stored about the alerts of a project or filter that is renamed.

import { type RawBuilder, sql } from "kysely";
import type { Tx } from "../connection/transaction.ts";

/**
 * Gives the notifications sent about unusual days the new names of their projects and filters: else an open one would be sent
 * again. Called before the periods of the old names end, in the transaction that renames the series.
 */
export async function renameAlerts(tx: Tx): Promise<void> {
  const renamed = sql`
    select distinct on (was) ${alertName("p")} as was, ${alertName("s")} as name
    from usage_export.series s
    join usage_export.series_period p on p.series_id = s.series_id and p.shown_until is null
    where s.source = 'usage' and s.superseded_at is null and (s.project, s.filter) is distinct from (p.project, p.filter)
    order by was, s.retired_at is null desc, name
  `;
  // What was said of something else under the new name says nothing of this one any more.
  await sql`delete from usage_export.notice n using (${renamed}) r where n.subject = r.name and n.state = 'well'`.execute(
    tx,
  );
  await sql`
    update usage_export.notice n set subject = r.name from (${renamed}) r
    where n.subject = r.was and not exists (
      select from usage_export.notice other where other.subject = r.name
    )
  `.execute(tx);
}

/** As facts/conditions.ts names the condition. */
function alertName(table: "s" | "p"): RawBuilder<string> {
  const [project, filter] = [sql.ref(`${table}.project`), sql.ref(`${table}.filter`)];
  return sql<string>`concat_ws(' ', 'anomaly', ${word(project)}, case when s.filter_key <> '{}' then ${word(filter)} end)`;
}

/** As nameWord in facts/conditions.ts. */
function word(name: RawBuilder<unknown>): RawBuilder<string> {
  return sql<string>`case when ${name} ~ '[[:space:]"]' then to_json(${name})::text else ${name} end`;
}
