// Merges the rows of slices into the table snapshot_row. Group values are stored once, and rows hold their id.

import { hash } from "node:crypto";
import { type RawBuilder, sql } from "kysely";
import type { Group, NormalisedSlice } from "../../usage/answer-rows.ts";
import { STORED_METRICS, type StoredMetric } from "../../usage/metrics.ts";
import type { Grouping } from "../../usage/series.ts";
import type { Tx } from "../connection/transaction.ts";
import { type SliceRef, sliceKey } from "./stored-slices.ts";

export function metricColumns(prefix: string, metrics: readonly StoredMetric[] = STORED_METRICS) {
  return sql.join([...metrics, "extra_metrics"].map((name) => sql.ref(`${prefix}${name}`)));
}

const METRIC_COLUMNS = metricColumns("");

type GroupedRows = Pick<NormalisedSlice, "columns"> & { readonly grouping: Grouping };

/**
 * Returns by `sliceKey` how many rows appeared, changed or disappeared. The rows of the answers are joined with the stored ones first, so
 * that a row with the same numbers is never written: an UPDATE that changes nothing costs as much as one that does. The row of a group that
 * is gone is kept and marked as gone, so that its revisions continue if the group comes back. Replaced rows go to superseded_row.
 */
export async function mergeRows(tx: Tx, slices: readonly (SliceRef & GroupedRows)[], groupIds: GroupIds, seenAt: Date) {
  if (slices.length === 0) return new Map<string, number>();
  const { rows: counted } = await sql<SliceRef & { readonly changed: string | number }>`
    with incoming as (
      ${selectIncoming(slices, groupIds)}
    ), target as (
      -- The slices are looked up once, before the rows are joined: the planner can't estimate how many rows there are, and would read
      -- every stored slice for them. A slice that an answer was stored for before is restated.
      select slice_no::integer, sl.series_id, sl.usage_date, sl.fetch_no > 0 as restates
      from unnest(
        ${slices.map(({ seriesId }) => seriesId)}::integer[], ${slices.map(({ day }) => day)}::text[]::date[]
      ) with ordinality as target (series_id, usage_date, slice_no)
      join usage_export.slice sl using (series_id, usage_date)
    ), stored as (
      select target.slice_no, r.* from target join usage_export.snapshot_row r using (series_id, usage_date)
    ), difference as (
      select coalesce(i.slice_no, s.slice_no) as slice_no, coalesce(i.group_id, s.group_id) as group_id,
        case when i.group_id is null then 'gone' when s.group_id is null or s.gone then 'appeared' else 'changed' end as kind,
        coalesce(s.revision, 0) + 1 as revision, ${metricColumns("i.")}
      from incoming i
      full join stored s on s.slice_no = i.slice_no and s.group_id = i.group_id
      where s.group_id is null
        or (i.group_id is null and not s.gone)
        or (i.group_id is not null and (s.gone or (${metricColumns("s.")}) is distinct from (${metricColumns("i.")})))
    ), changing as (
      select * from difference join target using (slice_no)
    ), inserted as (
      insert into usage_export.snapshot_row
        (series_id, usage_date, group_id, ${METRIC_COLUMNS}, revision, restates, first_seen_at, last_changed_at)
      select series_id, usage_date, group_id, ${METRIC_COLUMNS}, 1, restates, ${seenAt}::timestamptz, ${seenAt}::timestamptz
      from changing where revision = 1
    ), superseded as (
      -- Every part of a statement sees the rows as they were before it: these are the rows that "updated" replaces.
      insert into usage_export.superseded_row
        (series_id, usage_date, group_id, ${METRIC_COLUMNS}, gone, revision, restates, returned, first_seen_at,
          last_changed_at, superseded_at)
      select r.series_id, r.usage_date, r.group_id, ${metricColumns("r.")}, r.gone, r.revision, r.restates, r.returned,
        r.first_seen_at, r.last_changed_at, ${seenAt}::timestamptz
      from changing c
      join usage_export.snapshot_row r using (series_id, usage_date, group_id)
      where c.revision > 1
    ), updated as (
      update usage_export.snapshot_row r
      set (${METRIC_COLUMNS}) = (select ${metricColumns("c.")}), gone = c.kind = 'gone', returned = c.kind = 'appeared',
        revision = c.revision, restates = c.restates, last_changed_at = ${seenAt}::timestamptz
      from changing c
      where c.revision > 1 and r.series_id = c.series_id and r.usage_date = c.usage_date and r.group_id = c.group_id
    )
    select series_id as "seriesId", usage_date as day, count(*) as changed from changing group by series_id, usage_date
  `.execute(tx);
  return new Map(counted.map((slice) => [sliceKey(slice), Number(slice.changed)]));
}

