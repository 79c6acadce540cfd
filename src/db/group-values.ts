// Interns group values: a value is stored once, and rows hold its number.

import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Group } from "../usage/group.ts";
import type { Grouping } from "../usage/series.ts";
import type { Tx } from "./transaction.ts";

/** A group as a row of its grouping. */
export type GroupOf = { readonly grouping: Grouping; readonly group: Group };

/** The numbers that rows hold, by grouping and key of the group: a text of both would be made for each of a million rows. */
export type GroupIds = ReadonlyMap<Grouping, ReadonlyMap<string, number>>;

export function groupId(ids: GroupIds, grouping: Grouping, group: Group): number | undefined {
  return ids.get(grouping)?.get(group.key);
}

type Wanted = GroupOf & { readonly hash: string };

/** Finds or makes the numbers of these groups. */
export async function internGroups(tx: Tx, groups: readonly GroupOf[]): Promise<GroupIds> {
  const byHash = new Map(groups.map((one) => withHash(one)).map((one) => [`${one.grouping} ${one.hash}`, one]));
  const ids = new Map<Grouping, Map<string, number>>();
  let missing = [...byHash].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
  // A value that another process inserts at this moment is seen by the next look only.
  while (missing.length > 0) {
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
      if (one) ids.set(grouping, (ids.get(grouping) ?? new Map<string, number>()).set(one.group.key, group_id));
    }
    missing = missing.filter(({ grouping, group }) => groupId(ids, grouping, group) === undefined);
  }
  return ids;
}

function withHash({ grouping, group }: GroupOf): Wanted {
  return { grouping, group, hash: createHash("sha256").update(group.key).digest("hex") };
}
