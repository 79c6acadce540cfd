// Slices and their rows as they are stored: reads and inserts slices, writes the decision on an answer, and merges rows into the table
// slice_row. Group values are stored once, and rows hold their id.

import { hash } from "node:crypto";
import { type RawBuilder, sql } from "kysely";
import { addDays, type Day, startOfDay } from "../../usage/days.ts";
import { STORED_METRICS, type StoredMetric } from "../../usage/metrics.ts";
import type { Group, NormalisedSlice } from "../../usage/normalise.ts";
import type { Grouping } from "../../usage/series.ts";
import { type decideSlice, newestFetchNo, type StoredSlice, type Totals } from "../../usage/slice-decision.ts";
import type { Tx } from "../connection/transaction.ts";

export type SliceRef = { readonly seriesId: number; readonly day: Day };

export function sliceKey({ seriesId, day }: SliceRef): string {
  return `${seriesId} ${day}`;
}

/** Inserts missing slices, as failed until they are updated. Each transaction inserts first, in the same order, so that no two deadlock. */
export async function insertMissing(tx: Tx, slices: readonly SliceRef[]): Promise<void> {
  if (slices.length === 0) return;
  await sql`
    insert into usage_export.slice (series_id, usage_date, status)
    select series_id, usage_date, 'failed' from ${wantedSlices(slices)} order by series_id, usage_date
    on conflict do nothing
  `.execute(tx);
}

/** Locks slices until the transaction ends, in the same order in every transaction. */
export async function lockSlices(tx: Tx, slices: readonly SliceRef[]): Promise<void> {
  await insertMissing(tx, slices);
  await sql`
    select from ${wantedSlices(slices)} join usage_export.slice sl using (series_id, usage_date)
    order by sl.series_id, sl.usage_date for update of sl
  `.execute(tx);
}

type SliceRow = SliceRef &
  Pick<StoredSlice, "fetchNo" | "rows"> & {
    readonly contentHash: string | null;
    /** Null if no answer is in doubt. */
    readonly kind: NonNullable<StoredSlice["doubt"]>["kind"] | null;
    readonly runId: string;
    readonly since: Date;
    readonly doubtFetchNo: number;
    readonly readAt: Date;
  };

const NOT_STORED: StoredSlice = { fetchNo: 0, contentHash: undefined, rows: 0, doubt: undefined };

/** Adds to each slice what is stored of it. `missing` are not stored. `readAt`: the database's time of reading; undefined if all are missing. */
export async function readSlices<Slice extends SliceRef>(tx: Tx, slices: readonly Slice[]) {
  const { rows } = await sql<SliceRow>`
    select sl.series_id as "seriesId", sl.usage_date as day, sl.fetch_no::double precision as "fetchNo", sl.content_hash as "contentHash",
      sl.rows, sl.suspect_why as kind, sl.suspect_run as "runId", sl.suspect_since as since,
      sl.suspect_fetch_no::double precision as "doubtFetchNo", clock_timestamp() as "readAt"
    from ${wantedSlices(slices)} join usage_export.slice sl using (series_id, usage_date)
  `.execute(tx);
  const byKey = new Map(rows.map((row) => [sliceKey(row), storedSlice(row)]));
  const read = slices.map((slice) => ({ ...slice, stored: byKey.get(sliceKey(slice)) ?? NOT_STORED }));
  return { read, missing: slices.filter((slice) => !byKey.has(sliceKey(slice))), readAt: rows[0]?.readAt };
}

function storedSlice({ fetchNo, contentHash, rows, kind, runId, since, doubtFetchNo }: SliceRow): StoredSlice {
  const doubt = kind === null ? undefined : { kind, runId, since, fetchNo: doubtFetchNo };
  return { fetchNo, contentHash: contentHash ?? undefined, rows, doubt };
}