/** Selects the rows of the answers. `slice_no` is the position of their slice, from 1. */
export function selectIncoming(slices: readonly GroupedRows[], groupIds: GroupIds): RawBuilder<unknown> {
  const sliceNos = slices.flatMap(({ columns }, i) => columns.groups.map(() => i + 1));
  const ids = slices.flatMap(({ grouping, columns }) => {
    const idsOfGrouping = groupIds.get(grouping);
    return columns.groups.map(({ key }) => idsOfGrouping?.get(key));
  });
  const numbers = STORED_METRICS.map(
    (metric) => sql`unnest(${numbersArray(amountsOf(slices, metric))}::numeric[]) as ${sql.ref(metric)}`,
  );
  const extras = slices.flatMap(({ columns }) => columns.extras);
  // unnest in the select list reads the arrays side by side; in the from clause Postgres would first store each array as rows. An
  // array that is shorter than the others is filled up with nulls.
  return sql`
      select unnest(${numbersArray(sliceNos)}::integer[]) as slice_no, unnest(${numbersArray(ids)}::integer[]) as group_id,
        ${sql.join(numbers)}, unnest(${extras.some((extra) => extra !== null) ? extras : []}::text[])::jsonb as extra_metrics
  `;
}

/** The amount of each row; empty if no slice has the metric. */
function amountsOf(slices: readonly GroupedRows[], metric: StoredMetric): readonly (string | null)[] {
  if (!slices.some(({ columns }) => columns.metricNames.includes(metric))) return [];
  return slices.flatMap(
    ({ columns: { groups, metricNames, metrics } }) => metrics[metricNames.indexOf(metric)] ?? groups.map(() => null),
  );
}

/** An array of numbers as Postgres writes it. Numbers need no quoting; the driver would examine each of a million values for it. */
export function numbersArray(values: readonly (number | string | null | undefined)[]): string {
  return `{${values.map((value) => value ?? "NULL").join(",")}}`;
}

/** The ids by grouping and by key of the group. A single map would need a combined key, a new text, for each of a million rows. */
export type GroupIds = ReadonlyMap<Grouping, ReadonlyMap<string, number>>;

/** Finds or creates the ids of the groups of these rows. A transaction that wants to insert the same group waits until this one ends. */
export async function internGroups(tx: Tx, slices: readonly GroupedRows[]): Promise<GroupIds> {
  const ids = new Map<Grouping, Map<string, number>>();
  const wanted = groupsByHash(slices);
  // A value that another process inserts at the same time is found only by the next statement.
  while (wanted.size > 0) {
    const missing = [...wanted].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
    const { rows } = await sql<{ group_id: number; grouping: Grouping; key_hash: string }>`
      with wanted as (
        select * from unnest(
          ${missing.map(({ grouping }) => grouping)}::text[], ${missing.map(({ hash }) => hash)}::text[],
          ${missing.map(({ group }) => group.key)}::text[], ${missing.map(({ group }) => group.display)}::text[]
        ) as wanted ("grouping", key_hash, group_key, display)
      ), found as (
        select g.group_id, w."grouping", w.key_hash
        from wanted w join usage_export.group_value g using ("grouping", key_hash)
      ), inserted as (
        insert into usage_export.group_value ("grouping", key_hash, group_key, display)
        select w."grouping", w.key_hash, w.group_key, w.display
        from wanted w left join found f using ("grouping", key_hash)
        where f.key_hash is null
        order by w."grouping", w.key_hash
        on conflict do nothing
        returning group_id, "grouping", key_hash
      )
      select * from found union all select * from inserted
    `.execute(tx);
    for (const { group_id, grouping, key_hash } of rows) {
      const name = `${grouping} ${key_hash}`;
      const key = wanted.get(name)?.group.key;
      if (key !== undefined) ids.set(grouping, (ids.get(grouping) ?? new Map<string, number>()).set(key, group_id));
      wanted.delete(name);
    }
  }
  return ids;
}

/** Each group of the rows once. Its key is hashed once, as the same groups are in most slices. */
function groupsByHash(slices: readonly GroupedRows[]) {
  const byHash = new Map<string, { readonly grouping: Grouping; readonly group: Group; readonly hash: string }>();
  for (const [grouping, ofGrouping] of Map.groupBy(slices, (slice) => slice.grouping)) {
    const byKey = new Map<string, Group>();
    for (const { columns } of ofGrouping) for (const group of columns.groups) byKey.set(group.key, group);
    for (const group of byKey.values()) {
      const digest = hash("sha256", group.key);
      byHash.set(`${grouping} ${digest}`, { grouping, group, hash: digest });
    }
  }
  return byHash;
}
