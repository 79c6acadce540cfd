// Compares stored slices with what the fast service answered for them.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { METRICS } from "../../src/usage/metrics.ts";

type Numbers = Readonly<Record<string, string | null>>;

type SampledSlice = {
  readonly projectId: string;
  readonly grouping: string;
  readonly day: string;
  readonly start: string;
  readonly end: string;
  readonly rows: readonly Numbers[];
};

type Answer = {
  readonly results: readonly (Readonly<Record<string, number>> & {
    readonly grouping: Readonly<Record<string, string | readonly string[] | null>>;
  })[];
};

/** Compares `count` slices of the newest `days` days, which were requested together. Throws at the first that differs. Returns how many rows it compared. */
export async function requireAsAnswered(
  db: Database,
  service: string,
  { count, days }: { readonly count: number; readonly days: number },
): Promise<number> {
  const { rows: slices } = await sql<SampledSlice>`
    select s.project_id as "projectId", s."grouping", sl.usage_date::text as day, (current_date - ${sql.lit(days)})::text as start,
      (current_date - 1)::text as "end",
      (
        select json_agg(json_build_object('group', g.group_key, ${sql.join(
          METRICS.map((metric) => sql`${sql.lit(metric)}, trim_scale(r.${sql.ref(metric)})::text`),
        )}) order by g.group_key)
        from usage_export.slice_row r join usage_export.group_value g using (group_id)
        where r.series_id = sl.series_id and r.usage_date = sl.usage_date and not r.gone
      ) as rows
    from usage_export.slice sl
    join usage_export.series s using (series_id)
    where sl.usage_date between current_date - ${sql.lit(days)} and current_date - 1
    order by md5(sl.series_id || ' ' || sl.usage_date) limit ${count}
  `.execute(db);
  if (slices.length !== count) throw new Error(`expected ${count} slices to compare; ${slices.length} are stored`);
  let compared = 0;
  for (const slice of slices) {
    const expected = JSON.stringify(await answeredRows(service, slice));
    const stored = JSON.stringify(slice.rows);
    const { projectId, grouping, day } = slice;
    if (stored !== expected) throw new Error(`${projectId}, ${grouping}, ${day}: expected ${expected}; got ${stored}`);
    compared += slice.rows.length;
  }
  return compared;
}

async function answeredRows(service: string, { projectId, grouping, day, start, end }: SampledSlice) {
  const query = new URLSearchParams({ start, end, ...(grouping !== "none" && { grouping }) });
  const answer = (await (await fetch(`${service}/v1/projects/${projectId}/usage/breakdown?${query}`)).json()) as Answer;
  return answer.results
    .filter((row) => row.grouping.start === day)
    .map((row) => {
      const value = row.grouping[grouping] ?? null;
      const group = grouping === "none" ? "all" : value && JSON.stringify([...new Set([value].flat())].sort());
      const numbers = METRICS.map((metric) => [metric, String(row[metric])]);
      return { group: group ?? "null", ...Object.fromEntries(numbers) };
    })
    .sort((a, b) => (a.group < b.group ? -1 : 1));
}
