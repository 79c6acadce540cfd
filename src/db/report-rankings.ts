// Reads which API keys and tags used the most.

import { sql } from "kysely";
import type { RankedGroup, Ranking } from "../report/report-data.ts";
import type { Window } from "../usage/day.ts";
import type { ReportSeries } from "./report-series.ts";
import { shortfallOf } from "./report-sources.ts";
import type { Tx } from "./transaction.ts";

const GROUPS_MAX = 10;

/** Where the groups of a grouping stand, and what is known of the API key behind one. */
const GROUPS = {
  // By lineage, so that a key that was rotated is one group.
  accessor: { view: "usage_by_key", group: "lineage", comment: sql`key_comment` },
  tags: { view: "usage_by_tags", group: "tags", comment: sql`null::text` },
} as const;

type Row = {
  readonly groups: readonly (Omit<RankedGroup, "project"> & { readonly projectId: string })[] | null;
  readonly groupCount: number;
  readonly hours: string | null;
  readonly requests: string | null;
};

/** Of the series of one grouping, one of each project. */
export async function readRanking(
  tx: Tx,
  grouping: Ranking["grouping"],
  series: readonly ReportSeries[],
  before: Window,
  period: Window,
): Promise<Ranking> {
  const names = new Map(series.map(({ projectId, project }) => [projectId, project]));
  const row = await readRow(tx, grouping, [...names.keys()], before, period);
  // A request with two tags may count for both.
  const addsUp = grouping !== "tags";
  return {
    grouping,
    projects: [...names.values()],
    ...shortfallOf(series),
    groups: (row?.groups ?? []).map(({ projectId, ...group }) => ({
      project: names.get(projectId) ?? projectId,
      ...group,
    })),
    groupCount: row?.groupCount ?? 0,
    hours: addsUp ? (row?.hours ?? null) : null,
    requests: addsUp ? (row?.requests ?? null) : null,
  };
}

async function readRow(
  tx: Tx,
  grouping: Ranking["grouping"],
  projectIds: readonly string[],
  before: Window,
  period: Window,
): Promise<Row | undefined> {
  const { view, group, comment } = GROUPS[grouping];
  const { rows } = await sql<Row>`
    with usage as not materialized (
      select project_id, ${sql.ref(group)} as "group", ${comment} as comment, usage_date, hours, requests,
        usage_date >= ${period.start}::date as current
      from ${sql.id("bi", view)}
      where project_id = any(${projectIds}::text[])
        and usage_date between ${before.start}::date and ${period.end}::date
    ), known as (
      select project_id, "group", sum(hours) filter (where current) as hours,
        sum(requests) filter (where current) as requests, sum(hours) filter (where not current) as hours_before,
        sum(requests) filter (where not current) as requests_before
      from usage group by project_id, "group" having bool_or(current)
    ), ranked as (
      select *, row_number() over (
        order by hours desc nulls last, requests desc nulls last, "group" collate "C" nulls last, project_id collate "C"
      ) as place
      from known order by place limit ${GROUPS_MAX}
    ), commented as (
      -- Of a rotation the key that was used last.
      select distinct on (project_id, "group") project_id, "group", comment from usage
      -- Read again, for a few groups: with the comment as well, the groups of above would be too many to be hashed.
      where current and comment is not null and "group" = any((select array_agg("group") from ranked)::text[])
      order by project_id, "group", usage_date desc, comment
    )
    select count(*)::integer as "groupCount", trim_scale(sum(hours))::text as hours,
      trim_scale(sum(requests))::text as requests,
      (
        select json_agg(json_build_object(
          'projectId', project_id, 'group', "group",
          'comment', comment,
          'hours', trim_scale(hours)::text, 'requests', trim_scale(requests)::text,
          'hoursBefore', trim_scale(hours_before)::text, 'requestsBefore', trim_scale(requests_before)::text
        ) order by place)
        from ranked left join commented using (project_id, "group")
      ) as groups
    from known
  `.execute(tx);
  return rows[0];
}
