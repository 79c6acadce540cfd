// The lists of the read API: the projects, and the series, which say what can be asked for.

import { z } from "zod";
import type { Run } from "../../facts/scope.ts";
import { literal } from "../../facts/sql.ts";
import { GROUPINGS } from "../../usage/series.ts";
import { findProjects } from "../projects.ts";
import { aLimit, aNumber, aText, oneOf, parameters } from "./question.ts";

const LISTED_DEFAULT = 200;

export const ProjectsParameters = parameters({
  search: aText
    .optional()
    .describe(
      "Only projects whose name or identifier contains this, in upper or lower case: those that are it come first, then those that begin with it",
    ),
  limit: aLimit(LISTED_DEFAULT).describe(`How many are on a page; at most 1000, and ${LISTED_DEFAULT} if left out`),
  page: aNumber(999_999, 1).describe("The first page is 1; a page after the last is empty"),
});

export const ProjectList = z.object({
  projects: z.array(
    z.object({
      projectId: z.string(),
      project: z.string().describe("Its name in the configuration"),
      active: z.boolean().describe("Whether it is still exported"),
    }),
  ),
  count: z.int().describe("How many there are, on all pages"),
});

type StoredProject = { readonly id: string; readonly name: string; readonly active: boolean };

export async function readProjects(
  run: Run,
  { search = "", limit, page }: z.output<typeof ProjectsParameters>,
): Promise<z.output<typeof ProjectList>> {
  const stored = await run<StoredProject>(`
select project_id as id, (array_agg(project order by active desc, project collate "C"))[1] as name, bool_or(active) as active
from bi.series group by project_id`);
  const found = findProjects(stored, search);
  const start = (Number(page) - 1) * Number(limit);
  const projects = found.slice(start, start + Number(limit));
  return {
    projects: projects.map(({ id, name, active }) => ({ projectId: id, project: name, active })),
    count: found.length,
  };
}

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
