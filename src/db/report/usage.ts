// Reads the amounts of a report: totals, usage by day and group, and the groups with the most usage.

import { sql } from "kysely";
import type { Breakdown, DayAmounts, MetricTotal, RankedGroup, Ranking } from "../../report/report-data.ts";
import { type Day, daysOf, type Window } from "../../usage/days.ts";
import type { Tx } from "../connection/transaction.ts";
import { countLackingDays, incompleteAndUnreadDays, type ReportSeries } from "./sources.ts";

const TOTAL_METRICS = ["hours", "tokens_in", "tokens_out", "tts_characters", "requests"] as const;

export async function readTotals(
  tx: Tx,
  sources: readonly ReportSeries[],
  before: Window,
  period: Window,
): Promise<readonly MetricTotal[]> {
  if (sources.length === 0) return TOTAL_METRICS.map((metric) => ({ metric, amount: null, before: null }));
  const usage = [...Map.groupBy(sources, ({ grouping }) => grouping)].map(
    ([grouping, series]) => sql`
      select usage_date, ${sql.join(TOTAL_METRICS.map((metric) => sql.ref(metric)))}
      from ${sql.id("bi", grouping === "none" ? "usage_total" : `usage_by_${grouping}`)}
      where project_id = any(${series.map(({ projectId }) => projectId)}::text[])
        and usage_date between ${before.start}::date and ${period.end}::date
    `,
  );
  const totals = TOTAL_METRICS.map((metric) => {
    const amount = sql.ref(metric);
    return sql`json_build_object('metric', ${metric}::text,
      'amount', trim_scale(sum(${amount}) filter (where usage_date >= ${period.start}::date))::text,
      'before', trim_scale(sum(${amount}) filter (where usage_date < ${period.start}::date))::text)`;
  });
  const { rows } = await sql<{ totals: readonly MetricTotal[] }>`
    select json_build_array(${sql.join(totals)}) as totals from (${sql.join(usage, sql` union all `)}) usage
  `.execute(tx);
  return rows[0]?.totals ?? [];
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
  const usage = sql`
    select ${sql.ref(grouping)} as "group", usage_date, hours, requests from ${sql.id("bi", `usage_by_${grouping}`)}
    where project_id = any(${series.map(({ projectId }) => projectId)}::text[])
      and usage_date between ${period.start}::date and ${period.end}::date
  `;
  // The view is read twice, for the sums and for the days. With few groups that is as fast as reading it once and sorting its rows by
  // group, and with many groups it is not slow.
  const { rows } = await sql<BreakdownRow>`
    with by_group as (
      select "group", sum(hours) as hours, sum(requests) as requests from (${usage}) usage group by "group"
    ), drawn as (
      select "group", row_number() over (
        order by hours desc nulls last, requests desc nulls last, "group" collate "C" nulls last
      )::integer as rank
      from by_group order by rank limit ${BREAKDOWN_GROUPS_MAX}
    )
    select coalesce(d.rank, ${REST_RANK}) as rank, d."group", u.usage_date as day,
      trim_scale(coalesce(sum(u.hours), 0))::text as hours, trim_scale(coalesce(sum(u.requests), 0))::text as requests,
      (select count(*) from by_group)::integer as "groupCount"
    from (${usage}) u
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

/** Columns of the views: `value` is the group as the service sent it, `group` is what is ranked. */
const RANKING_VIEWS = {
  // By lineage, so that all keys of a rotation are one group.
  accessor: { view: "usage_by_key", value: "accessor", group: "lineage", comment: sql`key_comment` },
  tags: { view: "usage_by_tags", value: "tags", group: "tags", comment: sql`null::text` },
} as const;

type RankingRow = {
  readonly groups: readonly (Omit<RankedGroup, "project"> & { readonly projectId: string })[] | null;
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
  const row = await readRankingRow(tx, grouping, [...names.keys()], before, period);
  // A request with two tags may count for both.
  const addsUp = grouping !== "tags";
  return {
    grouping,
    projects: [...names.values()],
    ...countLackingDays(series),
    groups: (row?.groups ?? []).map(({ projectId, ...group }) => ({
      project: names.get(projectId) ?? projectId,
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
  projectIds: readonly string[],
  before: Window,
  period: Window,
): Promise<RankingRow | undefined> {
  const { view, value, group, comment } = RANKING_VIEWS[grouping];
  const { rows } = await sql<RankingRow>`
    with usage as (
      select *, usage_date >= ${period.start}::date as current from ${sql.id("bi", view)}
      where project_id = any(${projectIds}::text[])
        and usage_date between ${before.start}::date and ${period.end}::date
    ), by_value as materialized (
      -- All rows of a value have the same group and comment; grouping by these columns as well would be much slower.
      select project_id, max(${sql.ref(group)}) as "group", max(${comment}) as comment,
        max(usage_date) filter (where current) as last_used,
        sum(hours) filter (where current) as hours, sum(requests) filter (where current) as requests,
        sum(hours) filter (where not current) as hours_before, sum(requests) filter (where not current) as requests_before
      from usage group by project_id, ${sql.ref(value)}
    ), by_group as (
      -- Only groups with usage in the period itself, not those of the period before alone.
      select project_id, "group", sum(hours) as hours, sum(requests) as requests,
        sum(hours_before) as hours_before, sum(requests_before) as requests_before
      from by_value group by project_id, "group" having max(last_used) is not null
    ), ranked as (
      select *, row_number() over (
        order by hours desc nulls last, requests desc nulls last, "group" collate "C" nulls last, project_id collate "C"
      ) as rank
      from by_group order by rank limit ${RANKED_GROUPS_MAX}
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
          'hours', trim_scale(hours)::text, 'requests', trim_scale(requests)::text,
          'hoursBefore', trim_scale(hours_before)::text, 'requestsBefore', trim_scale(requests_before)::text
        ) order by rank)
        from ranked
      ) as groups
    from by_group
  `.execute(tx);
  return rows[0];
}
