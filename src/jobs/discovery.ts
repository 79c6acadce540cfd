// Discovers projects: reads the list of the projects that a key can see, stores it, and puts the projects into the configuration.

import type { Logger } from "pino";
import type { App } from "../app.ts";
import { type Config, withDiscovered } from "../config/config.ts";
import { type Discovery, keyName } from "../config/projects.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { inTransaction } from "../db/connection/transaction.ts";
import {
  type ListChange,
  lockNewProjects,
  markMadeDue,
  projectsVersion,
  recordListFailure,
  storedProjectLists,
  storedProjects,
  storeReading,
} from "../db/projects.ts";
import { extendDue, type SeriesIds, seriesIdOf } from "../db/usage/stored-series.ts";
import { AppError, errorText } from "../errors.ts";
import { openServiceFor } from "../open-service.ts";
import { hasStatus } from "../service/answer.ts";
import type { Service } from "../service/client-types.ts";
import { fetchProjects, type ProjectList } from "../service/projects.ts";
import { dayOf, lastDays } from "../usage/days.ts";
import { configuredSeries } from "../usage/export-plan.ts";
import { openStaticKeys } from "./key-ring.ts";

/** The configuration with the discovered projects that are stored. Does not call the service. */
export async function withKnownProjects(config: Config, db: Database): Promise<Config> {
  if (config.discovery.length === 0) return config;
  // Read before the projects. If a list changes in between, the version is older than the projects, and the worker reads both once more.
  const version = await projectsVersion(db);
  return withDiscovered(config, await storedProjects(db), version);
}

/** Makes the last `backfill` days of each newly discovered project due, in each series that has a window. */
export async function makeFirstDaysDue(db: Database, { projects, exports, discovery }: Config, ids: SeriesIds) {
  if (discovery.length === 0) return;
  const discovered = new Map(projects.filter(({ isDiscovered }) => isDiscovered).map((one) => [one.id, one]));
  const today = dayOf(await databaseNow(db));
  await inTransaction(db, async (tx) => {
    const added = new Set((await lockNewProjects(tx)).filter((id) => discovered.has(id)));
    const windowed = configuredSeries(exports).filter(({ windowDays }) => windowDays !== undefined);
    const ofAdded = windowed.map(({ series }) => series).filter(({ project }) => added.has(project.id));
    for (const [days, series] of Map.groupBy(ofAdded, ({ project }) => discovered.get(project.id)?.backfill)) {
      if (days === undefined) continue;
      const window = lastDays(today, days);
      const seriesIds = series.map((one) => seriesIdOf(ids, one));
      await extendDue(tx, seriesIds, { first: window.start, oldestWindow: window, through: window.end });
    }
    if (added.size > 0) await markMadeDue(tx, [...added]);
  });
}

/** The list that one key sees and what it changes, or why it could not be read. */
export type ListOutcome = { readonly keyName: string } & (
  | (Pick<ProjectList, "listed" | "leftOut"> & { readonly change: ListChange | undefined })
  | { readonly error: AppError }
);

/** Reads the lists and stores what has changed. `isConfirmed`: a person says that the lists are right, even if most known projects are missing. */
export async function readLists(app: App, config: Config, db: Database | undefined, isConfirmed = false) {
  const entries = new Map(config.discovery.map((entry) => [keyName(entry.key), entry]));
  if (entries.size === 0) return [];
  const readAt = db ? await databaseNow(db) : new Date();
  await using service = await openServiceFor(app, config, db);
  // All at once, so that a slow list delays no other.
  return await Promise.all(
    [...entries].map(async ([name, { key }]): Promise<ListOutcome> => {
      try {
        const { listed, leftOut } = await fetchList(app, service, key);
        if (leftOut.length > 0) {
          const facts = { list: name, leftOut: leftOut.length, reasons: leftOut.slice(0, 3) };
          app.log.warn(facts, "entries of the list of projects can't be used, and are left out");
        }
        const change = db && (await storeReading(db, { keyName: name, listed, readAt, isConfirmed }));
        if (change) logChange(app.log, name, change);
        return { keyName: name, listed, leftOut, change };
      } catch (error) {
        if (!(error instanceof AppError) || error.code === "stopped") throw error;
        const reason = errorText(error);
        if (db) await recordListFailure(db, name, reason);
        app.log.warn({ list: name, reason }, "the list of projects could not be read: the last one is used");
        return { keyName: name, error };
      }
    }),
  );
}

async function fetchList(app: App, service: Service, reference: Discovery["key"]): Promise<ProjectList> {
  const key = await openStaticKeys(app).read(reference);
  try {
    const list = await fetchProjects(service, key.named(keyName(reference)), app.signal);
    if (!list.isFullPage) return list;
    // Projects on further pages would count as gone.
    const problem = `the list of projects fills a page of ${list.listed.length}, and further pages are not read`;
    throw new AppError("bad_answer", `${problem}: write the projects into "projects" one by one`);
  } catch (error) {
    if (!(error instanceof AppError) || !hasStatus(error, 404, 405, 501)) throw error;
    const problem =
      'the service does not list projects, so none can be discovered: write them into "projects" one by one';
    throw new AppError(error.code, `${problem} (${error.message})`, { cause: error, details: error.details });
  }
}

function logChange(log: Logger, name: string, { added, vanished, waiting }: ListChange): void {
  const counts = { list: name, added: added.length, vanished: vanished.length };
  if (added.length + vanished.length > 0) log.info(counts, "the list of projects has changed");
  if (waiting.length === 0) return;
  const hint = "they are exported until a list that is read an hour or more later lacks them, too";
  const facts = { list: name, missing: waiting.length };
  log.warn(facts, `more than half of the projects are missing from the list: ${hint}`);
}

/** The configuration with the projects that the service lists now. Throws if a list can't be read and has never been read. */
export async function discoverProjects(app: App, config: Config, db: Database): Promise<Config> {
  const failures = (await readLists(app, config, db)).filter((read) => "error" in read);
  const stored = failures.length > 0 ? await storedProjectLists(db) : [];
  for (const { keyName: name, error } of failures) {
    if (stored.some((list) => list.keyName === name && list.readAt !== null)) continue;
    throw new AppError(error.code, `the projects of ${name}: ${error.message}`, { cause: error });
  }
  return withKnownProjects(config, db);
}
