// Judges whether the usage of a day is unusual: the newest day once it is read, and every day once it is final.

import { sql } from "kysely";
import type { Day } from "../usage/days.ts";
import { EACH_DIMENSIONS } from "../usage/dimensions.ts";
import { type AnomalySettings, GUARDED_FROM, METRIC_TABLE, TOLERANCES } from "../usage/metrics.ts";
import type { Database } from "./connection/database.ts";
import { inTransaction, type Tx } from "./connection/transaction.ts";

/** How many days before the window are still judged, for example after an outage. */
const CATCH_UP_DAYS = 14;

/** Matches the names of filters that `each` makes, such as "accessor=VALUE". */
const NAMES_OF_EACH = `^(${EACH_DIMENSIONS.join("|")})=`;

/** Multiplies the tolerance for a day that late usage may still change. */
const SETTLING_TOLERANCE = 1.25;

/**
 * The days to judge: those that have become final (even if judged before that), and the newest day if it is not final yet. Left out are:
 * - days before the oldest verdict on the project and filter. Verdicts on days more than CATCH_UP_DAYS before the window do not count.
 *   If there is no verdict, days before the newest final day are left out.
 * - filters made by `each`: with hundreds of keys there would be false alarms every day
 * - final days that were last read before half of their window had passed, for example because of an outage: their late usage
 *   was never read, so they would look like a drop. If an export runs at least once in half a window, it has no such days.
 */
async function pendingDays(db: Database): Promise<readonly unknown[]> {
  const { rows } = await sql`
    select s.series_id, candidate.usage_date, candidate.is_final
    from usage_export.total_series s
    cross join lateral (
      select sl.usage_date, f.finality = 'final' as is_final,
        max(sl.usage_date) over () as newest, max(sl.usage_date) filter (where f.finality = 'final') over () as newest_final
      from usage_export.slice sl
      cross join lateral (select usage_export.finality(sl.usage_date, s.window_days, sl.closed_at, now()) as finality) f
      where sl.series_id = s.series_id and sl.status = 'complete'
        and sl.usage_date >= (now() at time zone 'UTC')::date - coalesce(s.window_days, 0) - ${CATCH_UP_DAYS}::integer
        and (f.finality = 'settling' or (
          f.finality = 'final' and (sl.fetched_at at time zone 'UTC')::date >= sl.usage_date + (coalesce(s.window_days, 0) + 1) / 2
        ))
    ) candidate
    cross join lateral (
      select min(j.usage_date) as first, coalesce(bool_or(j.usage_date = candidate.usage_date and (j.is_final or not candidate.is_final)), false) as is_judged
      from usage_export.judged_day j
      where j.project_id = s.project_id and j.filter_key = s.filter_key
        and j.usage_date >= (now() at time zone 'UTC')::date - coalesce(s.window_days, 0) - ${CATCH_UP_DAYS}::integer
    ) judged
    where candidate.usage_date >= coalesce(judged.first, candidate.newest_final, candidate.newest)
      and (candidate.is_final or candidate.usage_date = candidate.newest) and not judged.is_judged and s.filter !~ ${NAMES_OF_EACH}
  `.execute(db);
  return rows;
}

export type JudgedDay = {
  readonly project: string;
  readonly filter: string;
  readonly day: Day;
  readonly verdict: "normal" | "high" | "low" | "not judged";
  readonly metric: string | null;
  readonly isFinal: boolean;
};

