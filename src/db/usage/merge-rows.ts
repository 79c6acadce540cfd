// Writes the rows of slices in one statement: it finds what differs, writes only that, and keeps the rows it replaces. Group
// values are stored once, and rows hold their id.

import { createHash } from "node:crypto";
import { type RawBuilder, sql } from "kysely";
import type { Group, NormalisedSlice } from "../../usage/answer-rows.ts";
import { METRICS, STORED_METRICS, type StoredMetric } from "../../usage/metrics.ts";
import type { Grouping } from "../../usage/series.ts";
import type { decideSnapshot, StoredSnapshot } from "../../usage/slice-decision.ts";
import type { Database } from "../connection/database.ts";
import type { Tx } from "../connection/transaction.ts";
import { deleteUndatedFailures } from "./failures.ts";
import { lockSeries } from "./stored-series.ts";
import { type SliceRef, sliceKey } from "./stored-slices.ts";

const METRIC_COLUMNS = sql.join([...STORED_METRICS, "extra_metrics"].map((name) => sql.ref(name)));
const columnsOf = (table: string) =>
  sql.join([...STORED_METRICS, "extra_metrics"].map((name) => sql.ref(`${table}.${name}`)));

export type SliceRows = SliceRef & { readonly grouping: Grouping } & Pick<NormalisedSlice, "columns">;

/** By `sliceKey`, how many rows appeared, changed or disappeared. Slices without such rows are left out. */
export type ChangedRows = ReadonlyMap<string, number>;

/**
 * Joins the rows of the answers with the stored ones first, so that a row with the same numbers is never written: an UPDATE
 * that changes nothing costs as much as one that does. The row of a group that is gone is kept and marked as
 * gone, so that its revisions continue if the group comes back.
 */
export async function mergeRows(
  tx: Tx,
  slices: readonly SliceRows[],
  groupIds: GroupIds,
  seenAt: Date,
): Promise<ChangedRows> {
  if (slices.length === 0) return new Map();
  const { rows: counted } = await sql<SliceRef & { readonly changed: string | number }>`
    with incoming as (
      ${selectIncoming(slices, groupIds)}
    ), replaced as (
      -- The slices are looked up once, before the rows are joined: the planner can't estimate how many rows there are, and would read
      -- every stored slice for them.
      select slice_no::integer, sl.series_id, sl.usage_date, sl.fetch_no > 0 as restates
      from unnest(
        ${slices.map(({ seriesId }) => seriesId)}::integer[], ${slices.map(({ day }) => day)}::text[]::date[]
      ) with ordinality as replaced (series_id, usage_date, slice_no)
      join usage_export.slice sl using (series_id, usage_date)
    ), stored as (
      select replaced.slice_no, r.* from replaced join usage_export.snapshot_row r using (series_id, usage_date)
    ), difference as (
      select coalesce(i.slice_no, s.slice_no) as slice_no, coalesce(i.group_id, s.group_id) as group_id,
        case when i.group_id is null then 'gone' when s.group_id is null or s.gone then 'appeared' else 'changed' end as kind,
        coalesce(s.revision, 0) + 1 as revision, ${columnsOf("i")}
      from incoming i
      full join stored s on s.slice_no = i.slice_no and s.group_id = i.group_id
      where s.group_id is null
        or (i.group_id is null and not s.gone)
        or (i.group_id is not null and (s.gone or (${columnsOf("s")}) is distinct from (${columnsOf("i")})))
    ), placed as (
      select * from difference join replaced using (slice_no)
    ), inserted as (
      insert into usage_export.snapshot_row
        (series_id, usage_date, group_id, ${METRIC_COLUMNS}, revision, restates, first_seen_at, last_changed_at)
      select series_id, usage_date, group_id, ${METRIC_COLUMNS}, 1, restates, ${seenAt}::timestamptz, ${seenAt}::timestamptz
      from placed where revision = 1
    ), superseded as (
      -- Every part of a statement sees the rows as they were before it: these are the rows that "updated" replaces.
      insert into usage_export.superseded_row
        (series_id, usage_date, group_id, ${METRIC_COLUMNS}, gone, revision, restates, returned, first_seen_at,
          last_changed_at, superseded_at)
      select r.series_id, r.usage_date, r.group_id, ${columnsOf("r")}, r.gone, r.revision, r.restates, r.returned,
        r.first_seen_at, r.last_changed_at, ${seenAt}::timestamptz
      from placed d
      join usage_export.snapshot_row r using (series_id, usage_date, group_id)
      where d.revision > 1
    ), updated as (
      update usage_export.snapshot_row r
      set (${METRIC_COLUMNS}) = (select ${columnsOf("d")}), gone = d.kind = 'gone', returned = d.kind = 'appeared',
        revision = d.revision, restates = d.restates, last_changed_at = ${seenAt}::timestamptz
      from placed d
      where d.revision > 1 and r.series_id = d.series_id and r.usage_date = d.usage_date and r.group_id = d.group_id
    )
    select series_id as "seriesId", usage_date as day, count(*) as changed from placed group by series_id, usage_date
  `.execute(tx);
  return new Map(counted.map((slice) => [sliceKey(slice), Number(slice.changed)]));
}

