// What is read of a project once a run beside its numbers: its list of API keys and, if the run is of billing, its balances.

import type { Logger } from "pino";
import { storeBalances } from "../db/balances.ts";
import { storeListedKeys } from "../db/keys/listed-keys.ts";
import { oldestFirst, recordReadings } from "../db/project-readings.ts";
import { errorText } from "../errors.ts";
import { hasStatus } from "../service/answer.ts";
import { fetchBalances } from "../service/balances.ts";
import { readKeyList } from "../service/keys.ts";
import type { Source } from "../usage/dimensions.ts";
import type { Project } from "../usage/series.ts";
import type { ExportContext } from "./export-context.ts";

/** Never throws. Resolves to false if the service answered 404: it has nothing of that kind for the project. */
type Reading = (context: ExportContext, project: Project, log: Logger, signal: AbortSignal) => Promise<boolean>;

/** Stores the service's list of API keys, so that a deleted key keeps its comment and tags. */
const syncKeyList: Reading = async ({ db, service, keys }, project, log, signal) => {
  try {
    const listed = await keys.use(project, (key) => readKeyList(service, project.id, key, signal));
    if (typeof listed === "object") await storeListedKeys(db, project.id, listed);
    else log.debug("the service does not list the project's keys");
    return listed !== "absent";
  } catch (error) {
    log.debug({ reason: errorText(error) }, "the project's keys were not listed");
    return true;
  }
};

const readBalances: Reading = async ({ db, service, keys }, project, log, signal) => {
  try {
    const balances = await keys.use(project, (key) => fetchBalances(service, project.id, key, signal));
    await storeBalances(db, project, balances);
  } catch (error) {
    if (hasStatus(error, [404])) {
      log.info("the service does not offer balances");
      return false;
    }
    if (hasStatus(error, [401, 403])) log.info({ reason: errorText(error) }, "the key may not read balances");
    else log.warn({ reason: errorText(error) }, "the balances were not read");
  }
  return true;
};

/** A key that reads usage may lack the scope for billing, so that a run of usage would be refused each time. */
const READINGS: Readonly<Record<Source, readonly Reading[]>> = {
  usage: [syncKeyList],
  billing: [syncKeyList, readBalances],
};

/** Long enough for an answer. If the service asks for a longer wait (Retry-After), the reading is skipped: it is not worth one. */
const READING_MS_MAX = 10_000;
/** What a project takes at the default rate. */
const PROJECT_MS = 200;
/** Of more projects than a run has time for, the others are read in later runs. */
const ALL_MS_MAX = 60_000;
/** So many projects can be read in READING_MS_MAX at the default rate. */
const FEW_PROJECTS = READING_MS_MAX / PROJECT_MS;
/** Projects read at the same time, of many. More would only wait for the rate limiter. */
const PROJECTS_AT_ONCE = 16;
/** If the service has nothing for so many projects, and something for none, it is not asked for the other projects of the run. */
const WITHOUT_FACTS_MAX = 8;

/** Called at the end of a run. Never throws: the run has succeeded without it. */
export async function readProjectFacts(
  context: ExportContext,
  projects: readonly Project[],
  source: Source,
): Promise<void> {
  const distinct = new Map(projects.map((project) => [project.id, project]));
  const limitMs = Math.min(Math.max(distinct.size * PROJECT_MS, READING_MS_MAX), ALL_MS_MAX);
  const signal = AbortSignal.any([context.app.signal, AbortSignal.timeout(limitMs)]);
  if (distinct.size <= FEW_PROJECTS) {
    await Promise.all([...distinct.values()].map((project) => readProject(context, project, source, signal)));
    return;
  }
  try {
    await readInTurn(context, distinct, source, signal);
  } catch (error) {
    context.app.log.debug({ reason: errorText(error) }, "the keys of the projects were not listed");
  }
}

/**
 * Those that were read longest ago come first, and what was read is recorded, so that each project has its turn. So the next run asks for
 * others if this one stopped after projects for which the service has nothing.
 */
async function readInTurn(
  context: ExportContext,
  projects: ReadonlyMap<string, Project>,
  source: Source,
  signal: AbortSignal,
): Promise<void> {
  const waiting = (await oldestFirst(context.db, [...projects.keys()]))
    .flatMap((id) => projects.get(id) ?? [])
    .values();
  const read: string[] = [];
  let hasFacts = false;
  let withoutFacts = 0;
  const readNext = async () => {
    for (const project of waiting) {
      if (signal.aborted || (!hasFacts && withoutFacts >= WITHOUT_FACTS_MAX)) return;
      const limit = AbortSignal.any([signal, AbortSignal.timeout(READING_MS_MAX)]);
      if (await readProject(context, project, source, limit)) hasFacts = true;
      else withoutFacts++;
      if (!signal.aborted) read.push(project.id);
    }
  };
  await Promise.all(Array.from({ length: PROJECTS_AT_ONCE }, readNext));
  await recordReadings(context.db, read);
}

/** Whether the service may have something for the project. */
async function readProject(
  context: ExportContext,
  project: Project,
  source: Source,
  signal: AbortSignal,
): Promise<boolean> {
  const log = context.app.log.child({ project: project.name });
  const results = await Promise.all(READINGS[source].map((read) => read(context, project, log, signal)));
  return results.includes(true);
}
