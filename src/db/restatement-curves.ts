// Reads how much of a day was known how soon.

import { sql } from "kysely";
import type { Series } from "../usage/series.ts";
import type { CurvePoint } from "../usage/window-advice.ts";
import type { Database } from "./database.ts";

/** Each curve is of one series and metric. Looks through all that ever changed in these series, so ask for few and small ones. */
export async function restatementCurves(
  db: Database,
  series: readonly Series[],
): Promise<readonly (readonly CurvePoint[])[]> {
  const { rows } = await sql<CurvePoint & { curve: string }>`
    select days_after as "daysAfter", known_share::double precision as "knownShare", days,
      concat_ws(' ', project_id, "grouping", filter, metric) as curve
    from bi.restatement_curve
    where (project_id, "grouping", filter) in (
      select * from unnest(
        ${series.map(({ project }) => project.id)}::text[], ${series.map(({ grouping }) => grouping)}::text[],
        ${series.map(({ filter }) => filter.name)}::text[]
      )
    )
  `.execute(db);
  return [...Map.groupBy(rows, ({ curve }) => curve).values()];
}
