// Reads where the service's numbers contradict each other, and which of them may still change.

import { sql } from "kysely";
import type { Difference, FinalityCount, TrustData } from "../../report/report-data.ts";
import type { Window } from "../../usage/days.ts";
import { STORED_METRICS } from "../../usage/metrics.ts";
import type { Tx } from "../connection/transaction.ts";
import { ofProjects } from "./coverage.ts";

const DIFFERENCES_MAX = 50;

/** Of these projects, or of all. */
export async function readTrust(tx: Tx, projectIds: readonly string[] | undefined, period: Window): Promise<TrustData> {
  // By day first: counting different days would sort every slice.
  const { rows: finality } = await sql<FinalityCount>`
    select finality, min(usage_date) as start, max(usage_date) as "end", count(*)::integer as days, sum(slices)::integer as slices
    from (
      select finality, usage_date, count(*) as slices from bi.coverage where source = 'usage' and ${isAsked(projectIds, period)}
      group by finality, usage_date
    ) of_day
    group by finality order by min(usage_date)
  `.execute(tx);
  return { ...(await readDifferences(tx, projectIds, period)), finality };
}

function isAsked(projectIds: readonly string[] | undefined, { start, end }: Window) {
  return sql`${ofProjects(projectIds)} and usage_date between ${start}::date and ${end}::date`;
}

async function readDifferences(
  tx: Tx,
  projectIds: readonly string[] | undefined,
  period: Window,
): Promise<Pick<TrustData, "differences" | "differencesLeftOut">> {
  const found = await findDifferences(tx, projectIds, period);
  if (!found) return { differences: [], differencesLeftOut: 0 };
  const { rows } = await sql<Difference & { readonly count: number }>`
    select source, project, "grouping", usage_date as day, metric, trim_scale(total)::text as total,
      trim_scale(sum_of_groups)::text as "sumOfGroups", trim_scale(difference)::text as difference,
      (count(*) over ())::integer as count
    from bi.reconciliation where ${isAsked(found.projectIds, found)}
    order by usage_date desc, project collate "C", source, "grouping", metric limit ${DIFFERENCES_MAX}
  `.execute(tx);
  const differences = rows.map(({ count: _, ...one }) => one);
  return { differences, differencesLeftOut: (rows[0]?.count ?? 0) - differences.length };
}

type FoundDifferences = Window & { readonly projectIds: readonly string[] };

/**
 * The projects and days that may have differences; undefined if there are none. bi.reconciliation adds up one slice after the other, which
 * suits a few projects and takes seconds for thousands. This adds all up at once. Its threshold is the lowest that the view has, so that
 * the view alone decides.
 */
async function findDifferences(
  tx: Tx,
  projectIds: readonly string[] | undefined,
  period: Window,
): Promise<FoundDifferences | undefined> {
  const sums = STORED_METRICS.map((metric) => sql`sum(${sql.ref(metric)}) as ${sql.ref(metric)}`);
  const differs = STORED_METRICS.map(
    (metric) => sql`abs(coalesce(${sql.ref(`t.${metric}`)}, 0) - coalesce(${sql.ref(`g.${metric}`)}, 0)) > 0.000000001`,
  );
  const { rows } = await sql<{ [Part in keyof FoundDifferences]: FoundDifferences[Part] | null }>`
    with asked as materialized (
      select series_id, source, project_id, "grouping" from usage_export.series
      where filter_key = '{}' and superseded_at is null and ${ofProjects(projectIds)}
        and (source = 'billing' or "grouping" not in ('tags', 'feature_set'))
    ), amount as materialized (
      select series_id, usage_date, ${sql.join(sums)} from usage_export.snapshot_row
      where usage_date between ${period.start}::date and ${period.end}::date and not gone
        and series_id in (select series_id from asked)
      group by series_id, usage_date
    ), pair as materialized (
      select g.series_id, t.series_id as total_id, project_id
      from asked g join asked t using (source, project_id) where g."grouping" <> 'none' and t."grouping" = 'none'
    ), differing as (
      select p.project_id, t.usage_date
      from pair p
      join amount t on t.series_id = p.total_id
      left join amount g on g.series_id = p.series_id and g.usage_date = t.usage_date
      where ${sql.join(differs, sql` or `)}
      union all
      select p.project_id, g.usage_date
      from pair p
      join amount g on g.series_id = p.series_id
      left join amount t on t.series_id = p.total_id and t.usage_date = g.usage_date
      where t.series_id is null
    )
    select json_agg(distinct project_id) as "projectIds", min(usage_date) as start, max(usage_date) as "end" from differing
  `.execute(tx);
  const [{ projectIds: ids = null, start = null, end = null } = {}] = rows;
  return ids && start && end ? { projectIds: ids, start, end } : undefined;
}
