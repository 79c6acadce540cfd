// Interns group values: a value is stored once, and rows hold its number.

import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Group } from "../usage/group.ts";
import type { Grouping } from "../usage/series.ts";
import type { Tx } from "./transaction.ts";

/** A group as a row of its grouping. */
export type GroupOf = { readonly grouping: Grouping; readonly group: Group };

/** By `groupIdKey`, the number that rows hold. */
export type GroupIds = ReadonlyMap<string, number>;

export function groupIdKey(grouping: Grouping, group: Group): string {
  return `${grouping} ${group.key}`;
}

type Wanted = GroupOf & { readonly hash: string };

/** Finds or makes the numbers of these groups. */
export async function internGroups(tx: Tx, groups: readonly GroupOf[]): Promise<GroupIds> {
  const byHash = new Map(groups.map((one) => withHash(one)).map((one) => [`${one.grouping} ${one.hash}`, one]));
  const ids = new Map<string, number>();
  // A value that another process inserts at this moment is seen by the next look only.
  while (ids.size < byHash.size) {
    const missing = [...byHash]
      .filter(([, { grouping, group }]) => !ids.has(groupIdKey(grouping, group)))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, one]) => one);
    const { rows } = await sql<{ group_id: number; grouping: Grouping; key_hash: string }>`
      with wanted as (
        select * from unnest(
          ${missing.map(({ grouping }) => grouping)}::text[], ${missing.map(({ hash }) => hash)}::text[],
          ${missing.map(({ group }) => group.key)}::text[], ${missing.map(({ group }) => group.sent)}::text[],
          ${missing.map(({ group }) => group.display)}::text[]
        ) as wanted ("grouping", key_hash, group_key, value_sent, display)
      ), found as (
        select g.group_id, w."grouping", w.key_hash
        from wanted w join usage_export.group_value g using ("grouping", key_hash)
      ), inserted as (
        insert into usage_export.group_value ("grouping", key_hash, group_key, value_sent, display)
        select w."grouping", w.key_hash, w.group_key, w.value_sent, w.display
        from wanted w left join found f using ("grouping", key_hash)
        where f.key_hash is null
        order by w."grouping", w.key_hash
        on conflict do nothing
        returning group_id, "grouping", key_hash
      )
      select * from found union all select * from inserted
    `.execute(tx);
    for (const { group_id, grouping, key_hash } of rows) {
      const one = byHash.get(`${grouping} ${key_hash}`);
      if (one) ids.set(groupIdKey(grouping, one.group), group_id);
    }
  }
  return ids;
}

function withHash({ grouping, group }: GroupOf): Wanted {
  return { grouping, group, hash: createHash("sha256").update(group.key).digest("hex") };
}
