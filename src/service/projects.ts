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
/** For all attempts at a page, without the waits between them: a service that does not answer must not hold up those who wait for the list. */
const PAGE_SECONDS_MAX = 120;
const LIST = "the list of projects";

const ProjectsAnswer = z.object({
  projects: z.array(z.object({ project_id: Id, name: z.string().nullish() })),
  /** Both are sent by a service that answers a long list in pages. */
  page: z.number().optional(),
  limit: z.number().optional(),
});

/** The projects that the key can see, each once. Throws if any page of the list can't be read. */
export async function fetchProjects(
  service: Service,
  key: Secret,
  signal: AbortSignal,
  pageSecondsMax = PAGE_SECONDS_MAX,
): Promise<readonly ListedProject[]> {
  const found = new Map<string, ListedProject>();
  for (let page: number | undefined; ; ) {
    const { projects, page: sent, limit } = await fetchPage(service, page, key, { signal, pageSecondsMax });
    const before = found.size;
    for (const { project_id: id, name } of projects) found.set(id, { id, name: printableName(name) || id });
    if (found.size > PROJECTS_MAX) throw badList(`it has more than ${PROJECTS_MAX}`);
    if (page !== undefined && sent !== page) throw badList(`page ${page} was asked for, and page ${sent} sent`);
    if (sent === undefined || limit === undefined || projects.length < limit || projects.length === 0) break;
    if (found.size === before) throw badList(`page ${sent} has nothing that is not on earlier pages`);
    page = sent + 1;
  }
  return [...found.values()];
}

type PageLimits = { readonly signal: AbortSignal; readonly pageSecondsMax: number };

async function fetchPage(
  service: Service,
  page: number | undefined,
  key: Secret,
  { signal, pageSecondsMax }: PageLimits,
) {
  const query = page === undefined ? {} : { query: new URLSearchParams({ page: String(page) }) };
  const late = new AbortController();
  const error = new AppError("unavailable", `${LIST}: no whole page came in ${pageSecondsMax} s`);
  let leftMs = pageSecondsMax * 1000;
  let startedMs = 0;
  let timer: NodeJS.Timeout | undefined;
  const attempts = {
    async beforeAttempt() {
      clearTimeout(timer);
      startedMs = performance.now();
      timer = setTimeout(() => late.abort(error), leftMs);
    },
    // A pause that the service asked for is not the time that it takes for a page.
    afterAttempt() {
      clearTimeout(timer);
      leftMs -= performance.now() - startedMs;
    },
  };
  try {
    const call = { method: "GET", path: ["v1", "projects"], retry: true, ...query, ...attempts } as const;
    return parseAnswer(ProjectsAnswer, await service.call(call, key, AbortSignal.any([signal, late.signal])), LIST);
  } finally {
    clearTimeout(timer);
  }
}

function badList(problem: string): AppError {
  return new AppError("bad_answer", `${LIST}: ${problem}`);
}

function printableName(name: string | null | undefined): string {
  return truncate(toPrintableLine(name ?? ""), NAME_LENGTH_MAX);
}
