// The queues through which workers share jobs. Only this file calls pg-boss, which keeps them in a schema of its own. If the heartbeats of
// a worker stop, another worker gets its jobs. A job that fails is retried with growing delays.

import { setTimeout as sleep } from "node:timers/promises";
import { CompiledQuery } from "kysely";
import type { Db, JobInsert, JobWithMetadata, PgBoss } from "pg-boss";
import type { Logger } from "pino";
import { AppError } from "../../errors.ts";
import type { Database } from "../connection/database.ts";
import { isConnectionError } from "../connection/errors.ts";
import { setUntilCommit, type Tx } from "../connection/transaction.ts";
import { JOB_KINDS, type JobId, QUEUE_SCHEMA } from "./jobs.ts";

export type ClaimedJob = Pick<JobWithMetadata, "data" | "retryCount" | "retryLimit"> & {
  /** Aborted once this process has lost the job: it has given the job up, or another process has claimed it. */
  readonly signal: AbortSignal;
};

export type WorkSettings = {
  /** How many jobs of the queue this process may have in hand. */
  readonly atOnce: number;
  /** How many of them may be of the same group: projects with the same API key are one group. */
  readonly atOnceOfGroup?: number;
  /** If it throws, the job is retried later. `handBack` adds a copy that counts as never tried; after that the job itself may complete. */
  readonly handle: (job: ClaimedJob, handBack: () => Promise<void>) => Promise<void>;
};

export type Queue = ReturnType<typeof queueOn>;

/** After this time without a heartbeat a process counts as dead, and other processes claim its jobs. */
const HEARTBEAT_SECONDS = 15;
const HEARTBEAT_REFRESH_MS = 4_000;
/** How often jobs of dead processes are found. They are claimed after at most 26 s: HEARTBEAT_SECONDS, these 5 s, 4 s of delay, POLL_MS. */
const SUPERVISE_SECONDS = 5;
/** How often an idle process looks for jobs. */
const POLL_MS = 2_000;
/** A process that has claimed jobs looks for more after this time, or earlier if all of them have ended. */
const PAUSE_MS = 100;

/** How long finished jobs stay in the queue. Their results are in our tables. */
const KEEP_SECONDS = 7 * 24 * 60 * 60;

/** Retries after 2, 4, 8 … 128 seconds or randomly up to twice as long, so no slice fails in an outage of up to four minutes. */
const QUEUE_OPTIONS = {
  heartbeatSeconds: HEARTBEAT_SECONDS,
  deleteAfterSeconds: KEEP_SECONDS,
  expireInSeconds: 24 * 60 * 60,
  retryLimit: 7,
  retryDelay: 2,
  retryBackoff: true,
} as const;

/** Creates or updates the queue's tables. Several processes may do so at once. */
export async function installQueue(db: Database): Promise<void> {
  const boss = await openBoss(onCatalogPath(db), { migrate: true, supervise: false });
  // pg-boss reports failures of its background work as events. Without a listener they would end the process.
  const errors: Error[] = [];
  boss.on("error", (error) => errors.push(error));
  await boss.start();
  try {
    for (const name of JOB_KINDS) {
      await boss.createQueue(name, QUEUE_OPTIONS);
      await boss.updateQueue(name, QUEUE_OPTIONS);
    }
  } finally {
    await boss.stop({ close: false, graceful: false });
  }
  if (errors[0]) throw errors[0];
}

/** Gets the error if the connection to the database failed, and no error if the database answered. */
type ReportDatabase = (error?: unknown) => void;

/** Throws if `installQueue` has not run for this version. */
export async function openQueue(db: Database, log: Logger, reportDatabase: ReportDatabase = () => {}): Promise<Queue> {
  const boss = await openBoss(onPool(db, reportDatabase), { migrate: false, supervise: true });
  const report = (error: Error) => {
    // No warning if the database is out, as `onPool` reports that. pg-boss may pass a plain object with the properties of the error.
    const level = isConnectionError(Object.assign(new Error(error.message), error)) ? "debug" : "warn";
    log[level]({ reason: error.message }, "queue error");
  };
  boss.on("error", report);
  boss.on("warning", ({ message }) => log.warn({ reason: message }, "queue warning"));
  await boss.start().catch((error: Error) => {
    if (!/^pg-boss (is not installed|database requires migrations)$/.test(error.message)) throw error;
    throw new AppError("database", "the tables of the queue are not those of this version; run: usage-export migrate");
  });
  return queueOn(boss, report);
}

