// The list of projects for the read API, and the search for one by a part of its name.

import { z } from "zod";
import type { Run } from "../../facts/scope.ts";
import { findProjects } from "../projects.ts";
import { aLimit, aNumber, aText, parameters } from "./question.ts";

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
