// Interns group values: a value is stored once, and rows hold its number.

import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Group } from "../usage/group.ts";
import type { Grouping } from "../usage/series.ts";
import type { Tx } from "./transaction.ts";

/** Group key to the number its rows hold. */
export type GroupIds = ReadonlyMap<string, number>;

/** Finds or makes the numbers of these groups. */
export async function internGroups(tx: Tx, grouping: Grouping, groups: readonly Group[]): Promise<GroupIds> {
  const byHash = new Map(groups.map((group) => [createHash("sha256").update(group.key).digest("hex"), group]));
  const ids = new Map<string, number>();
  // A value that another process inserts at this moment is seen by the next look only.
  while (ids.size < byHash.size) {
    const missing = [...byHash].filter(([, group]) => !ids.has(group.key)).sort(([a], [b]) => (a < b ? -1 : 1));
    const { rows } = await sql<{ group_id: number; key_hash: string }>`
      with wanted as (
        select * from unnest(
          ${missing.map(([hash]) => hash)}::text[], ${missing.map(([, group]) => group.key)}::text[],
          ${missing.map(([, group]) => group.sent)}::text[], ${missing.map(([, group]) => group.display)}::text[]
        ) as wanted (key_hash, group_key, value_sent, display)
      ), found as (
        select g.group_id, w.key_hash
        from wanted w join usage_export.group_value g on g."grouping" = ${grouping} and g.key_hash = w.key_hash
      ), inserted as (
        insert into usage_export.group_value ("grouping", key_hash, group_key, value_sent, display)
        select ${grouping}, w.key_hash, w.group_key, w.value_sent, w.display
        from wanted w left join found f using (key_hash)
        where f.key_hash is null
        order by w.key_hash
        on conflict do nothing
        returning group_id, key_hash
      )
      select * from found union all select * from inserted
    `.execute(tx);
    for (const { group_id, key_hash } of rows) {
      const group = byHash.get(key_hash);
      if (group) ids.set(group.key, group_id);
    }
  }
  return ids;
}
