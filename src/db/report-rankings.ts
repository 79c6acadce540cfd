// Reads which API keys and tags used the most.

import { sql } from "kysely";
import type { RankedGroup, Ranking } from "../report/report-data.ts";
import type { Window } from "../usage/day.ts";
import type { ReportSeries } from "./report-series.ts";
import { shortfallOf } from "./report-sources.ts";
import type { Tx } from "./transaction.ts";

const GROUPS_MAX = 10;

/** Where the groups of a grouping stand: in `value` as the service sent them, in `group` as they are ranked. */
const GROUPS = {
  // By lineage, so that a key that was rotated is one group.
  accessor: { view: "usage_by_key", value: "accessor", group: "lineage", comment: sql`key_comment` },
  tags: { view: "usage_by_tags", value: "tags", group: "tags", comment: sql`null::text` },
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
  const { view, value, group, comment } = GROUPS[grouping];
  const { rows } = await sql<Row>`
    with usage as (
      select *, usage_date >= ${period.start}::date as current from ${sql.id("bi", view)}
      where project_id = any(${projectIds}::text[])
        and usage_date between ${before.start}::date and ${period.end}::date
    ), by_value as materialized (
      -- What a value belongs to is the same in each of its rows, and more columns to group by would be much slower.
      select project_id, max(${sql.ref(group)}) as "group", max(${comment}) as comment,
        max(usage_date) filter (where current) as last_used,
        sum(hours) filter (where current) as hours, sum(requests) filter (where current) as requests,
        sum(hours) filter (where not current) as hours_before, sum(requests) filter (where not current) as requests_before
      from usage group by project_id, ${sql.ref(value)}
    ), known as (
      select project_id, "group", sum(hours) as hours, sum(requests) as requests,
        sum(hours_before) as hours_before, sum(requests_before) as requests_before
      from by_value group by project_id, "group" having max(last_used) is not null
    ), ranked as (
      select *, row_number() over (
        order by hours desc nulls last, requests desc nulls last, "group" collate "C" nulls last, project_id collate "C"
      ) as place
      from known order by place limit ${GROUPS_MAX}
    )
    select count(*)::integer as "groupCount", trim_scale(sum(hours))::text as hours,
      trim_scale(sum(requests))::text as requests,
      (
        select json_agg(json_build_object(
          'projectId', project_id, 'group', "group",
          'comment', (
            -- Of a rotation that of the key that was used last.
            select v.comment from by_value v
            where v.project_id = ranked.project_id and v."group" = ranked."group" and v.comment is not null
            order by v.last_used desc nulls last, v.comment limit 1
          ),
          'hours', trim_scale(hours)::text, 'requests', trim_scale(requests)::text,
          'hoursBefore', trim_scale(hours_before)::text, 'requestsBefore', trim_scale(requests_before)::text
        ) order by place)
        from ranked
      ) as groups
    from known
  `.execute(tx);
  return rows[0];
}
