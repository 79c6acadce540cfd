// Stores the series, and which of their days are due. No series is ever deleted, so its history stays.

import { sql } from "kysely";
import { addDays, type Day, dayOf, type Window } from "../../usage/days.ts";
import type { ConfiguredSeries, DueDays } from "../../usage/export-plan.ts";
import { type FanOut, filterKey, type Series, seriesKey } from "../../usage/series.ts";
import type { Database } from "../connection/database.ts";
import { storeConfigured, type Tx } from "../connection/transaction.ts";
import { deleteUndatedFailures } from "./failures.ts";
import { changedNow, type DecidedSlice, numbersArray } from "./stored-slices.ts";

/**
 * Registers the configured series, and retires all others: a retired series keeps its numbers, and its days no longer count as missing. A filter
 * with changed conditions makes a new series. The older one is superseded (hidden from the views), so that a name means one filter.
 */
export async function registerSeries(db: Database, configured: readonly ConfiguredSeries[]): Promise<SeriesIds> {
  // The days of a fan-out's value are not compared: they matter only when its series is added, and the added line changes the text anyway.
  const lines = configured.map(({ series, windowDays = null }) =>
    JSON.stringify([seriesKey(series), series.project.name, series.filter.name, windowDays]),
  );
  await storeConfigured(db, "series", lines.sort().join("\n"), async (tx) => {
    await sql`lock table usage_export.series in share row exclusive mode`.execute(tx);
    await writeSeries(tx, configured);
    await updatePeriods(tx);
  });
  const { rows } = await sql<{ key: string; id: number }>`
    select ${seriesKeySql} as key, series_id as id from usage_export.series
  `.execute(db);
  return new Map(rows.map(({ key, id }) => [key, id]));
}

const YESTERDAY = sql`(now() at time zone 'UTC')::date - 1`;

/** The configured series as a relation `w`. */
function wantedRows(configured: readonly ConfiguredSeries[]) {
  const series = configured.map((one) => one.series);
  const seenDays = series.map(({ filter }) => filter.seen?.dueDays);
  return sql`
    unnest(
      ${series.map(({ project }) => project.id)}::text[], ${series.map(({ project }) => project.name)}::text[],
      ${series.map(({ grouping }) => grouping)}::text[], ${series.map(({ filter }) => filterKey(filter))}::text[],
      ${series.map(({ filter }) => filter.name)}::text[], ${configured.map(({ windowDays }) => windowDays ?? null)}::integer[],
      ${seenDays.map((days) => days?.start ?? null)}::date[], ${seenDays.map((days) => days?.end ?? null)}::date[],
      ${series.map(({ source }) => source)}::text[]
    ) as w (project_id, project, "grouping", filter_key, filter, window_days, due_from, due_through, source)
  `;
}

const isSameSeries = sql`
  s.source = w.source and s.project_id = w.project_id and s."grouping" = w."grouping" and s.filter_key = w.filter_key
`;

async function writeSeries(tx: Tx, configured: readonly ConfiguredSeries[]): Promise<void> {
  const wanted = wantedRows(configured);
  // A day becomes final when the window has passed it. So with another window every slice that was read (fetch_no > 0) is marked as changed.
  await sql`
    update usage_export.slice sl set ${changedNow(sql`true`)}
    from usage_export.series s, ${wanted}
    where sl.series_id = s.series_id and ${isSameSeries} and s.window_days is distinct from w.window_days and sl.fetch_no > 0
  `.execute(tx);
  await sql`
    update usage_export.series s set superseded_at = now()
    where s.superseded_at is null and exists (
      select from ${wanted}
      where s.source = w.source
        and s.project_id = w.project_id and s.filter = w.filter and s.filter_key <> w.filter_key
    )
  `.execute(tx);
  await sql`
    update usage_export.series s set retired_at = now()
    where s.retired_at is null and not exists (select from ${wanted} where ${isSameSeries})
  `.execute(tx);
  await sql`
    merge into usage_export.series s using ${wanted} on ${isSameSeries}
    when matched and ((s.project, s.filter, s.window_days) is distinct from (w.project, w.filter, w.window_days)
        or s.retired_at is not null or s.superseded_at is not null) then
      update set project = w.project, filter = w.filter, window_days = w.window_days, retired_at = null, superseded_at = null,
        -- The series of a fan-out's value is retired while no usage has the value. That time is not due: the due days begin anew afterwards.
        due_from = case when s.retired_at is null then s.due_from else coalesce(w.due_from, s.due_from) end,
        due_through = case when s.retired_at is null or w.due_from is null then s.due_through else least(w.due_through, ${YESTERDAY}) end,
        next_due_at = case when s.retired_at is null or w.due_from is null then s.next_due_at end
    when not matched then
      insert (source, project_id, project, "grouping", filter_key, filter, window_days, due_from, due_through)
      values (w.source, w.project_id, w.project, w."grouping", w.filter_key, w.filter, w.window_days, w.due_from,
        case when w.due_through is not null then least(w.due_through, ${YESTERDAY}) end)
  `.execute(tx);
  // A retired series whose filter is still configured for other groupings stays visible, under the filter's current name.
  await sql`
    update usage_export.series s set filter = w.filter, superseded_at = null
    from (select distinct source, project_id, filter_key, filter from ${wanted}) w
    where s.source = w.source and s.project_id = w.project_id and s.filter_key = w.filter_key
      and (s.filter <> w.filter or s.superseded_at is not null)
  `.execute(tx);
  // A project has one name in all views, including those of its retired series.
  await sql`
    update usage_export.series s set project = named.project
    from (
      select project_id, min(project collate "C") as project from usage_export.series where retired_at is null group by project_id
    ) named
    where s.retired_at is not null and s.project_id = named.project_id and s.project <> named.project
  `.execute(tx);
}

