// Keeps the projects of a worker up to date: reads the service's lists every hour, and notices when any worker has stored a changed list.

import type { Config } from "../config/config.ts";
import { keyName } from "../config/projects.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { projectsVersion, storedProjectLists } from "../db/projects.ts";
import { errorCode, errorText } from "../errors.ts";
import { readLists } from "../jobs/discovery.ts";
import { HOUR_MS } from "../usage/days.ts";
import type { WorkerContext } from "./worker-context.ts";

/** The least time between two attempts to read the lists. */
const RETRY_MS = 5 * 60_000;
/** How long planning waits for lists that are being read. A list that takes longer is used once it is there. */
const HOLD_MS = 60_000;

type ProjectWatchDeps = Pick<WorkerContext, "app" | "config" | "db"> & {
  /** Called when other projects are stored than the worker has. Should load them soon: until then a tick may plan runs of vanished projects. */
  readonly onChange: () => void;
  /** Called when lists have been read, or could not be. */
  readonly onRead: () => void;
};

/**
 * Returns a function that says whether a tick should plan now. If no worker has read the lists for an hour, it begins to read them in the
 * background, as a service may hang. No tick plans while lists are being read, for at most `holdMs`. When other projects are stored than the
 * worker has, one tick does not plan, so that the worker can load them. If that fails, later ticks plan with the projects that the worker has.
 */
export function watchProjects({ app, config, db, onChange, onRead }: ProjectWatchDeps, holdMs = HOLD_MS) {
  let attemptedMs = Number.NEGATIVE_INFINITY;
  let isReading = false;
  let seenVersion = config.projectsVersion;

  async function read(): Promise<void> {
    attemptedMs = performance.now();
    isReading = true;
    try {
      await readLists(app, config, db);
    } catch (error) {
      const facts = { code: errorCode(error), reason: errorText(error) };
      if (!app.signal.aborted) app.log.error(facts, "the lists of projects were not read");
    }
    isReading = false;
    onRead();
  }

  return async (): Promise<boolean> => {
    if (config.discovery.length === 0) return true;
    const isRetryDue = performance.now() - attemptedMs >= RETRY_MS;
    if (!isReading && isRetryDue && !(await areListsFresh(db, config))) void read();
    if (isReading && performance.now() - attemptedMs < holdMs) return false;
    const version = await projectsVersion(db);
    if (version === config.projectsVersion) return true;
    onChange();
    const isNewVersion = version !== seenVersion;
    seenVersion = version;
    return !isNewVersion;
  };
}

async function areListsFresh(db: Database, { discovery }: Config): Promise<boolean> {
  const [now, lists] = [await databaseNow(db), await storedProjectLists(db)];
  // A time in the future was stored before the database's clock was set back.
  const isFresh = (readAt: Date | null) => readAt !== null && Math.abs(now.getTime() - readAt.getTime()) < HOUR_MS;
  const fresh = new Set(lists.filter(({ readAt }) => isFresh(readAt)).map((list) => list.keyName));
  return discovery.every(({ key }) => fresh.has(keyName(key)));
}
