// The list of series for the read API: which projects, groupings and filters can be asked for.

import { z } from "zod";
import type { Run } from "../../facts/scope.ts";
import { literal } from "../../facts/sql.ts";
import { GROUPINGS } from "../../usage/series.ts";
import { aLimit, aText, oneOf, parameters } from "./question.ts";

const LISTED_DEFAULT = 200;

export const SeriesParameters = parameters({
  project: aText.optional().describe("The name or the identifier of a project"),
  grouping: oneOf(GROUPINGS).optional().describe("A grouping of usage"),
  limit: aLimit(LISTED_DEFAULT).describe(`How many series are listed; at most 1000, and ${LISTED_DEFAULT} if left out`),
});

export const SeriesList = z.object({
  series: z.array(
    z.object({
      projectId: z.string(),
      project: z.string().describe("Its name in the configuration"),
      grouping: z.enum(GROUPINGS),
      filter: z.string(),
      unfiltered: z
        .boolean()
        .describe("Whether the filter has no conditions: such a series is asked for without filter"),
      conditions: z.string().describe("The conditions of the filter, a JSON object as text"),
      active: z.boolean().describe("Whether it is still exported"),
    }),
  ),
  count: z.int().describe("How many there are, also those that are not listed"),
});

export async function readSeries(
  run: Run,
  { project, grouping, limit }: z.output<typeof SeriesParameters>,
): Promise<z.output<typeof SeriesList>> {
  const conditions = [
    "source = 'usage'",
    ...(project === undefined ? [] : [`(project_id = ${literal(project)} or project = ${literal(project)})`]),
    ...(grouping === undefined ? [] : [`"grouping" = ${literal(grouping)}`]),
  ];
  const from = `from bi.series where ${conditions.join(" and ")}`;
  const series = await run<z.output<typeof SeriesList>["series"][number]>(`
select project_id as "projectId", project, "grouping", filter, unfiltered, conditions, active ${from}
order by project collate "C", project_id, "grouping", filter collate "C" limit ${Number(limit)}`);
  const [counted] = await run<{ count: number }>(`select count(*)::integer as count ${from}`);
  return { series: [...series], count: counted?.count ?? 0 };
}