/** The sums of each slice's absolute amounts in these metrics, by `sliceKey`. Doubles are exact enough. A gone group's row has only nulls. */
export async function sumSlices(tx: Tx, slices: readonly SliceRef[], metrics: readonly string[] = STORED_METRICS) {
  if (slices.length === 0) return new Map<string, Totals>();
  const sumOf = (metric: string) => (metrics.includes(metric) ? sql`sum(abs(r.${sql.ref(metric)}))::text` : sql`null`);
  // With `lateral`, Postgres computes the sums slice by slice, however many rows its planner expects.
  const { rows } = await sql<SliceRef & { readonly sums: readonly (string | null)[] }>`
    select wanted.series_id as "seriesId", wanted.usage_date as day, total.sums
    from ${wantedSlices(slices)}
    cross join lateral (
      select array[${sql.join(STORED_METRICS.map(sumOf))}] as sums from usage_export.slice_row r
      where r.series_id = wanted.series_id and r.usage_date = wanted.usage_date
    ) total
  `.execute(tx);
  const totalsOf = (sums: readonly (string | null)[]) => sums.map((sum) => (sum === null ? undefined : Number(sum)));
  return new Map<string, Totals>(rows.map((row) => [sliceKey(row), totalsOf(row.sums)]));
}

function wantedSlices(slices: readonly SliceRef[]) {
  return sql`unnest(${sliceArrays(slices)}) as wanted (series_id, usage_date)`;
}

function sliceArrays(slices: readonly SliceRef[]) {
  return sql`${slices.map(({ seriesId }) => seriesId)}::integer[], ${slices.map(({ day }) => day)}::text[]::date[]`;
}

export type FetchedSlice = SliceRef &
  NormalisedSlice & { readonly grouping: Grouping; readonly fetchNo: number; readonly runId: string };

export type DecidedSlice = FetchedSlice & {
  /** What the decision was based on. */
  readonly stored: StoredSlice;
  readonly askedAt: Date;
} & ReturnType<typeof decideSlice>;

/** Throws if a slice has changed since it was read: the transaction is repeated with locks. `seenAt`: when the slices were read, or later. */
export async function writeSlices(tx: Tx, decided: readonly DecidedSlice[], seenAt: Date): Promise<void> {
  const good = decided.filter(({ decision }) => decision === "replace" || decision === "unchanged");
  const suspect = decided.filter((slice) => slice.doubt !== undefined);
  let written = 0n;
  if (good.length > 0) written += (await writeComplete(good, seenAt).execute(tx)).numAffectedRows ?? 0n;
  if (suspect.length > 0) written += (await writeSuspect(suspect, seenAt).execute(tx)).numAffectedRows ?? 0n;
  // Postgres's code for a serialisation failure.
  if (written < good.length + suspect.length)
    throw Object.assign(new Error("a slice was written meanwhile"), { code: "40001" });
}

/** Leaves `attempted_at` as it was, which keeps the WAL small: it gets all columns from the first to the last changed one, for every slice. */
function writeComplete(good: readonly DecidedSlice[], seenAt: Date) {
  return sql`
    update usage_export.slice sl
    set status = 'complete', fetch_no = good.fetch_no, fetched_at = ${seenAt},
      closed_at = coalesce(sl.closed_at, good.closed_at::timestamptz), content_hash = good.content_hash, rows = good.rows,
      error = null, suspect_run = null, suspect_why = null, suspect_since = null, suspect_fetch_no = null,
      ${changedNow(sql`good.replaces or (sl.closed_at is null and good.closed_at is not null)`)}
    from unnest(
      ${sliceArrays(good)}, ${good.map(({ fetchNo }) => fetchNo)}::bigint[],
      ${good.map(({ stored }) => newestFetchNo(stored))}::bigint[],
      ${good.map((slice) => closingMoment(slice, seenAt)?.toISOString() ?? null)}::text[],
      ${good.map(({ contentHash }) => contentHash)}::text[], ${good.map(({ rowCount }) => rowCount)}::integer[],
      ${good.map(({ decision }) => decision === "replace")}::boolean[]
    ) as good (series_id, usage_date, fetch_no, stored_fetch_no, closed_at, content_hash, rows, replaces)
    where sl.series_id = good.series_id and sl.usage_date = good.usage_date
      and greatest(sl.fetch_no, sl.suspect_fetch_no) = good.stored_fetch_no
  `;
}

