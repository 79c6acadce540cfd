// Reads usage by day and group. The groups that are not drawn are added up by the database: there may be 100,000 of them.

import { sql } from "kysely";
import type { Breakdown, DayAmounts } from "../report/report-data.ts";
import { type Day, daysOf, type Window } from "../usage/day.ts";
import type { ReportSeries } from "./report-series.ts";
import { shortDays } from "./report-sources.ts";
import type { Tx } from "./transaction.ts";

const GROUPS_MAX = 8;

/** Of the series of one grouping, one of each project. */
export async function readBreakdown(
  tx: Tx,
  grouping: Breakdown["grouping"],
  series: readonly ReportSeries[],
  period: Window,
): Promise<Breakdown> {
  const days = daysOf(period);
  const projectIds = series.map(({ projectId }) => projectId);
  const byPlace = Map.groupBy(await readRows(tx, grouping, projectIds, period), ({ place }) => place);
  const rest = byPlace.get(REST);
  return {
    grouping,
    projects: series.map(({ project }) => project),
    days,
    ...shortDays(series, days),
    groups: [...byPlace]
      .filter(([place]) => place !== REST)
      .map(([, rows]) => ({ group: rows[0]?.group ?? null, ...amountsOf(rows, days) })),
    rest: rest && { ...amountsOf(rest, days), groupCount: (rest[0]?.groupCount ?? 0) - GROUPS_MAX },
  };
}

/** The place behind the last that is drawn. */
const REST = GROUPS_MAX + 1;

type Row = {
  /** From 1 for the largest. */
  readonly place: number;
  readonly group: string | null;
  readonly day: Day;
  readonly hours: string;
  readonly requests: string;
  readonly groupCount: number;
};

/** Read twice in place of sorted once: with few groups that is as fast, and with many it is not slow. */
async function readRows(
  tx: Tx,
  grouping: Breakdown["grouping"],
  projectIds: readonly string[],
  { start, end }: Window,
): Promise<readonly Row[]> {
  const usage = sql`
    select ${sql.ref(grouping)} as "group", usage_date, hours, requests from ${sql.id("bi", `usage_by_${grouping}`)}
    where project_id = any(${projectIds}::text[]) and usage_date between ${start}::date and ${end}::date
  `;
  const { rows } = await sql<Row>`
    with known as (
      select "group", sum(hours) as hours, sum(requests) as requests from (${usage}) usage group by "group"
    ), drawn as (
      select "group", row_number() over (
        order by hours desc nulls last, requests desc nulls last, "group" collate "C" nulls last
      )::integer as place
      from known order by place limit ${GROUPS_MAX}
    )
    select coalesce(d.place, ${REST}) as place, d."group", u.usage_date as day,
      trim_scale(coalesce(sum(u.hours), 0))::text as hours, trim_scale(coalesce(sum(u.requests), 0))::text as requests,
      (select count(*) from known)::integer as "groupCount"
    from (${usage}) u
    -- No value is a group like others, which = would never find.
    left join drawn d on coalesce('=' || d."group", '') = coalesce('=' || u."group", '')
    group by d.place, d."group", u.usage_date
    order by d.place
  `.execute(tx);
  return rows;
}

function amountsOf(rows: readonly Row[], days: readonly Day[]): DayAmounts {
  const byDay = new Map(rows.map((row) => [row.day, row]));
  return {
    hours: days.map((day) => byDay.get(day)?.hours ?? "0"),
    requests: days.map((day) => byDay.get(day)?.requests ?? "0"),
  };
}
