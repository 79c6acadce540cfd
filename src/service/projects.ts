// Lists the projects that a key can see: GET /v1/projects.

import { z } from "zod";
import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { toPrintableLine, truncate } from "../text.ts";
import type { ListedProject } from "../usage/project-list.ts";
import { Id, parseAnswer } from "./answer.ts";
import type { Service } from "./service.ts";

/** No key sees nearly as many. A longer list is more likely a service that never ends its pages. */
const PROJECTS_MAX = 20_000;
const NAME_LENGTH_MAX = 100;
/** With the waits for the rate and for pauses: an export does not wait longer for a list. */
const LIST_SECONDS_MAX = 60;
const LIST = "the list of projects";

const ProjectsAnswer = z.object({
  projects: z.array(z.unknown()),
  /** Both are sent by a service that answers a long list in pages. */
  page: z.number().optional(),
  limit: z.number().optional(),
});

const Entry = z.object({
  project_id: Id,
  name: z
    .string()
    .refine((name) => name.isWellFormed(), "holds half of a surrogate pair")
    .nullish(),
});

export type ProjectList = {
  /** Each once. */
  readonly listed: readonly ListedProject[];
  /** Why entries are left out: one that can't be read says nothing about the others. */
  readonly leftOut: readonly string[];
};

/** The projects that the key can see. Throws if any page of the list can't be read. */
export async function fetchProjects(
  service: Service,
  key: Secret,
  signal: AbortSignal,
  secondsMax = LIST_SECONDS_MAX,
): Promise<ProjectList> {
  const late = AbortSignal.timeout(secondsMax * 1000);
  const found = new Map<string, ListedProject>();
  try {
    return await readPages(service, key, AbortSignal.any([signal, late]), found);
  } catch (error) {
    if (!late.aborted || signal.aborted) throw error;
    const read = found.size > 0 ? `; it had ${found.size} so far` : "";
    throw new AppError("unavailable", `${LIST}: it did not come to its end in ${secondsMax} s${read}`);
  }
}

async function readPages(
  service: Service,
  key: Secret,
  signal: AbortSignal,
  found: Map<string, ListedProject>,
): Promise<ProjectList> {
  const leftOut: string[] = [];
  for (let page: number | undefined; ; ) {
    const query = page === undefined ? {} : { query: new URLSearchParams({ page: String(page) }) };
    const how = { operation: "projects", method: "GET", retry: true, allowsHalfPairs: true } as const;
    const call = { ...how, path: ["v1", "projects"], ...query };
    const answer = parseAnswer(ProjectsAnswer, await service.call(call, key, signal), LIST);
    const { projects, page: sent, limit } = answer;
    const before = found.size;
    for (const [i, entry] of projects.entries()) {
      const { data, error } = Entry.safeParse(entry);
      if (data) found.set(data.project_id, { id: data.project_id, name: printableName(data.name) || data.project_id });
      else leftOut.push(`entry ${i + 1}${page === undefined ? "" : ` of page ${page}`}: ${issueText(error)}`);
    }
    if (found.size > PROJECTS_MAX) throw badList(`it has more than ${PROJECTS_MAX}`);
    if (page !== undefined && sent !== page) throw badList(`page ${page} was asked for, and page ${sent} sent`);
    if (sent === undefined || limit === undefined || projects.length < limit || projects.length === 0) break;
    if (found.size === before) throw badList(`page ${sent} has nothing that is not on earlier pages`);
    page = sent + 1;
  }
  return { listed: [...found.values()], leftOut };
}

function issueText({ issues: [first] }: z.ZodError): string {
  return [first?.path.join("."), first?.message].filter(Boolean).join(" ");
}

function badList(problem: string): AppError {
  return new AppError("bad_answer", `${LIST}: ${problem}`);
}

function printableName(name: string | null | undefined): string {
  return truncate(toPrintableLine(name ?? ""), NAME_LENGTH_MAX);
}