/**
 * Assignments that record a change of the slice `sl`. A transaction begins (`changed_after`), then gets its number, then reads the clock
 * (`changed_at`). So none with a higher number has a `changed_at` before this `changed_after`. bi.changed_days relies on it.
 */
export function changedNow(isChanged: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    changed_at = case when (${isChanged}) and pg_current_xact_id() is not null then clock_timestamp() else sl.changed_at end,
    changed_in = case when ${isChanged} then pg_current_xact_id() else sl.changed_in end,
    changed_after = case when ${isChanged} then now() else sl.changed_after end
  `;
}

function writeSuspect(suspect: readonly Exclude<DecidedSlice, { readonly doubt: undefined }>[], seenAt: Date) {
  const doubts = suspect.map(({ doubt }) => doubt);
  return sql`
    update usage_export.slice sl
    set status = 'suspect', error = suspect.reason, attempted_at = ${seenAt}, suspect_run = suspect.run_id,
      suspect_why = suspect.why, suspect_since = suspect.since, suspect_fetch_no = suspect.fetch_no
    from unnest(
      ${sliceArrays(suspect)}, ${doubts.map(({ reason }) => reason)}::text[], ${doubts.map(({ runId }) => runId)}::uuid[],
      ${doubts.map(({ kind }) => kind)}::text[], ${doubts.map(({ since }) => since.toISOString())}::timestamptz[],
      ${doubts.map(({ fetchNo }) => fetchNo)}::bigint[], ${suspect.map(({ stored }) => newestFetchNo(stored))}::bigint[]
    ) as suspect (series_id, usage_date, reason, run_id, why, since, fetch_no, stored_fetch_no)
    where sl.series_id = suspect.series_id and sl.usage_date = suspect.usage_date
      and greatest(sl.fetch_no, sl.suspect_fetch_no) = suspect.stored_fetch_no
  `;
}

/** The `closed_at` that the answer gives to its slice; undefined if the service was asked before the day's end. */
function closingMoment({ day, undated, askedAt }: DecidedSlice, seenAt: Date): Date | undefined {
  const over = startOfDay(addDays(day, 1));
  // If undated numbers count for the day on which they are read, no reading after its end will be about that day.
  if (undated) return over;
  return askedAt >= over ? seenAt : undefined;
}

export function metricColumns(prefix: string, metrics: readonly StoredMetric[] = STORED_METRICS) {
  return sql.join([...metrics, "extra_metrics"].map((name) => sql.ref(`${prefix}${name}`)));
}

const METRIC_COLUMNS = metricColumns("");

/**
 * Returns by `sliceKey` how many rows appeared, changed or disappeared. A row with the same numbers is never written: an UPDATE that changes
 * nothing costs as much as one that does. A group that is gone keeps its row, so that its revisions continue if it comes back.
 */
export async function mergeRows(tx: Tx, slices: readonly DecidedSlice[], groupIds: GroupIds, seenAt: Date) {
  if (slices.length === 0) return new Map<string, number>();
  const { rows: counted } = await sql<SliceRef & { readonly changed: string | number }>`
    with incoming as (
      ${selectIncoming(slices, groupIds)}
    ), target as (
      select slice_no::integer, series_id, usage_date, restates
      from unnest(${sliceArrays(slices)}, ${slices.map(({ stored }) => stored.fetchNo > 0)}::boolean[])
        with ordinality as target (series_id, usage_date, restates, slice_no)
    ), stored as (
      select target.slice_no, r.* from target join usage_export.slice_row r using (series_id, usage_date)
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
      insert into usage_export.slice_row
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
      join usage_export.slice_row r using (series_id, usage_date, group_id)
      where c.revision > 1
    ), updated as (
      update usage_export.slice_row r
      set (${METRIC_COLUMNS}) = (select ${metricColumns("c.")}), gone = c.kind = 'gone', returned = c.kind = 'appeared',
        revision = c.revision, restates = c.restates, last_changed_at = ${seenAt}::timestamptz
      from changing c
      where c.revision > 1 and r.series_id = c.series_id and r.usage_date = c.usage_date and r.group_id = c.group_id
    )
    select series_id as "seriesId", usage_date as day, count(*) as changed from changing group by series_id, usage_date
  `.execute(tx);
  return new Map(counted.map((slice) => [sliceKey(slice), Number(slice.changed)]));
}

/** Selects the rows of the answers. `slice_no` is the position of a row's slice, from 1. */
export function selectIncoming(slices: readonly FetchedSlice[], groupIds: GroupIds): RawBuilder<unknown> {
  const sliceNos = slices.flatMap(({ columns }, i) => columns.groups.map(() => i + 1));
  const ids = slices.flatMap(({ grouping, columns }) =>
    columns.groups.map(({ key }) => groupIds.get(grouping)?.get(key)),
  );
  const numbers = STORED_METRICS.map((name) => sql`${amountsSql(slices, name)} as ${sql.ref(name)}`);
  const extras = slices.flatMap(({ columns }) => columns.extras);
  // unnest is in the select list: in the from clause Postgres would first store each array as rows. A shorter array is padded with nulls.
  return sql`
      select unnest(${numbersArray(sliceNos)}::integer[]) as slice_no, unnest(${numbersArray(ids)}::integer[]) as group_id,
        ${sql.join(numbers)}, unnest(${extras.some((extra) => extra !== null) ? extras : []}::text[])::jsonb as extra_metrics
  `;
}

/** The amount of each row, or one amount if all rows have the same. Most metrics are 0 in all rows, and Postgres would read each of the zeros. */
function amountsSql(slices: readonly FetchedSlice[], metric: StoredMetric) {
  const amounts = slices.flatMap(
    ({ columns: { groups, metricNames, metrics } }) => metrics[metricNames.indexOf(metric)] ?? groups.map(() => null),
  );
  const [first = null] = amounts;
  const isSame = amounts.every((amount) => amount === first);
  return isSame ? sql`${first}::numeric` : sql`unnest(${numbersArray(amounts)}::numeric[])`;
}

/** An array as Postgres writes it. Numbers need no quotes, but the driver would check each of a million values for that. */
export function numbersArray(values: readonly (number | string | null | undefined)[]): string {
  return `{${values.map((value) => value ?? "NULL").join(",")}}`;
}

/** The ids by grouping, then by the group's key. A single map would need a combined key: a new text for each of a million rows. */
export type GroupIds = ReadonlyMap<Grouping, ReadonlyMap<string, number>>;

/** Finds or creates the ids of the groups of these rows. A transaction that wants to insert the same group waits until this one ends. */
export async function internGroups(tx: Tx, slices: readonly FetchedSlice[]): Promise<GroupIds> {
  const ids = new Map<Grouping, Map<string, number>>();
  const wanted = groupsByHash(slices);
  // If another process inserts a value at the same time, only the next statement finds it.
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
      const groupHash = `${grouping} ${key_hash}`;
      const key = wanted.get(groupHash)?.group.key;
      if (key !== undefined) ids.set(grouping, (ids.get(grouping) ?? new Map<string, number>()).set(key, group_id));
      wanted.delete(groupHash);
    }
  }
  return ids;
}

/** The groups of all rows, each once. Most slices have the same groups, so this also hashes each key only once. */
function groupsByHash(slices: readonly FetchedSlice[]) {
  const byHash = new Map<string, { readonly grouping: Grouping; readonly group: Group; readonly hash: string }>();
  for (const [grouping, slicesOfGrouping] of Map.groupBy(slices, (slice) => slice.grouping)) {
    const byKey = new Map<string, Group>();
    for (const { columns } of slicesOfGrouping) for (const group of columns.groups) byKey.set(group.key, group);
    for (const group of byKey.values()) {
      const digest = hash("sha256", group.key);
      byHash.set(`${grouping} ${digest}`, { grouping, group, hash: digest });
    }
  }
  return byHash;
}