function queueOn(boss: PgBoss, report: (error: Error) => void) {
  const consumers: ReturnType<typeof startConsumer>[] = [];
  return {
    async add(tx: Tx, queue: JobId["kind"], jobs: readonly JobInsert[]): Promise<void> {
      if (jobs.length > 0)
        await boss.insert(queue, [...jobs], { db: { executeSql: (text, values) => executeRaw(tx, text, values) } });
    },
    work(queue: JobId["kind"], settings: WorkSettings): void {
      consumers.push(startConsumer(boss, queue, settings, report));
    },
    wake(): void {
      for (const { wake } of consumers) wake();
    },
    /** Claims no more jobs. Resolves when no job is in hand. */
    async drain(): Promise<void> {
      await Promise.all(consumers.map(({ drain }) => drain()));
    },
    /** Gives up the jobs in hand, so that other processes can claim them before their heartbeats are missed. */
    async stop(): Promise<void> {
      await Promise.all(consumers.map(({ stop }) => stop()));
      await boss.stop({ close: false, graceful: false });
    },
  };
}

/**
 * Claims jobs while fewer than `atOnce` are in hand. One statement serves all jobs that are claimed, renewed or completed at about the same
 * time. The workers of pg-boss would send statements for each job: half of all statements in a night with small projects.
 */
function startConsumer(boss: PgBoss, queue: JobId["kind"], settings: WorkSettings, report: (error: Error) => void) {
  const inHand = jobsInHand(boss, queue, report);
  const heartbeats = setInterval(() => void inHand.renew().catch(report), HEARTBEAT_REFRESH_MS);
  let isDraining = false;
  let claiming: Promise<readonly JobWithMetadata[]> | undefined;
  let wakeUp = new AbortController();
  const wake = () => wakeUp.abort();
  const handle = (job: JobWithMetadata) => inHand.handle(job, settings.handle).then(wake);
  const working = work();

  async function work(): Promise<void> {
    while (!isDraining || inHand.list().length > 0) {
      wakeUp = new AbortController();
      await inHand.completeHandled();
      claiming = isDraining ? undefined : claim(boss, queue, settings, inHand.list());
      const handling = (await claiming?.catch(report))?.map(handle) ?? [];
      // Jobs that end during this pause are completed and replaced together.
      if (handling.length > 0) await Promise.race([Promise.all(handling), sleep(PAUSE_MS)]);
      else await sleep(POLL_MS, undefined, { signal: wakeUp.signal }).catch(() => {});
    }
    clearInterval(heartbeats);
  }

  const drain = () => {
    isDraining = true;
    wake();
    return working;
  };
  const stop = async () => {
    isDraining = true;
    // The claim under way may still bring jobs, which must be given up, too.
    await claiming?.catch(() => {});
    await inHand.giveUpAll();
    wake();
  };
  return { wake, drain, stop };
}

/** The jobs that this process has claimed, until they are completed or given up. */
function jobsInHand(boss: PgBoss, queue: JobId["kind"], report: (error: Error) => void) {
  /** Each job with the controller of its signal. */
  const inHand = new Map<JobWithMetadata, AbortController>();
  const handled: JobWithMetadata[] = [];

  async function completeHandled(): Promise<void> {
    const jobs = handled.splice(0);
    if (jobs.length > 0) await boss.complete(queue, jobs).catch((error: Error) => giveUp(jobs, error));
    for (const job of jobs) inHand.delete(job);
  }

  /** If this fails, the jobs get no more heartbeats, and other processes claim them. */
  async function giveUp(jobs: readonly JobWithMetadata[], why: Error): Promise<void> {
    if (jobs.length > 0) await boss.fail(queue, [...jobs], why).catch(report);
    for (const job of jobs) inHand.delete(job);
  }

  return {
    completeHandled,
    list: () => [...inHand.keys()],
    async handle(job: JobWithMetadata, handler: WorkSettings["handle"]): Promise<void> {
      const controller = new AbortController();
      inHand.set(job, controller);
      try {
        await handler({ ...job, signal: controller.signal }, () => addCopy(boss, job));
        handled.push(job);
      } catch (error) {
        await giveUp([job], error as Error);
      }
    },
    async renew(): Promise<void> {
      const jobs = [...inHand.keys()];
      if (jobs.length === 0) return;
      const { settled: renewed } = (await boss.touch(queue, jobs)) as { readonly settled?: readonly string[] };
      for (const job of jobs) if (renewed && !renewed.includes(job.id)) inHand.get(job)?.abort();
    },
    async giveUpAll(): Promise<void> {
      await completeHandled();
      const controllers = [...inHand.values()];
      await giveUp([...inHand.keys()], new Error("the worker stopped"));
      for (const controller of controllers) controller.abort();
    },
  };
}

