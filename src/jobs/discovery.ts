// Discovers projects: lists those that a key can see, stores them, and puts them into the configuration.

import type { Logger } from "pino";
import type { App } from "../app.ts";
import { type Config, listOf, withDiscovered } from "../config/config.ts";
import { type Discovery, keyName } from "../config/projects.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { inTransaction } from "../db/connection/transaction.ts";
import {
  type ListChange,
  lockNewProjects,
  markMadeDue,
  projectsVersion,
  recordListFailure,
  storedLists,
  storedProjects,
  storeReading,
} from "../db/projects.ts";
import { extendDue, type SeriesIds, type StoredValue, seriesIdOf, storedValues } from "../db/usage/stored-series.ts";
import { AppError, errorText } from "../errors.ts";
import { openServiceFor } from "../open-service.ts";
import { hasStatus } from "../service/answer.ts";
import { fetchProjects, type ProjectList } from "../service/projects.ts";
import type { Service } from "../service/service.ts";
import { toPrintableLine } from "../text.ts";
import { addDays, type Day, dayOf, type Window } from "../usage/days.ts";
import { configuredSeries, type ExportJob, windowOf } from "../usage/plan.ts";
import { type Filter, filterKey, type Seen, type SeenValue, type SeenValues, seenFilter } from "../usage/series.ts";
import { openStaticKeys } from "./key-ring.ts";

/** The configuration with the projects that the service has listed so far. Calls no service. */
export async function withKnownProjects(config: Config, db: Database): Promise<Config> {
  if (config.discovery.length === 0) return config;
  // Read first: if a list changes in between, the version is older than the projects, and they are read once more.
  const version = await projectsVersion(db);
  return withDiscovered(config, await storedProjects(db), version);
}

/** Makes the first days of each newly discovered project due: as many days before today as its entry's `backfill` says. */
export async function makeFirstDaysDue(
  db: Database,
  { projects, exports, discovery }: Config,
  ids: SeriesIds,
): Promise<void> {
  if (discovery.length === 0) return;
  const discovered = new Map(projects.filter(({ isDiscovered }) => isDiscovered).map((one) => [one.id, one]));
  const today = dayOf(await databaseNow(db));
  await inTransaction(db, async (tx) => {
    const added = new Set((await lockNewProjects(tx)).filter((id) => discovered.has(id)));
    const series = configuredSeries(exports).filter(({ windowDays }) => windowDays !== undefined);
    const byDays = Map.groupBy(series, ({ series: { project } }) =>
      added.has(project.id) ? discovered.get(project.id)?.backfill : undefined,
    );
    for (const [days, seriesOfDays] of byDays) {
      if (days === undefined) continue;
      const window = { start: addDays(today, -days), end: addDays(today, -1) };
      const seriesIds = seriesOfDays.map((one) => seriesIdOf(ids, one.series));
      await extendDue(tx, seriesIds, { first: window.start, oldest: window, through: window.end });
    }
    if (added.size > 0) await markMadeDue(tx, [...added]);
  });
}

/** A list as it was read and what it changes, or why it was not read. */
export type ReadList = { readonly list: string } & (
  | (Pick<ProjectList, "listed" | "leftOut"> & { readonly change: ListChange | undefined })
  | { readonly error: AppError }
);

const LEFT_OUT_SHOWN_MAX = 3;

/**
 * Reads the list of each key once, also if several entries have the same key, and stores what has changed. A list that can't be read
 * leaves the projects as they are. Without a database nothing is stored and nothing is known of earlier lists. `isConfirmed`: a person
 * confirmed that the lists are right, however short.
 */
export async function readLists(
  app: App,
  config: Config,
  db: Database | undefined,
  isConfirmed = false,
): Promise<readonly ReadList[]> {
  const entries = new Map(config.discovery.map((entry) => [listOf(entry), entry]));
  if (entries.size === 0) return [];
  const readAt = db ? await databaseNow(db) : new Date();
  const service = await openServiceFor(app, config, db);
  try {
    // All at once: a list that does not come delays no other.
    return await Promise.all(
      [...entries].map(async ([list, { key }]) => {
        try {
          const { listed, leftOut } = await fetchList(app, service, key);
          if (leftOut.length > 0) {
            const facts = { list, leftOut: leftOut.length, reasons: leftOut.slice(0, LEFT_OUT_SHOWN_MAX) };
            app.log.warn(facts, "entries of the list of projects can't be used, and are left out");
          }
          const change = db && (await storeReading(db, { list, listed, readAt, isConfirmed }));
          if (change) logChange(app.log, list, change);
          return { list, listed, leftOut, change };
        } catch (error) {
          if (!(error instanceof AppError) || error.code === "stopped") throw error;
          if (db) await recordListFailure(db, list, errorText(error));
          const text = "the list of projects could not be read: those of the last list are exported";
          app.log.warn({ list, reason: errorText(error) }, text);
          return { list, error };
        }
      }),
    );
  } finally {
    await service.close();
  }
}

