// Keeps the projects of a worker as the service lists them: reads the lists from time to time, and notices a changed list whichever
// worker has read it.

import type { App } from "../app.ts";
import { type Config, listOf } from "../config/config.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { projectsVersion, storedLists } from "../db/projects.ts";
import { errorCode, errorText } from "../errors.ts";
import { readLists } from "../jobs/discovery.ts";
import { HOUR_MS } from "../usage/days.ts";

/** A worker does not attempt it more often, however the last attempt ended. */
const RETRY_MS = 5 * 60_000;
/** How long nothing is planned while lists are being read. A list that takes longer is taken up when it has been read. */
const HOLD_MS = 60_000;

type ProjectWatch = {
  readonly app: App;
  readonly config: Config;
  readonly db: Database;
  /** Takes up the configuration with the projects that are stored now. */
  readonly onChange: () => void;
  /** Called when lists have been read, or could not be. */
  readonly onRead: () => void;
};

/**
 * The returned function is called before each tick, and says whether the tick should plan. If no worker has read the lists for an hour, it
 * begins to read them, without waiting: a service that hangs must not keep the worker from its heartbeat. The tick should not plan for some
 * time while lists are read, and if the projects are no longer those of the configuration, because the worker takes them up at once. If it
 * can't, the next tick plans with the projects there are.
 */
export function openProjectWatch(
  { app, config, db, onChange, onRead }: ProjectWatch,
  holdMs = HOLD_MS,
): () => Promise<boolean> {
  const { discovery, projectsVersion: known } = config;
  let attemptedMs = Number.NEGATIVE_INFINITY;
  let isReading = false;
  let reported = known;

  async function areListsFresh(): Promise<boolean> {
    const [now, lists] = [await databaseNow(db), await storedLists(db)];
    // A list from the future was read before the database's clock was set back.
    const isFresh = (readAt: Date | null) => readAt !== null && Math.abs(now.getTime() - readAt.getTime()) < HOUR_MS;
    const fresh = new Set(lists.filter(({ readAt }) => isFresh(readAt)).map(({ list }) => list));
    return discovery.every((entry) => fresh.has(listOf(entry)));
  }

  async function read(): Promise<void> {
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

  return async () => {
    if (discovery.length === 0) return true;
    if (!isReading && performance.now() - attemptedMs >= RETRY_MS && !(await areListsFresh())) {
      attemptedMs = performance.now();
      void read();
    }
    if (isReading && performance.now() - attemptedMs < holdMs) return false;
    const version = await projectsVersion(db);
    if (version === known) return true;
    onChange();
    const isNews = version !== reported;
    reported = version;
    return !isNews;
  };
}