/** Ends and begins periods. A period is the time in which the views show a series under one name, until it is hidden or renamed. */
async function updatePeriods(tx: Tx): Promise<void> {
  // Read under the lock: now() is when this transaction began, and another transaction may have changed the periods since.
  const { rows } = await sql<{ now: string }>`select clock_timestamp()::text as now`.execute(tx);
  const now = sql`${rows[0]?.now}::timestamptz`;
  await sql`
    update usage_export.series_period p set shown_until = ${now}
    from usage_export.series s
    where s.series_id = p.series_id and p.shown_until is null
      and (s.superseded_at is not null or (s.project, s.filter) is distinct from (p.project, p.filter))
  `.execute(tx);
  await sql`
    insert into usage_export.series_period (series_id, project, filter, shown_from)
    select s.series_id, s.project, s.filter, case when p.is_open is null then '-infinity' else ${now} end
    from usage_export.series s
    -- is_open is null for a series without any period.
    cross join lateral (select bool_or(shown_until is null) as is_open from usage_export.series_period where series_id = s.series_id) p
    where s.superseded_at is null and p.is_open is not true
  `.execute(tx);
  await sql`
    update usage_export.slice sl set ${changedNow(sql`true`)}
    from usage_export.series_period p
    where p.series_id = sl.series_id and ${now} in (p.shown_from, p.shown_until) and sl.fetch_no > 0
  `.execute(tx);
}

/**
 * Extends the due days of these series. Due days are a range without holes: a day in it without a slice is missing. Older days extend the range
 * only if they adjoin it. Otherwise one old day that a person picked would make every day since then due. From `nextAt` on, every day
 * is due as soon as it is over, even if no run has begun. `nextAt` is ignored if `through` is before yesterday.
 */
export async function extendDue(tx: Tx, seriesIds: readonly number[], due: DueDays, nextAt?: Date) {
  const { first, oldestWindow, through } = due;
  await lockSeries(tx, seriesIds);
  const from = sql`${first ?? null}::date`;
  const next = sql`${nextAt ?? null}::timestamptz`;
  const dueFrom = sql`
    case
      when due_from is null then ${from}
      when ${oldestWindow?.end ?? null}::date >= due_from - 1 then least(due_from, ${oldestWindow?.start ?? null}::date)
      else due_from
    end
  `;
  const nextDue = sql`
    case when ${next} is null or ${through}::date < ${YESTERDAY} then next_due_at
      when next_due_at > now() then least(next_due_at, ${next}) else ${next} end
  `;
  await sql`
    update usage_export.series
    set due_through = greatest(due_through, ${through}::date), due_from = ${dueFrom}, next_due_at = ${nextDue}
    where series_id = any(${numbersArray(seriesIds)}::integer[]) and (due_from is not null or ${from} is not null)
      -- A series without a window gets no due days while its answers carry no date.
      and (${oldestWindow !== undefined}::boolean or undated_since is null)
      and (due_through is null or due_through < ${through}::date or due_from is distinct from ${dueFrom}
        or next_due_at is distinct from ${nextDue})
  `.execute(tx);
}