/**
 * Claims no more jobs than the fullest group has room for, as all of them may be of that group. A group that is more than half full would make
 * claims small. A first claim ignores such groups, and only if it finds no job, a second one includes them. `jobs` are those in hand.
 */
async function claim(
  boss: PgBoss,
  queue: JobId["kind"],
  { atOnce, atOnceOfGroup = atOnce }: WorkSettings,
  jobs: readonly JobWithMetadata[],
): Promise<readonly JobWithMetadata[]> {
  const groups = Map.groupBy(jobs, ({ groupId }) => groupId ?? "");
  groups.delete("");
  const rooms = [...groups].map(([id, { length }]) => ({ id, room: atOnceOfGroup - length }));
  const half = atOnceOfGroup / 2;
  const hasSmallRoom = rooms.some(({ room }) => room > 0 && room < half);
  for (const roomMin of hasSmallRoom ? [half, 1] : [1]) {
    const included = rooms.filter(({ room }) => room >= roomMin);
    const batchSize = Math.min(atOnce - jobs.length, atOnceOfGroup, ...included.map(({ room }) => room));
    if (batchSize === 0) return [];
    const ignoreGroups = rooms.flatMap(({ id, room }) => (room >= roomMin ? [] : [id]));
    const claimed = await boss.fetch<object>(queue, { batchSize, ignoreGroups, includeMetadata: true });
    if (claimed.length > 0) return claimed;
  }
  return [];
}

async function addCopy(boss: PgBoss, { name, data, priority, groupId }: JobWithMetadata): Promise<void> {
  await boss.insert(name, [{ data, priority, ...(groupId && { group: { id: groupId } }) }]);
}

async function openBoss(db: Db, duties: { readonly migrate: boolean; readonly supervise: boolean }): Promise<PgBoss> {
  const { PgBoss } = await import("pg-boss");
  return new PgBoss({
    ...duties,
    db,
    schema: QUEUE_SCHEMA,
    createSchema: false,
    // The worker plans the runs itself, by schedules and by coverage.
    schedule: false,
    superviseIntervalSeconds: SUPERVISE_SECONDS,
    monitorIntervalSeconds: SUPERVISE_SECONDS,
    // Only the owner of an index can rebuild it, and a few thousand new rows a night do not bloat an index.
    reindex: false,
    monitorVacuum: false,
  });
}

/** Lets pg-boss use our pool. It sends some transactions as one text. If such a text fails, the connection is still in the transaction. */
export function onPool(db: Database, reportDatabase: ReportDatabase = () => {}): Db {
  return {
    async executeSql(text, values) {
      try {
        const result = await db.connection().execute((connection) =>
          executeRaw(connection, text, values).catch(async (error: unknown) => {
            await connection.executeQuery(CompiledQuery.raw("rollback")).catch(() => {});
            throw error;
          }),
        );
        reportDatabase();
        return result;
      } catch (error) {
        if (isConnectionError(error)) reportDatabase(error);
        throw error;
      }
    },
  };
}

/** Like `onPool`, with pg_catalog as the whole search path, so that no statement uses what somebody has put into another schema. */
function onCatalogPath(db: Database): Db {
  const pool = onPool(db);
  return {
    async executeSql(text, values) {
      const begin = /^\s*begin;/i;
      if (begin.test(text))
        return pool.executeSql(text.replace(begin, "begin; set local search_path = pg_catalog;"), values);
      return db.transaction().execute(async (tx) => {
        await setUntilCommit(tx, { search_path: "pg_catalog" });
        return executeRaw(tx, text, values);
      });
    },
  };
}

async function executeRaw(on: Database, text: string, values: readonly unknown[] = []): Promise<{ rows: unknown[] }> {
  return on.executeQuery(CompiledQuery.raw(text, [...values]));
}
