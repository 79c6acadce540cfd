// Reads what the current month is expected to amount to, for the totals of a report.

import { sql } from "kysely";
import type { MetricForecast, MetricTotal } from "../../report/report-data.ts";
import type { Day, Window } from "../../usage/days.ts";
import type { Tx } from "../connection/transaction.ts";
import type { ReportSeries } from "./sources.ts";

/**
 * None if the period ends in another month. Of several projects the ends of the intervals are added up, so that the interval is rather
 * too wide. A metric of which one project has no forecast is left out. All is left out of more than `projectsMax` projects: each takes two
 * milliseconds.
 */
export async function readForecast(
  tx: Tx,
  totals: readonly ReportSeries[],
  { end }: Window,
  metrics: readonly MetricTotal[],
  projectsMax: number,
): Promise<readonly MetricForecast[] | "left out"> {
  if (totals.length > projectsMax) return (await isCurrentMonth(tx, end)) ? "left out" : [];
  const names = metrics.flatMap(({ metric, amount }) => (amount === null ? [] : [metric]));
  const { rows } = await sql<MetricForecast>`
    select month, metric, trim_scale(sum(forecast))::text as forecast, trim_scale(sum(low))::text as low, trim_scale(sum(high))::text as high
    from bi.usage_forecast
    where unfiltered and project_id = any(${totals.map(({ projectId }) => projectId)}::text[])
      and month = date_trunc('month', ${end}::text::date::timestamp)::date
      and date_trunc('month', now() at time zone 'UTC') = date_trunc('month', ${end}::text::date::timestamp)
      and metric = any(${names}::text[])
    group by month, metric
    having count(forecast) = count(*)
    order by array_position(${names}::text[], metric)
  `.execute(tx);
  return rows;
}

async function isCurrentMonth(tx: Tx, day: Day): Promise<boolean> {
  const { rows } = await sql<{ isCurrent: boolean }>`
    select date_trunc('month', now() at time zone 'UTC') = date_trunc('month', ${day}::text::date::timestamp) as "isCurrent"
  `.execute(tx);
  return rows[0]?.isCurrent ?? false;
}