/** `slices` are those of an answer without a window, oldest first. The newest day is not made due if the service was asked before its end. */
export async function extendDueByAnswer(tx: Tx, seriesId: number, slices: readonly DecidedSlice[], yesterday: Day) {
  const [oldest, newest] = [slices[0], slices.at(-1)];
  if (!oldest || !newest) return;
  const [start, end] = [oldest.day, newest.day];
  const lastWholeDay = end < dayOf(newest.askedAt) ? end : addDays(end, -1);
  const through = lastWholeDay < yesterday ? lastWholeDay : yesterday;
  await extendDue(tx, [seriesId], { first: start, oldestWindow: { start, end }, through });
  const series = tx.updateTable("usage_export.series").where("series_id", "=", seriesId);
  await series.set({ undated_since: null }).where("undated_since", "is not", null).execute();
  await deleteUndatedFailures(tx, [seriesId], end);
}

/** Locks the series in the order in which every transaction locks them, so that no two deadlock. */
export async function lockSeries(tx: Tx, seriesIds: readonly number[]): Promise<void> {
  await sql`
    select from usage_export.series where series_id = any(${numbersArray(seriesIds)}::integer[]) order by series_id for no key update
  `.execute(tx);
}

export function seriesIdOf(ids: SeriesIds, series: Series): number {
  const id = ids.get(seriesKey(series));
  if (id === undefined) throw new Error(`series ${seriesKey(series)} is not registered`);
  return id;
}

/** The id of each series, by seriesKey. */
export type SeriesIds = ReadonlyMap<string, number>;

/** The seriesKey of a row of usage_export.series. Postgres escapes texts in JSON as JSON.stringify does. */
export const seriesKeySql = sql<string>`
  concat('[', concat_ws(',', to_json(source), to_json(project_id), to_json("grouping"), to_json(filter_key)), ']')
`;

export type StoredValue = {
  readonly projectId: string;
  readonly value: string;
  /** The first day in the window on which the value has usage. */
  readonly firstDay: Day;
  /** The newest day in the window on which the project was read by the dimension, whether or not the value was seen. */
  readonly readUntil: Day;
  /** How many values the project has in the window: the same for each of its values. */
  readonly valueCount: number;
};

/** Some values can't be used as a filter, so this many are read beyond `atMost`. */
const SPARE_VALUES = 100;

/** The values of the dimension with the most requests in the window, for each project. Each tag of a set of tags is a value. */
export async function storedValues(
  db: Database,
  projectIds: readonly string[],
  { dimension, atMost }: FanOut,
  { start, end }: Window,
) {
  const { rows } = await sql<StoredValue>`
    with series as materialized (
      select series_id, project_id from usage_export.series
      where source = 'usage' and project_id = any(${projectIds}::text[]) and "grouping" = ${dimension} and filter_key = '{}' and superseded_at is null
    ),
    read as (
      select s.project_id, max(sl.usage_date) as last_read
      from series s join usage_export.slice sl using (series_id)
      where sl.usage_date between ${start}::date and ${end}::date and sl.fetched_at is not null
      group by s.project_id
    ),
    grouped as (
      select s.project_id, r.group_id, min(r.usage_date) as first_day, sum(r.requests) as requests, sum(r.hours) as hours
      from series s join usage_export.slice_row r using (series_id)
      where r.usage_date between ${start}::date and ${end}::date and not r.gone
      group by s.project_id, r.group_id
    ),
    valued as (
      select g.project_id, v.value, min(g.first_day) as first_day, count(*) over of_project::integer as value_count,
        row_number() over (
          of_project order by sum(g.requests) desc nulls last, sum(g.hours) desc nulls last, v.value collate "C"
        ) as position
      from grouped g
      join usage_export.group_value named using (group_id)
      -- The key of a group with a value is a JSON array. One with a NUL is left out: Postgres can't unpack it, and no API key or tag contains one.
      cross join lateral json_array_elements_text(
        case when named.group_key like '[%' and strpos(named.group_key, '\\u0000') = 0 then named.group_key else '[]' end::json
      ) as v (value)
      where v.value is not null
      group by g.project_id, v.value
      window of_project as (partition by g.project_id)
    )
    select v.project_id as "projectId", v.value, to_char(v.first_day, 'YYYY-MM-DD') as "firstDay",
      to_char(r.last_read, 'YYYY-MM-DD') as "readUntil", v.value_count as "valueCount"
    from valued v join read r using (project_id)
    where v.position <= ${atMost + SPARE_VALUES}
    order by v.position
  `.execute(db);
  return rows;
}