async function fetchList(app: App, service: Service, reference: Discovery["key"]): Promise<ProjectList> {
  const key = await openStaticKeys(app).read(reference);
  try {
    const list = await fetchProjects(service, key.named(keyName(reference)), app.signal);
    if (!list.mayGoOn) return list;
    // The projects on the next page would count as gone.
    const problem = `the list of projects fills a page of ${list.listed.length}, and further pages are not read`;
    throw new AppError("bad_answer", `${problem}: write the projects into "projects" one by one`);
  } catch (error) {
    if (!(error instanceof AppError) || !hasStatus(error, [404, 405, 501])) throw error;
    const problem =
      'the service does not list projects, so none can be discovered: write them into "projects" one by one';
    throw new AppError(error.code, `${problem} (${error.message})`, { cause: error, details: error.details });
  }
}

function logChange(log: Logger, list: string, { added, vanished, waiting }: ListChange): void {
  const counts = { list, added: added.length, vanished: vanished.length };
  if (added.length + vanished.length > 0) log.info(counts, "the list of projects has changed");
  if (waiting.length === 0) return;
  const kept = "they are exported until a list an hour or more later lacks them, too";
  log.warn({ list, missing: waiting.length }, `more than half of the projects are missing from the list: ${kept}`);
}

/** The configuration with the projects that the service lists now. Throws if a list can't be read and never was. */
export async function discoverProjects(app: App, config: Config, db: Database): Promise<Config> {
  const failures = (await readLists(app, config, db)).filter((read) => "error" in read);
  const stored = failures.length > 0 ? await storedLists(db) : [];
  for (const { list, error } of failures) {
    if (stored.some((one) => one.list === list && one.readAt !== null)) continue;
    throw new AppError(error.code, `the projects of ${list}: ${error.message}`, { cause: error });
  }
  return withKnownProjects(config, db);
}

// Turns the fan-out filters of exports into filters for the values that stored usage has.

const VALUE_LENGTH_MAX = 256;

/**
 * The configuration with the values that were seen on the days of each job's window, by the database's clock, and on the
 * days that a person asks for. Without fan-outs the database is not asked.
 */
export async function withSeenValues(config: Config, db: Database, askedDays?: Window): Promise<Config> {
  if (config.exports.every(({ fanOuts = [] }) => fanOuts.length === 0)) return config;
  const today = dayOf(await databaseNow(db));
  const named = new Map(config.exports.flatMap(({ filters }) => filters).map((one) => [filterKey(one), one]));
  const exports: ExportJob[] = [];
  for (const job of config.exports) exports.push({ ...job, seen: await readSeen(db, job, named, today, askedDays) });
  return { ...config, exports };
}

/** Warns about each fan-out that left values out because of `atMost`. */
export function warnOfLeftOut(log: Logger, { name, projects, seen, fanOuts = [] }: ExportJob): void {
  for (const { id, name: project } of projects) {
    for (const { dimension, values, leftOut } of seen?.get(id) ?? []) {
      if (leftOut === 0) continue;
      const atMost = fanOuts.find((one) => one.dimension === dimension)?.atMost;
      const fields = { job: name, project, each: dimension, read: values.length, leftOut, atMost };
      log.warn(fields, "more values were seen than the filter reads: those with the most requests are read");
    }
  }
}

/** `named` are the configured filters by their filterKey. */
async function readSeen(
  db: Database,
  job: ExportJob,
  named: ReadonlyMap<string, Filter>,
  today: Day,
  askedDays: Window | undefined,
): Promise<Seen> {
  const seen = new Map<string, readonly SeenValues[]>();
  const window = windowOf(job, today);
  if (!window) return seen;
  const ids = job.projects.map(({ id }) => id);
  const filtersOfJob = new Set(job.filters.map(filterKey));
  for (const fanOut of job.fanOuts ?? []) {
    const { dimension, atMost } = fanOut;
    const read = async (days: Window | undefined) =>
      Map.groupBy(days ? await storedValues(db, ids, fanOut, days) : [], ({ projectId }) => projectId);
    const [recent, onAskedDays] = [await read(window), await read(askedDays)];
    for (const id of ids) {
      // The values with the most requests come first.
      const mostUsed = (values: readonly StoredValue[] = []) => values.filter(isUsable).slice(0, atMost);
      const values = new Map<string, SeenValue>();
      const add = (value: string, days: Window | undefined) => {
        const filter = seenFilter(dimension, value);
        const key = filterKey(filter);
        // A configured filter with the same condition keeps its name.
        if (!filtersOfJob.has(key) && !values.has(key)) values.set(key, { filter: named.get(key) ?? filter, days });
      };
      const seenInWindow = mostUsed(recent.get(id));
      for (const { value, firstDay, lastRead } of seenInWindow) add(value, { start: firstDay, end: lastRead });
      for (const { value } of mostUsed(onAskedDays.get(id))) add(value, undefined); // Not seen in the window, so without days.
      const leftOut = (recent.get(id)?.[0]?.count ?? 0) - seenInWindow.length;
      seen.set(id, [...(seen.get(id) ?? []), { dimension, values: [...values.values()], leftOut }]);
    }
  }
  return seen;
}

/** Whether a configured filter could have the value: people type it, and read it in logs. */
function isUsable({ value }: StoredValue): boolean {
  return value !== "" && toPrintableLine(value) === value && value.length <= VALUE_LENGTH_MAX;
}