/** Returns the days that got a verdict in this call. A day that two processes judge at the same time is returned by one of them. */
export async function judgePendingDays(db: Database, { sensitivity }: AnomalySettings): Promise<readonly JudgedDay[]> {
  if (sensitivity === "off") return [];
  const pending = await pendingDays(db);
  if (pending.length === 0) return [];
  const minimumByMetric = sql.join(
    METRIC_TABLE.map(({ name, unit }) => sql`when metric = ${name} then ${GUARDED_FROM[unit]}::bigint`),
    sql` `,
  );
  const { rows } = await inTransaction(db, async (tx) => {
    await removeOldVerdicts(tx);
    return sql<JudgedDay>`
      with pending as (
        select * from jsonb_to_recordset(${JSON.stringify(pending)}) as p (series_id integer, usage_date date, is_final boolean)
      ), daily as materialized (
        select d.*, case ${minimumByMetric} end as minimum
        from usage_export.total_day d where series_id in (select series_id from pending) and finality <> 'open'
      ), judged as (
        insert into usage_export.judged_day as stored
          (project_id, filter_key, usage_date, series_id, verdict, metric, amount, expected, low, high, is_final)
        select s.project_id, s.filter_key, p.usage_date, p.series_id, coalesce(j.verdict, 'not judged'), j.metric, j.amount,
          j.expected, j.low, j.high, p.is_final
        from pending p
        join usage_export.series s using (series_id)
        left join lateral (
          -- A day that is not final is never called low, because late usage may still come.
          select k.metric, k.amount, judgement.expected, judgement.low, judgement.high,
            case when p.is_final or judgement.verdict <> 'low' then judgement.verdict end as verdict
          from (
            select metric, max(minimum) as minimum, array_agg(usage_date) as days, array_agg(amount) as amounts,
              max(amount) filter (where usage_date = p.usage_date) as amount
            from daily where series_id = p.series_id and usage_date between p.usage_date - 56 and p.usage_date
            group by metric
          ) k
          cross join lateral usage_export.judge_day(p.usage_date, k.amount, k.days, k.amounts, ${TOLERANCES[sensitivity]} * case when p.is_final then 1 else ${SETTLING_TOLERANCE}::numeric end, k.minimum) judgement
          -- Takes the most unusual metric, else a normal one, else one that can't be judged. Low ones come last until the day is final.
          order by not p.is_final and judgement.verdict = 'low', judgement.score desc, judgement.expected is null, k.metric limit 1
        ) j on true
        on conflict (project_id, filter_key, usage_date) do update
        set (series_id, verdict, metric, amount, expected, low, high, is_final, judged_at) = (
          excluded.series_id, excluded.verdict, excluded.metric, excluded.amount, excluded.expected, excluded.low, excluded.high, true,
          -- An unchanged verdict keeps its time, so that its alert does not begin anew.
          case when excluded.verdict = stored.verdict then stored.judged_at else excluded.judged_at end
        )
        where excluded.is_final and not stored.is_final
        returning *
      )
      select s.project, s.filter, j.usage_date as day, j.verdict, j.metric, j.is_final as "isFinal"
      from judged j join usage_export.series s using (series_id)
    `.execute(tx);
  });
  return rows;
}

/** A "normal" or "not judged" verdict is kept this long after its day left the window: longer than alerts (14 days), which a normal one ends. */
const KEPT_DAYS = 60;

async function removeOldVerdicts(tx: Tx): Promise<void> {
  await sql`
    delete from usage_export.judged_day j using usage_export.series s
    where s.series_id = j.series_id and j.verdict in ('normal', 'not judged')
      and j.usage_date < (now() at time zone 'UTC')::date - coalesce(s.window_days, 0) - ${KEPT_DAYS}::integer
  `.execute(tx);
}

/** The unusual usage of a project and filter, while its alert is open. */
export type OpenAnomaly = {
  readonly project: string;
  readonly filter: string;
  readonly unfiltered: boolean;
  /** The newest unusual day, and how many unusual days came before it. */
  readonly day: Day;
  readonly daysBefore: number;
  readonly metric: string;
  /** Exact decimal text, like `low` and `high`. */
  readonly amount: string;
  readonly low: string;
  readonly high: string;
  readonly isFinal: boolean;
};

/** Leaves out projects and filters that are no longer exported. */
export async function openAnomalies(tx: Tx): Promise<readonly OpenAnomaly[]> {
  const { rows } = await sql<OpenAnomaly>`
    select distinct on (a.project, a.project_id, a.filter) a.project, a.filter, a.unfiltered, a.usage_date as day, a.metric,
      (count(*) over (partition by a.project_id, a.filter) - 1)::integer as "daysBefore", trim_scale(a.amount)::text as amount,
      trim_scale(a.low)::text as low, trim_scale(a.high)::text as high, a.finality = 'final' as "isFinal"
    from bi.usage_anomalies a
    where a.is_open and (a.project_id, a.filter) in (select project_id, filter from bi.series where source = 'usage' and active)
    order by a.project, a.project_id, a.filter, a.usage_date desc
  `.execute(tx);
  return rows;
}
