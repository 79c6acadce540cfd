// Keeps the projects of a worker as the service lists them: reads the lists when they may have changed, and notices a changed list
// whichever worker has read it.

import type { App } from "../app.ts";
import { type Config, listOf } from "../config/config.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { storedJobs } from "../db/jobs/jobs.ts";
import { projectsVersion, storedLists } from "../db/projects.ts";
import { errorCode, errorText } from "../errors.ts";
import { refreshLists } from "../jobs/discovery.ts";
import { latestOccurrence, type Schedule } from "../schedule/cron.ts";
import { waitingSince } from "../schedule/due.ts";
import { NOTHING_DUE, type TickOutcome } from "./runs.ts";

/** A list is not read again before it is this old, whichever worker read it, and not attempted more often. */
const FRESH_MS = 5 * 60_000;
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
 * The returned function is called before each tick. At a start, and if an export or a rotation is due, it begins to list the projects, without waiting:
 * a service that hangs must not keep the worker from its heartbeat. Undefined if the tick should plan. It should not for some time
 * while lists are read, and if the projects are no longer those of the configuration, because the worker takes them up at once. If it
 * can't, the next tick plans with the projects there are.
 */
export function openProjectWatch(
  { app, config, db, onChange, onRead }: ProjectWatch,
  holdMs = HOLD_MS,
): () => Promise<TickOutcome | undefined> {
  const { discovery } = config;
  let isStart = true;
  let beganMs = Number.NEGATIVE_INFINITY;
  let isReading = false;
  let reported = discovery?.version;

  async function isToRead(): Promise<boolean> {
    if (isReading || performance.now() - beganMs < FRESH_MS) return false;
    return (isStart || (await isDue(config, db))) && !(await areListsFresh(config, db));
  }

  async function read(): Promise<void> {
    isReading = true;
    try {
      await refreshLists(app, config, db);
    } catch (error) {
      const facts = { code: errorCode(error), reason: errorText(error) };
      if (!app.signal.aborted) app.log.error(facts, "the lists of projects were not read");
    }
    isReading = false;
    onRead();
  }

  return async () => {
    if (!discovery) return undefined;
    if (await isToRead()) {
      beganMs = performance.now();
      void read();
    }
    isStart = false;
    const heldMs = beganMs + holdMs - performance.now();
    if (isReading && heldMs > 0) return { started: false, wakeInMs: heldMs };
    const version = await projectsVersion(db);
    if (version === discovery.version) return undefined;
    onChange();
    const isNews = version !== reported;
    reported = version;
    return isNews ? NOTHING_DUE : undefined;
  };
}

/**
 * Whether an export waits for a worker, or a scheduled time of the rotations of many projects has come since a list was read. A list that
 * was never read is due at any time.
 */
async function isDue({ exports, writtenForMany, discovery }: Config, db: Database): Promise<boolean> {
  const [now, stored, lists] = [await databaseNow(db), await storedJobs(db), await storedLists(db)];
  const readAt = (list: string) => lists.find((one) => one.list === list)?.readAt ?? new Date(0);
  const oldest = Math.min(...(discovery?.entries ?? []).map((entry) => readAt(listOf(entry)).getTime()));
  const isSinceThen = (job: Schedule) => Number(latestOccurrence(job, now)) > oldest;
  const storedJob = (name: string) => stored.find((one) => one.kind === "export" && one.name === name);
  return (
    oldest === 0 ||
    exports.some((job) => waitingSince(job, storedJob(job.name), now) !== undefined) ||
    (writtenForMany?.some((one) => one.projects !== undefined && isSinceThen(one)) ?? false)
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
