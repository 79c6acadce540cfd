// Reads the amounts of a report: totals, usage by day and group, and the groups with the most usage.

import { sql } from "kysely";
import type { Breakdown, DayAmounts, MetricTotal, RankedGroup, Ranking } from "../../report/report-data.ts";
import { type Day, daysOf, type Window } from "../../usage/days.ts";
import { integers } from "../connection/integers.ts";
import type { Tx } from "../connection/transaction.ts";
import { countLackingDays, incompleteAndUnreadDays, type ReportSeries } from "./sources.ts";

const TOTAL_METRICS = ["hours", "tokens_in", "tokens_out", "tts_characters", "requests"] as const;

type TotalsRow = {
  /** Null in the row of the sums of all days. */
  readonly day: Day | null;
  readonly amounts: Readonly<Record<MetricTotal["metric"], string | null>>;
  readonly before: Readonly<Record<MetricTotal["metric"], string | null>>;
};

export async function readTotals(
  tx: Tx,
  sources: readonly ReportSeries[],
  before: Window,
  period: Window,
): Promise<readonly MetricTotal[]> {
  const days = daysOf(period);
  const sums = (window: Window) =>
    sql`json_build_object(${sql.join(
      TOTAL_METRICS.map(
        (metric) =>
          sql`${metric}::text, trim_scale(sum(${sql.ref(metric)}) filter (where usage_date between ${window.start}::date and ${window.end}::date))::text`,
      ),
    )})`;
  const { rows } = await sql<TotalsRow>`
    select usage_date as day, ${sums(period)} as amounts, ${sums(before)} as before
    from ${visibleRows(sources, { start: before.start, end: period.end })}
    where usage_date <= ${before.end}::date or usage_date >= ${period.start}::date
    group by grouping sets ((usage_date), ())
  `.execute(tx);
  const byDay = new Map(rows.map((row) => [row.day, row]));
  const all = byDay.get(null);
  return TOTAL_METRICS.map((metric) => ({
    metric,
    amount: all?.amounts[metric] ?? null,
    before: all?.before[metric] ?? null,
    byDay: days.map((day) => byDay.get(day)?.amounts[metric] ?? null),
  }));
}

const BREAKDOWN_GROUPS_MAX = 8;
/** The rank of the groups that are not drawn. The database adds them up: there may be 100,000 of them. */
const REST_RANK = BREAKDOWN_GROUPS_MAX + 1;

type BreakdownRow = {
  /** From 1 for the largest. */
  readonly rank: number;
  readonly group: string | null;
  readonly day: Day;
  readonly hours: string;
  readonly requests: string;
  readonly groupCount: number;
};

/** `series`: the series of this grouping, one for each project. */
export async function readBreakdown(
  tx: Tx,
  grouping: Breakdown["grouping"],
  series: readonly ReportSeries[],
  period: Window,
): Promise<Breakdown> {
  const { rows } = await sql<BreakdownRow>`
    with usage as (
      select g.display as "group", r.usage_date, r.hours, r.requests
      from (
        -- Added up by number before the texts are looked up: there are far fewer sums than rows.
        select group_id, usage_date, sum(hours) as hours, sum(requests) as requests
        from ${visibleRows(series, period)} group by group_id, usage_date
      ) r
      join usage_export.group_value g using (group_id)
    ), by_group as (
      select "group", sum(hours) as hours, sum(requests) as requests from usage group by "group"
    ), drawn as (
      select "group", row_number() over (
        order by hours desc nulls last, requests desc nulls last, "group" collate "C" nulls last
      )::integer as rank
      from by_group order by rank limit ${BREAKDOWN_GROUPS_MAX}
    )
    select coalesce(d.rank, ${REST_RANK}) as rank, d."group", u.usage_date as day,
      trim_scale(coalesce(sum(u.hours), 0))::text as hours, trim_scale(coalesce(sum(u.requests), 0))::text as requests,
      (select count(*) from by_group)::integer as "groupCount"
    from usage u
    -- "No value" (null) is a group as well; = alone would not join it. The prefix tells it apart from an empty text.
    left join drawn d on coalesce('=' || d."group", '') = coalesce('=' || u."group", '')
    group by d.rank, d."group", u.usage_date
  `.execute(tx);
  const days = daysOf(period);
  const { [REST_RANK]: rest, ...groups } = Object.groupBy(rows, ({ rank }) => rank);
  return {
    grouping,
    projects: series.map(({ project }) => project),
    days,
    ...incompleteAndUnreadDays(series, days),
    groups: Object.values(groups).map((ofGroup = []) => ({
      group: ofGroup[0]?.group ?? null,
      ...amountsOf(ofGroup, days),
    })),
    rest: rest && { ...amountsOf(rest, days), groupCount: (rest[0]?.groupCount ?? 0) - BREAKDOWN_GROUPS_MAX },
  };
}

function amountsOf(rows: readonly BreakdownRow[], days: readonly Day[]): DayAmounts {
  const byDay = new Map(rows.map((row) => [row.day, row]));
  return {
    hours: days.map((day) => byDay.get(day)?.hours ?? "0"),
    requests: days.map((day) => byDay.get(day)?.requests ?? "0"),
  };
}

