// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

const METRICS = ["hours", "total_hours", "agent_hours", "tokens_in", "tokens_out", "tts_characters", "requests"];
const METRIC_COLUMNS = sql.join([...METRICS, "extra_metrics"].map((name) => sql.ref(name)));

/** An answer without any date is a snapshot of unknown span. Earlier versions stored it as the usage of the day of its run. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await createTables(db);
  await moveUndatedSlices(db);
}

async function createTables(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table usage_export.series
      -- The newest answer had no date, and those since then neither.
      add column undated_since timestamptz
  `.execute(db);
  await sql`alter table usage_export.run add column slices_undated integer not null default 0`.execute(db);
  await sql`
    create table usage_export.undated_snapshot (
      series_id    integer     not null references usage_export.series,
      snapshot_no  integer     not null check (snapshot_no > 0),
      -- The snapshot that holds the rows: itself, or the one before it that had the same numbers.
      content_no   integer     not null check (content_no between 1 and snapshot_no),
      fetch_no     bigint      not null,
      -- Null where an earlier version stored it.
      run_id       uuid,
      taken_at     timestamptz not null,
      content_hash text        not null,
      rows         integer     not null check (rows >= 0),
      primary key (series_id, snapshot_no)
    )
  `.execute(db);
  await sql`
    create table usage_export.undated_row (
      series_id      integer not null,
      snapshot_no    integer not null,
      group_id       integer not null,
      hours          numeric check (hours >= 0 and hours < 'infinity'),
      total_hours    numeric check (total_hours >= 0 and total_hours < 'infinity'),
      agent_hours    numeric check (agent_hours >= 0 and agent_hours < 'infinity'),
      tokens_in      numeric check (tokens_in >= 0 and tokens_in < 'infinity'),
      tokens_out     numeric check (tokens_out >= 0 and tokens_out < 'infinity'),
      tts_characters numeric check (tts_characters >= 0 and tts_characters < 'infinity'),
      requests       numeric check (requests >= 0 and requests < 'infinity'),
      extra_metrics  jsonb,
      primary key (series_id, snapshot_no, group_id)
    )
  `.execute(db);
}

/**
 * Slices of undated answers can be told apart: they were closed at the very midnight that ends their day, where all others
 * were closed at the moment they were read. The service may have named the day since: an answer that is stored under several
 * days, or came more than a day after its day, had dates. Each state they were ever in becomes a snapshot of the moment it was first seen.
 */
async function moveUndatedSlices(db: Kysely<unknown>): Promise<void> {
  await sql`
    create temporary table undated_slice on commit drop as
    select sl.series_id, sl.usage_date, sl.fetch_no, sl.fetched_at
    from usage_export.slice sl
    join usage_export.series s using (series_id)
    where s.window_days is null and sl.fetch_no > 0 and sl.closed_at = (sl.usage_date + 1)::timestamp at time zone 'UTC'
      and sl.fetched_at < (sl.usage_date + 2)::timestamp at time zone 'UTC'
      and not exists (
        select from usage_export.slice other
        where other.series_id = sl.series_id and other.fetch_no = sl.fetch_no and other.usage_date <> sl.usage_date
      )
  `.execute(db);
  await sql`
    create temporary table undated_state on commit drop as
    select r.series_id, r.usage_date, r.group_id, ${METRIC_COLUMNS}, r.gone, r.last_changed_at as seen_at,
      null::timestamptz as superseded_at
    from usage_export.snapshot_row r join undated_slice using (series_id, usage_date)
    union all
    select r.series_id, r.usage_date, r.group_id, ${METRIC_COLUMNS}, r.gone, r.last_changed_at, r.superseded_at
    from usage_export.superseded_row r join undated_slice using (series_id, usage_date)
  `.execute(db);
  await sql`
    insert into usage_export.undated_snapshot
      (series_id, snapshot_no, content_no, fetch_no, taken_at, content_hash, rows)
    select series_id, no, no, fetch_no, taken_at, 'stored by an earlier version', 0
    from (
      select series_id, taken_at, fetch_no,
        row_number() over (partition by series_id order by taken_at, fetch_no)::integer as no
      from (
        select u.series_id, u.fetch_no, seen.seen_at as taken_at
        from undated_slice u
        join (select distinct series_id, usage_date, seen_at from undated_state) seen using (series_id, usage_date)
        union
        -- A day without any usage has no row that tells when it was read.
        select series_id, fetch_no, fetched_at from undated_slice u
        where not exists (
          select from undated_state st where st.series_id = u.series_id and st.usage_date = u.usage_date
        )
      ) moments
    ) numbered
  `.execute(db);
  await sql`
    insert into usage_export.undated_row (series_id, snapshot_no, group_id, ${METRIC_COLUMNS})
    select n.series_id, n.snapshot_no, st.group_id, ${METRIC_COLUMNS}
    from usage_export.undated_snapshot n
    join undated_slice u using (series_id, fetch_no)
    join undated_state st on st.series_id = u.series_id and st.usage_date = u.usage_date
      and st.seen_at <= n.taken_at and (st.superseded_at is null or st.superseded_at > n.taken_at)
    where not st.gone
  `.execute(db);
  await sql`
    update usage_export.undated_snapshot n set rows = counted.rows
    from (
      select series_id, snapshot_no, count(*)::integer as rows from usage_export.undated_row group by series_id, snapshot_no
    ) counted
    where counted.series_id = n.series_id and counted.snapshot_no = n.snapshot_no
  `.execute(db);
  for (const table of ["snapshot_row", "superseded_row", "slice"]) {
    await sql`
      delete from ${sql.id("usage_export", table)} t using undated_slice u
      where t.series_id = u.series_id and t.usage_date = u.usage_date
    `.execute(db);
  }
  // Where days with a date are left, those are what is due.
  await sql`
    update usage_export.series s
    set due_from = dated.first, due_through = dated.last,
      undated_since = case when undated.newest > coalesce(dated.newest, 0) then undated.since end
    from (
      select series_id, min(taken_at) as since, max(fetch_no) as newest from usage_export.undated_snapshot
      group by series_id
    ) undated
    left join (
      select series_id, min(usage_date) as first, max(usage_date) as last, max(fetch_no) as newest
      from usage_export.slice where fetch_no > 0 group by series_id
    ) dated using (series_id)
    where s.series_id = undated.series_id
  `.execute(db);
}
