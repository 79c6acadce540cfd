// What is read of a project once a run beside its numbers: its list of API keys and, if the run is of billing, its balances.

import type { Logger } from "pino";
import { storeBalances } from "../db/balances.ts";
import { storeListedKeys } from "../db/keys/listed-keys.ts";
import { oldestFirst, recordReadings } from "../db/project-readings.ts";
import { errorText } from "../errors.ts";
import { hasStatus } from "../service/answer.ts";
import { fetchBalances } from "../service/balances.ts";
import { listKeys } from "../service/keys.ts";
import type { Project, Source } from "../usage/series.ts";
import type { ExportContext } from "./export-context.ts";

type Reading = (context: ExportContext, project: Project, log: Logger, signal: AbortSignal) => Promise<void>;

/** Stores the service's list of API keys, so that a deleted key keeps its comment and tags. */
const syncKeyList: Reading = async ({ db, service, keys }, project, log, signal) => {
  try {
    const listed = await keys.use(project, (key) => listKeys(service, project.id, key, signal));
    if (listed) await storeListedKeys(db, project.id, listed);
    else log.debug("the service does not list the project's keys");
  } catch (error) {
    log.debug({ reason: errorText(error) }, "the project's keys were not listed");
  }
};

const readBalances: Reading = async ({ db, service, keys }, project, log, signal) => {
  try {
    const balances = await keys.use(project, (key) => fetchBalances(service, project.id, key, signal));
    await storeBalances(db, project, balances);
  } catch (error) {
    if (hasStatus(error, [404])) log.info("the service does not offer balances");
    else if (hasStatus(error, [401, 403])) log.info({ reason: errorText(error) }, "the key may not read balances");
    else log.warn({ reason: errorText(error) }, "the balances were not read");
  }
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

/** Those that were read longest ago come first, and what was read is recorded, so that each project has its turn. */
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
  const readNext = async () => {
    for (const project of waiting) {
      if (signal.aborted) return;
      await readProject(context, project, source, AbortSignal.any([signal, AbortSignal.timeout(READING_MS_MAX)]));
      if (!signal.aborted) read.push(project.id);
    }
  };
  await Promise.all(Array.from({ length: PROJECTS_AT_ONCE }, readNext));
  await recordReadings(context.db, read);
}

async function readProject(
  context: ExportContext,
  project: Project,
  source: Source,
  signal: AbortSignal,
): Promise<void> {
  const log = context.app.log.child({ project: project.name });
  await Promise.all(READINGS[source].map((read) => read(context, project, log, signal)));
}