const RANKED_GROUPS_MAX = 10;

/** How a group is named, and the tables of that name. As in bi.usage_by_key, all keys of a rotation are one group. */
const RANKED_NAMES = {
  accessor: {
    group: sql`coalesce(k.rotation, g.display)`,
    comment: sql`coalesce(nullif(l.comment, ''), k.comment)`,
    tables: sql`
      left join usage_export.api_key k on k.project_id = s.project_id and k.api_key_id = g.display
      left join usage_export.listed_key l on l.project_id = s.project_id and l.api_key_id = g.display
    `,
  },
  model: { group: sql`g.display`, comment: sql`null::text`, tables: sql`` },
  tags: { group: sql`g.display`, comment: sql`null::text`, tables: sql`` },
} as const;

type RankingRow = {
  readonly groups: readonly Omit<RankedGroup, "project">[] | null;
  readonly groupCount: number;
  readonly hours: string | null;
  readonly requests: string | null;
};

/** `series`: the series of this grouping, one for each project. */
export async function readRanking(
  tx: Tx,
  grouping: Ranking["grouping"],
  series: readonly ReportSeries[],
  before: Window,
  period: Window,
): Promise<Ranking> {
  const names = new Map(series.map(({ projectId, project }) => [projectId, project]));
  const row = await readRankingRow(tx, grouping, series, before, period);
  // A request with two tags may count for both.
  const addsUp = grouping !== "tags";
  return {
    grouping,
    projects: [...names.values()],
    ...countLackingDays(series),
    groups: (row?.groups ?? []).map((group) => ({
      project: names.get(group.projectId) ?? group.projectId,
      ...group,
    })),
    groupCount: row?.groupCount ?? 0,
    hours: addsUp ? (row?.hours ?? null) : null,
    requests: addsUp ? (row?.requests ?? null) : null,
  };
}

async function readRankingRow(
  tx: Tx,
  grouping: Ranking["grouping"],
  series: readonly ReportSeries[],
  before: Window,
  period: Window,
): Promise<RankingRow | undefined> {
  const { group, comment, tables } = RANKED_NAMES[grouping];
  const { rows } = await sql<RankingRow>`
    with usage as (
      select series_id, group_id, max(usage_date) as last_used, sum(hours) as hours, sum(requests) as requests
      from ${visibleRows(series, period)} group by series_id, group_id
    ), by_value as materialized (
      select s.series_id, s.project_id, ${group} as "group", ${comment} as comment, u.last_used, u.hours, u.requests
      from usage u
      join usage_export.series s using (series_id)
      join usage_export.group_value g using (group_id)
      ${tables}
    ), by_group as (
      select series_id, project_id, "group", sum(hours) as hours, sum(requests) as requests
      from by_value group by series_id, project_id, "group"
    ), ranked as materialized (
      select *, row_number() over (
        order by hours desc nulls last, requests desc nulls last, "group" collate "C" nulls last, project_id collate "C"
      ) as rank
      from by_group order by rank limit ${RANKED_GROUPS_MAX}
    ), used_before as (
      -- Read only for the groups that are shown. A replaced key of a rotation may have been used in the period before alone.
      select ranked.rank, sum(r.hours) as hours, sum(r.requests) as requests
      from ranked
      join usage_export.series s using (series_id)
      join usage_export.group_value g on g."grouping" = s."grouping"
      ${tables}
      cross join unnest(${daysOf(before)}::text[]::date[]) as day
      join usage_export.snapshot_row r on r.series_id = s.series_id and r.usage_date = day and r.group_id = g.group_id
      where ${group} is not distinct from ranked."group" and not r.gone
      group by ranked.rank
    )
    select count(*)::integer as "groupCount", trim_scale(sum(hours))::text as hours,
      trim_scale(sum(requests))::text as requests,
      (
        select json_agg(json_build_object(
          'projectId', project_id, 'group', "group",
          'comment', (
            -- A rotation has several keys: the comment is that of the one used last.
            select v.comment from by_value v
            where v.project_id = ranked.project_id and v."group" = ranked."group" and v.comment is not null
            order by v.last_used desc nulls last, v.comment limit 1
          ),
          'hours', trim_scale(ranked.hours)::text, 'requests', trim_scale(ranked.requests)::text,
          'hoursBefore', trim_scale(b.hours)::text, 'requestsBefore', trim_scale(b.requests)::text
        ) order by rank)
        from ranked left join used_before b using (rank)
      ) as groups
    from by_group
  `.execute(tx);
  return rows[0];
}

/**
 * The rows that the views of these series show, in a part of the FROM clause. The views themselves join four tables for each row, and a
 * report adds up hundreds of thousands of rows.
 */
function visibleRows(series: readonly ReportSeries[], { start, end }: Window) {
  return sql`(
    select * from usage_export.snapshot_row
    where series_id = any(${integers(series.map(({ seriesId }) => seriesId))}::integer[])
      and usage_date between ${start}::date and ${end}::date and not gone
  ) visible`;
}
