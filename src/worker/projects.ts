// Keeps the projects of a worker as the service lists them: reads the lists when they may have changed, and notices a changed list
// whichever worker has read it.

import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import { listOf } from "../config/discovered.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { storedJobs } from "../db/jobs/jobs.ts";
import { projectsVersion, storedLists } from "../db/projects.ts";
import { refreshLists, withKnownProjects } from "../jobs/discover.ts";
import { waitingSince } from "../schedule/due.ts";

/** A list is not read again before it is this old, whichever worker read it, and not attempted more often. */
const FRESH_MS = 5 * 60_000;

/** Whether the configuration lacks its discovered projects, as it was loaded before the database was reached. */
export function lacksProjects({ discovery }: Config): boolean {
  return discovery !== undefined && discovery.version === undefined;
}

/** The configuration with its discovered projects, listed now unless that was done a moment ago. */
export async function addProjects(app: App, config: Config, db: Database): Promise<Config> {
  if (!(await areListsFresh(config, db))) await refreshLists(app, config, db);
  return withKnownProjects(config, db);
}

type ProjectWatch = {
  readonly app: App;
  readonly config: Config;
  readonly db: Database;
  /** Takes up the configuration with the projects that are stored now. */
  readonly onChange: () => void;
};

/**
 * The returned function is called before each tick. If an export is due, it lists the projects. It returns true if they are no longer
 * those of the configuration: then this tick should plan nothing, because the worker takes them up at once. If it can't, the next tick
 * plans with the projects there are.
 */
export function openProjectWatch({ app, config, db, onChange }: ProjectWatch): () => Promise<boolean> {
  const { discovery } = config;
  let attemptedMs = Number.NEGATIVE_INFINITY;
  let reported = discovery?.version;
  return async () => {
    if (!discovery) return false;
    if (
      performance.now() - attemptedMs >= FRESH_MS &&
      (await isDue(config, db)) &&
      !(await areListsFresh(config, db))
    ) {
      attemptedMs = performance.now();
      await refreshLists(app, config, db);
    }
    const version = await projectsVersion(db);
    if (version === discovery.version) return false;
    onChange();
    const isNews = version !== reported;
    reported = version;
    return isNews;
  };
}

/** Whether an export waits for a worker, or a list was never read. */
async function isDue({ exports, discovery }: Config, db: Database): Promise<boolean> {
  const [now, stored, lists] = [await databaseNow(db), await storedJobs(db), await storedLists(db)];
  const isUnread = (list: string) => !lists.some((one) => one.list === list && one.readAt !== null);
  const storedJob = (name: string) => stored.find((one) => one.kind === "export" && one.name === name);
  return (
    discovery?.entries.some((entry) => isUnread(listOf(entry))) === true ||
    exports.some((job) => waitingSince(job, storedJob(job.name), now) !== undefined)
  );
}

async function areListsFresh({ discovery }: Config, db: Database): Promise<boolean> {
  const [now, lists] = [await databaseNow(db), await storedLists(db)];
  const isFresh = (readAt: Date) => {
    const ageMs = now.getTime() - readAt.getTime();
    // Below 0 the database's clock was set back: how old the list is, is not known.
    return ageMs >= 0 && ageMs < FRESH_MS;
  };
  const fresh = lists.filter(({ readAt }) => readAt !== null && isFresh(readAt));
  return discovery?.entries.every((entry) => fresh.some(({ list }) => list === listOf(entry))) ?? true;
}
