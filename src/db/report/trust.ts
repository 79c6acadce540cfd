// Reads where the service's numbers contradict each other, and which of them may still change.

import { sql } from "kysely";
import type { Difference, FinalityCount, TrustData } from "../../report/report-data.ts";
import type { Window } from "../../usage/days.ts";
import type { Tx } from "../connection/transaction.ts";
import { ofProjects } from "./coverage.ts";

const DIFFERENCES_MAX = 50;

/** Of these projects, or of all. */
export async function readTrust(tx: Tx, projectIds: readonly string[] | undefined, period: Window): Promise<TrustData> {
  const isAsked = sql`${ofProjects(projectIds)} and usage_date between ${period.start}::date and ${period.end}::date`;
  const { rows: finality } = await sql<FinalityCount>`
    select finality, min(usage_date) as start, max(usage_date) as "end", count(*)::integer as days, sum(slices)::integer as slices
    from (
      select finality, usage_date, count(*) as slices from bi.coverage where source = 'usage' and ${isAsked} group by 1, 2
    ) of_day
    group by finality order by min(usage_date)
  `.execute(tx);
  const { rows } = await sql<Difference & { readonly count: number }>`
    select source, project, "grouping", usage_date as day, metric, trim_scale(total)::text as total,
      trim_scale(sum_of_groups)::text as "sumOfGroups", trim_scale(difference)::text as difference,
      (count(*) over ())::integer as count
    from bi.reconciliation where ${isAsked}
    order by usage_date desc, project collate "C", source, "grouping", metric limit ${DIFFERENCES_MAX}
  `.execute(tx);
  const differences = rows.map(({ count: _, ...one }) => one);
  return { differences, differencesLeftOut: (rows[0]?.count ?? 0) - differences.length, finality };
}