/** The rows of the answers. `slice_no` is the position of their slice, from 1. */
function selectIncoming(slices: readonly SliceRows[], groupIds: GroupIds): RawBuilder<unknown> {
  const sliceNos = slices.flatMap(({ columns }, i) => columns.groups.map(() => i + 1));
  const ids = slices.flatMap((slice) => groupIdsOf(groupIds, slice));
  const numbers = STORED_METRICS.map(
    (metric) => sql`unnest(${plainArray(amountsOf(slices, metric))}::numeric[]) as ${sql.ref(metric)}`,
  );
  const extras = slices.flatMap(({ columns }) => columns.extras);
  // unnest in the select list reads the arrays side by side; in the from clause Postgres would first store each array as rows. An
  // array that is shorter than the others is filled up with nulls.
  return sql`
      select unnest(${plainArray(sliceNos)}::integer[]) as slice_no, unnest(${plainArray(ids)}::integer[]) as group_id,
        ${sql.join(numbers)}, unnest(${extras.some((extra) => extra !== null) ? extras : []}::text[])::jsonb as extra_metrics
  `;
}

/** The amount of each row; empty if no slice has the metric. */
function amountsOf(slices: readonly SliceRows[], metric: StoredMetric): readonly (string | null)[] {
  if (!slices.some(({ columns }) => columns.metricNames.includes(metric))) return [];
  return slices.flatMap(
    ({ columns: { groups, metricNames, metrics } }) => metrics[metricNames.indexOf(metric)] ?? groups.map(() => null),
  );
}

/** An array of numbers as Postgres writes it. Numbers need no quoting; pg would examine each of a million values for it. */
function plainArray(values: readonly (number | string | null | undefined)[]): string {
  return `{${values.map((value) => value ?? "NULL").join(",")}}`;
}

// Interns group values: a value is stored once, and rows hold its id.

export type GroupingValue = { readonly grouping: Grouping; readonly group: Group };

/** The ids by grouping and by key of the group. A single map would need a combined key, a new text, for each of a million rows. */
export type GroupIds = ReadonlyMap<Grouping, ReadonlyMap<string, number>>;

/** The id of each row's group. */
function groupIdsOf(
  ids: GroupIds,
  { grouping, columns }: Pick<SliceRows, "grouping" | "columns">,
): (number | undefined)[] {
  const known = ids.get(grouping);
  return columns.groups.map(({ key }) => known?.get(key));
}

/** Finds or creates the ids of these groups. Another transaction that wants to insert one of them waits until this one ends. */
export async function internGroups(tx: Tx, groups: readonly GroupingValue[]): Promise<GroupIds> {
  const withHash = groups.map((one) => ({ ...one, hash: createHash("sha256").update(one.group.key).digest("hex") }));
  const byHash = new Map(withHash.map((one) => [`${one.grouping} ${one.hash}`, one]));
  const ids = new Map<Grouping, Map<string, number>>();
  let missing = [...byHash].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
  // A value that another process inserts at the same time is found only by the next statement.
  while (missing.length > 0) {
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
      const one = byHash.get(`${grouping} ${key_hash}`);
      if (one) ids.set(grouping, (ids.get(grouping) ?? new Map<string, number>()).set(one.group.key, group_id));
    }
    missing = missing.filter(({ grouping, group }) => !ids.get(grouping)?.has(group.key));
  }
  return ids;
}

// Answers that carry no date: each is stored as a snapshot of unknown span, never as the usage of a day.

/** The newest snapshot of a series; `contentNo` is the number of the snapshot whose rows it shares. */
type NewestSnapshot = StoredSnapshot & { readonly snapshotNo: number; readonly contentNo: number };

/** By series id. */
export type NewestSnapshots = ReadonlyMap<number, NewestSnapshot>;

type SeriesRef = { readonly seriesId: number };

export type DecidedSnapshot = SeriesRef &
  Pick<NormalisedSlice, "columns" | "rowCount" | "contentHash"> & {
    readonly grouping: Grouping;
    readonly fetchNo: number;
    readonly runId: string;
    readonly before: NewestSnapshot | undefined;
    readonly decision: ReturnType<typeof decideSnapshot>;
  };

