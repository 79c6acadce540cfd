// The queues through which workers share jobs: pg-boss, in a schema of its own. Only this file knows pg-boss. The jobs of a worker whose
// heartbeats stop go to another one, and a job that fails is tried again, later each time.

import { CompiledQuery } from "kysely";
import type { Db, JobInsert, JobWithMetadata, PgBoss, WorkOptions } from "pg-boss";
import type { Logger } from "pino";
import { AppError } from "../../errors.ts";
import type { Database } from "../connection/database.ts";
import { isConnectionError } from "../connection/errors.ts";
import { setUntilCommit, type Tx } from "../connection/transaction.ts";
import { JOB_KINDS, type JobId, QUEUE_SCHEMA } from "./jobs.ts";

export type ClaimedJob = Pick<JobWithMetadata, "data" | "retryCount" | "retryLimit"> & {
  /** Aborted if another process has claimed the job since. */
  readonly signal: AbortSignal;
};

export type WorkSettings = {
  /** How many jobs of the queue this process has in hand at most. */
  readonly atOnce: number;
  /** How many of these may have the same `group` of pg-boss. */
  readonly atOnceOfGroup?: number;
  /** A job whose handler throws is tried again later. With `handBack` the handler leaves a new job without the attempts of this one. */
  readonly handle: (job: ClaimedJob, handBack: () => Promise<void>) => Promise<void>;
};

export type Queue = ReturnType<typeof queueOn>;

/** After this time without a heartbeat a process counts as dead, and other processes claim its jobs. */
const HEARTBEAT_SECONDS = 15;
const HEARTBEAT_REFRESH_SECONDS = 4;
/** How often jobs of dead processes are looked for. With HEARTBEAT_SECONDS, a retry delay and the polling, one is claimed within 25 s. */
const SUPERVISE_SECONDS = 5;
/** Three consumers of a queue look for jobs every 2 s, so that an idle process makes few queries. If one finds a job, others look, too. */
const POLLERS = 3;
const POLL_SECONDS = 2;
const RESERVE_POLL_SECONDS = 30;

/** How long the queue keeps finished jobs. Their results are in our tables. */
const KEEP_SECONDS = 7 * 24 * 60 * 60;

/** Retries after 2, 4, 8 … 128 seconds: no slice fails in an outage of the service of up to four minutes. */
const QUEUE_OPTIONS = {
  heartbeatSeconds: HEARTBEAT_SECONDS,
  deleteAfterSeconds: KEEP_SECONDS,
  expireInSeconds: 24 * 60 * 60 - 1,
  retryLimit: 7,
  retryDelay: 2,
  retryBackoff: true,
} as const;

/** Creates or updates the queue's tables. Several processes may do so at once. */
export async function installQueue(db: Database): Promise<void> {
  const boss = await openBoss(onCatalogPath(db), { migrate: true, supervise: false });
  // pg-boss reports failures of its background work as events. Without a listener they would end the process.
  let trouble: Error | undefined;
  boss.on("error", (error) => {
    trouble ??= error;
  });
  await boss.start();
  try {
    for (const name of JOB_KINDS) {
      await boss.createQueue(name, QUEUE_OPTIONS);
      await boss.updateQueue(name, QUEUE_OPTIONS);
    }
  } finally {
    await boss.stop({ close: false, graceful: false });
  }
  if (trouble) throw trouble;
}

/** Called without an error when the database answered the queue. */
type ReportDatabase = (error?: unknown) => void;

/** Throws if `installQueue` has not run for this version. */
export async function openQueue(db: Database, log: Logger, reportDatabase: ReportDatabase = () => {}): Promise<Queue> {
  const boss = await openBoss(onPool(db, reportDatabase), { migrate: false, supervise: true });
  boss.on("error", (error) => {
    // The database's own outage is reported by its statements, so it is no warning here.
    const level = isConnectionError(Object.assign(new Error(error.message), error)) ? "debug" : "warn";
    log[level]({ reason: error.message }, "queue error");
  });
  boss.on("warning", ({ message }) => log.warn({ reason: message }, "queue warning"));
  await boss.start().catch((error: Error) => {
    if (!/^pg-boss (is not installed|database requires migrations)$/.test(error.message)) throw error;
    throw new AppError("database", "the tables of the queue are not those of this version; run: usage-export migrate");
  });
  return queueOn(boss);
}

function queueOn(boss: PgBoss) {
  const worked = new Set<JobId["kind"]>();
  /** Looks for jobs at once: there may be new ones. */
  const wake = () => {
    for (const { id } of boss.getWipData()) boss.notifyWorker(id);
  };
  /**
   * Called when a consumer has found a job: there may be more. Those with a job look again when they have handled it, and one idle consumer
   * looks at once; if it finds a job, the next one does. If all looked, most of the worker's statements would be theirs.
   */
  const wakeNext = (queue: JobId["kind"]) => {
    const consumers = boss.getWipData().filter(({ name }) => name === queue);
    const idle = consumers.find(({ count }) => count === 0);
    for (const { id, count } of consumers) if (count > 0 || id === idle?.id) boss.notifyWorker(id);
  };
  return {
    /** Adds jobs when the transaction commits. */
    async add(tx: Tx, queue: JobId["kind"], jobs: readonly JobInsert[]): Promise<void> {
      if (jobs.length > 0)
        await boss.insert(queue, [...jobs], { db: { executeSql: (text, values) => executeRaw(tx, text, values) } });
    },
    async work(queue: JobId["kind"], { atOnce, atOnceOfGroup, handle }: WorkSettings): Promise<void> {
      worked.add(queue);
      const work = async ([job]: JobWithMetadata[]) => {
        wakeNext(queue);
        if (job) await handle(job, () => addAnew(boss, job));
      };
      const pollers = Math.min(POLLERS, atOnce - 1);
      for (const [localConcurrency, pollingIntervalSeconds] of [
        [pollers, POLL_SECONDS],
        [atOnce - pollers, pollers > 0 ? RESERVE_POLL_SECONDS : POLL_SECONDS],
      ] as const) {
        if (localConcurrency === 0) continue;
        const options: WorkOptions & { includeMetadata: true } = {
          ...{ localConcurrency, pollingIntervalSeconds, includeMetadata: true },
          heartbeatRefreshSeconds: HEARTBEAT_REFRESH_SECONDS,
          // pg-boss counts it over both calls of `work`, and takes the number of the second one.
          ...(atOnceOfGroup && { localGroupConcurrency: Math.min(atOnceOfGroup, localConcurrency) }),
        };
        await boss.work<object, void, typeof options>(queue, options, work);
      }
    },
    wake,
    /** Claims no more. Resolves when no job is in hand. */
    async drain(): Promise<void> {
      await Promise.all([...worked].map((queue) => boss.offWork(queue, { wait: true })));
    },
    stop: () => boss.stop({ close: false, graceful: false }),
  };
}

async function addAnew(boss: PgBoss, { name, data, priority, groupId }: JobWithMetadata): Promise<void> {
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

/**
 * Lets pg-boss use our pool, so that a process has only one. pg-boss sends some transactions as one text, from BEGIN to COMMIT. If a
 * statement of such a text fails, the connection must be rolled back before it returns to the pool.
 */
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

/** Does what onPool does, but no statement finds anything that somebody else put into a schema of the search path. */
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
  const { rows } = await on.executeQuery(CompiledQuery.raw(text, [...values]));
  return { rows };
}
