// Writes the rows of slices: one statement that finds what differs, writes only that, and records it.

import { sql } from "kysely";
import { METRICS } from "../usage/metrics.ts";
import type { NormalisedSlice } from "../usage/normalise.ts";
import type { GroupIds } from "./group-values.ts";
import type { Tx } from "./transaction.ts";

const METRIC_COLUMNS = sql.join([...METRICS, "extra_metrics"].map((name) => sql.ref(name)));
const columnsOf = (table: string) => sql.join([...METRICS, "extra_metrics"].map((name) => sql.ref(`${table}.${name}`)));

/**
 * Joins the answer's rows with the stored ones first, so that a row with the same numbers is never written: an UPDATE
 * that changes nothing costs as much as one that does. A group that is gone keeps its row, marked, so that its revisions
 * go on where it comes back.
 */
export async function mergeRows(
  tx: Tx,
  seriesId: number,
  slices: readonly NormalisedSlice[],
  groupIds: GroupIds,
  seenAt: Date,
): Promise<number> {
  const rows = slices.flatMap((slice) => slice.rows.map((row) => ({ day: slice.day, row })));
  const numbers = METRICS.map(
    (_, i) => sql`${rows.map(({ row }) => row.metrics.values[i] ?? null)}::text[]::numeric[]`,
  );
  const { rows: counted } = await sql<{ changed: string | number }>`
    with incoming as (
      select * from unnest(
        ${rows.map(({ day }) => day)}::text[]::date[],
        ${rows.map(({ row }) => groupIds.get(row.group.key) ?? null)}::integer[],
        ${sql.join(numbers)},
        ${rows.map(({ row }) => row.metrics.extra)}::text[]::jsonb[]
      ) as incoming (usage_date, group_id, ${METRIC_COLUMNS})
    ), stored as (
      select * from usage_export.snapshot_row
      where series_id = ${seriesId} and usage_date = any(${slices.map(({ day }) => day)}::text[]::date[])
    ), difference as (
      select coalesce(i.usage_date, s.usage_date) as usage_date, coalesce(i.group_id, s.group_id) as group_id,
        case when i.group_id is null then 'gone' when s.group_id is null or s.gone then 'appeared' else 'changed' end as kind,
        coalesce(s.revision, 0) + 1 as revision, ${columnsOf("i")}
      from incoming i
      full join stored s on s.usage_date = i.usage_date and s.group_id = i.group_id
      where s.group_id is null
        or (i.group_id is null and not s.gone)
        or (i.group_id is not null and (s.gone or (${columnsOf("s")}) is distinct from (${columnsOf("i")})))
    ), inserted as (
      insert into usage_export.snapshot_row
        (series_id, usage_date, group_id, ${METRIC_COLUMNS}, revision, first_seen_at, last_changed_at)
      select ${seriesId}::integer, usage_date, group_id, ${METRIC_COLUMNS}, 1, ${seenAt}::timestamptz, ${seenAt}::timestamptz
      from difference where revision = 1
    ), updated as (
      update usage_export.snapshot_row r
      set (${METRIC_COLUMNS}) = (select ${columnsOf("d")}), gone = d.kind = 'gone', revision = d.revision,
        last_changed_at = ${seenAt}::timestamptz
      from difference d
      where d.revision > 1 and r.series_id = ${seriesId} and r.usage_date = d.usage_date and r.group_id = d.group_id
    ), recorded as (
      insert into usage_export.snapshot_change
        (series_id, usage_date, group_id, revision, kind, restates, seen_at, ${METRIC_COLUMNS})
      select ${seriesId}::integer, d.usage_date, d.group_id, d.revision, d.kind, sl.fetch_no > 0, ${seenAt}::timestamptz,
        ${columnsOf("d")}
      from difference d
      join usage_export.slice sl on sl.series_id = ${seriesId} and sl.usage_date = d.usage_date
    )
    select count(*) as changed from difference
  `.execute(tx);
  return Number(counted[0]?.changed ?? 0);
}