/** Which of the given series have answers with days. */
export async function datedSeries(db: Database, series: readonly SeriesRef[]): Promise<ReadonlySet<number>> {
  const { rows } = await sql<{ series_id: number }>`
    select series_id from usage_export.series
    where series_id = any(${series.map(({ seriesId }) => seriesId)}::integer[])
      and due_from is not null and undated_since is null
  `.execute(db);
  return new Set(rows.map(({ series_id }) => series_id));
}

/** The newest snapshots, locked: no other transaction stores one of these series until this one ends. */
export async function lockSnapshots(tx: Tx, series: readonly SeriesRef[]): Promise<NewestSnapshots> {
  if (series.length === 0) return new Map();
  const ids = series.map(({ seriesId }) => seriesId);
  await lockSeries(tx, ids);
  const { rows } = await sql<NewestSnapshot & SeriesRef>`
    select newest.* from unnest(${ids}::integer[]) as wanted (series_id)
    cross join lateral (
      select series_id as "seriesId", snapshot_no as "snapshotNo", content_no as "contentNo", fetch_no::double precision as "fetchNo",
        content_hash as "contentHash"
      from usage_export.undated_snapshot
      where series_id = wanted.series_id order by snapshot_no desc limit 1
    ) newest
  `.execute(tx);
  return new Map(rows.map((row) => [row.seriesId, row]));
}

/** Each reading becomes a snapshot. The rows of its groups are stored only if a number differs from the snapshot before. */
export async function writeSnapshots(
  tx: Tx,
  decided: readonly DecidedSnapshot[],
  groupIds: GroupIds,
  takenAt: Date,
): Promise<void> {
  const written = decided
    .filter(({ decision }) => decision !== "stale")
    .map((one) => {
      const snapshotNo = (one.before?.snapshotNo ?? 0) + 1;
      const isNew = one.decision === "replace";
      return { ...one, snapshotNo, contentNo: isNew ? snapshotNo : (one.before?.contentNo ?? snapshotNo) };
    });
  if (written.length === 0) return;
  await sql`
    insert into usage_export.undated_snapshot
      (series_id, snapshot_no, content_no, fetch_no, run_id, taken_at, content_hash, rows)
    select series_id, snapshot_no, content_no, fetch_no, run_id, ${takenAt}::timestamptz, content_hash, rows
    from unnest(
      ${written.map(({ seriesId }) => seriesId)}::integer[], ${written.map(({ snapshotNo }) => snapshotNo)}::integer[],
      ${written.map(({ contentNo }) => contentNo)}::integer[], ${written.map(({ fetchNo }) => fetchNo)}::bigint[],
      ${written.map(({ runId }) => runId)}::uuid[], ${written.map(({ contentHash }) => contentHash)}::text[],
      ${written.map(({ rowCount }) => rowCount)}::integer[]
    ) as written (series_id, snapshot_no, content_no, fetch_no, run_id, content_hash, rows)
  `.execute(tx);
  await writeUndatedRows(
    tx,
    written.filter(({ decision }) => decision === "replace"),
    groupIds,
  );
  const ids = written.map(({ seriesId }) => seriesId);
  await sql`
    update usage_export.series set undated_since = ${takenAt}::timestamptz
    where series_id = any(${ids}::integer[]) and undated_since is null
  `.execute(tx);
  await deleteUndatedFailures(tx, ids);
}

async function writeUndatedRows(
  tx: Tx,
  snapshots: readonly (DecidedSnapshot & { readonly snapshotNo: number })[],
  groupIds: GroupIds,
): Promise<void> {
  if (snapshots.every(({ rowCount }) => rowCount === 0)) return;
  const ofEachRow = <T>(value: (snapshot: (typeof snapshots)[number]) => T): T[] =>
    snapshots.flatMap((snapshot) => snapshot.columns.groups.map(() => value(snapshot)));
  const numbers = METRICS.map(
    (_, i) => sql`unnest(${plainArray(snapshots.flatMap(({ columns }) => columns.metrics[i] ?? []))}::numeric[])`,
  );
  await sql`
    insert into usage_export.undated_row
      (series_id, snapshot_no, group_id, ${sql.join(METRICS.map((name) => sql.ref(name)))}, extra_metrics)
    select unnest(${plainArray(ofEachRow(({ seriesId }) => seriesId))}::integer[]),
      unnest(${plainArray(ofEachRow(({ snapshotNo }) => snapshotNo))}::integer[]),
      unnest(${plainArray(snapshots.flatMap((snapshot) => groupIdsOf(groupIds, snapshot)))}::integer[]), ${sql.join(numbers)},
      unnest(${snapshots.flatMap(({ columns }) => columns.extras)}::text[])::jsonb
  `.execute(tx);
}
