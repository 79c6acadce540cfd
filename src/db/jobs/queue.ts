// The queue through which workers share jobs: pg-boss, in a schema of its own. Only this file knows pg-boss.

import { randomUUID } from "node:crypto";
import { CompiledQuery, sql } from "kysely";
import type { Db, PgBoss } from "pg-boss";
import type { Logger } from "pino";
import { AppError, systemCode } from "../../errors.ts";
import type { Database } from "../connection/database.ts";
import { isConnectionError } from "../connection/errors.ts";
import { inTransaction, setUntilCommit, type Tx } from "../connection/transaction.ts";
import { QUEUE_NAMES, QUEUE_SCHEMA, type QueueName } from "./queue-names.ts";

/** One attempt at a queue job. As soon as the job is claimed again, an older attempt can no longer complete, fail or release it. */
export type ClaimedJob = {
  readonly queue: QueueName;
  /** Another one after each release. */
  readonly id: string;
  /** How many attempts failed before this one. */
  readonly retryCount: number;
  readonly data: unknown;
  /** For a dead letter: why its last attempt failed. */
  readonly lastError: string | undefined;
  /** The code of that failure, if it had one. */
  readonly lastCode: string | undefined;
};

/** `requests` is how many requests of a chunk are left. */
type JobFailure = { readonly reason: string; readonly code: string; readonly requests?: number };

export type NewJob = {
  /** While a job waits or is handled, no other job of the queue can have its key. */
  readonly key: string;
  readonly data: object;
  /** Jobs with the highest priority are claimed first. */
  readonly priority: number;
};

export type Queue = {
  /** Adds jobs when the transaction commits, except those whose key is in the queue already. Returns the added ones. */
  readonly add: <Job extends NewJob>(tx: Tx, queue: QueueName, jobs: readonly Job[]) => Promise<readonly Job[]>;
  /** Claims at most `count` jobs: they belong to this process until it finishes or releases them, or its heartbeats stop. */
  readonly claim: (queue: QueueName, count: number) => Promise<readonly ClaimedJob[]>;
  /** Says that this process is alive and handles these jobs. */
  readonly heartbeat: (jobs: readonly ClaimedJob[]) => Promise<void>;
  /**
   * Completes the job when the transaction commits. False if another process has claimed the job since: then the caller must not
   * count the outcome.
   */
  readonly complete: (tx: Tx, job: ClaimedJob) => Promise<boolean>;
  /** Schedules a retry, by any consumer, and returns its time. After the last attempt the job becomes a dead letter. */
  readonly fail: (job: ClaimedJob, failure: JobFailure) => Promise<Date | undefined>;
  /** For a dead letter: records how many requests are given up with it. The first number counts. */
  readonly countGivenUp: (deadLetter: ClaimedJob, requests: number) => Promise<void>;
  /** Returns the job to the queue, where it can be claimed after `delaySeconds` (0). This does not count as an attempt. */
  readonly release: (job: ClaimedJob, delaySeconds?: number) => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** After this time without a heartbeat a process counts as dead, and other processes claim its jobs. */
const HEARTBEAT_SECONDS = 15;
/**
 * How often the queue looks for jobs of dead processes. Including HEARTBEAT_SECONDS and the first retry delay, such a job is claimed
 * again within 25 s.
 */
const SUPERVISE_SECONDS = 5;

/** How long the queue keeps finished jobs. Their results are in our tables. */
const KEEP_SECONDS = 7 * 24 * 60 * 60;

const QUEUE_DEFAULTS = {
  heartbeatSeconds: HEARTBEAT_SECONDS,
  deleteAfterSeconds: KEEP_SECONDS,
  expireInSeconds: 24 * 60 * 60 - 1,
};

/** How often a usage request is tried, including the first attempt. */
export const REQUEST_ATTEMPTS_MAX = 8;

const QUEUES = [
  // Handling a dead letter needs only the database, so it succeeds once the database can be reached.
  { ...QUEUE_DEFAULTS, name: "usage_request_dead", retryLimit: 1000, retryDelay: 2 },
  // Retries after 2, 4, 8 … 128 seconds: no slice fails in an outage of the service of up to four minutes.
  {
    ...QUEUE_DEFAULTS,
    name: "usage_request",
    policy: "exclusive",
    retryLimit: REQUEST_ATTEMPTS_MAX - 1,
    retryDelay: 2,
    retryBackoff: true,
    deadLetter: "usage_request_dead",
  },
  { ...QUEUE_DEFAULTS, name: "rotation", policy: "exclusive", retryLimit: 7, retryDelay: 2, retryBackoff: true },
] as const;

const UNIQUE_VIOLATION = "23505";

/** Creates or updates the queue's tables. Several processes may do so at once. */
export async function installQueue(db: Database): Promise<void> {
  try {
    await install(db);
  } catch (error) {
    // If another process creates the schema at the same time, this one may not see it yet and violates a unique index of the catalogue.
    // pg-boss handles other conflicts itself.
    if (systemCode(error) !== UNIQUE_VIOLATION) throw error;
    await install(db);
  }
}

async function install(db: Database): Promise<void> {
  const boss = await openBoss(db, { migrate: true, createSchema: true, supervise: false, db: onCatalogPath(db) });
  // pg-boss reports failures of its background work as events. Without a listener they would end the process.
  let trouble: Error | undefined;
  boss.on("error", (error) => {
    trouble ??= error;
  });
  await boss.start();
  try {
    await createQueues(boss);
  } finally {
    await boss.stop({ close: false, graceful: false });
  }
  if (trouble) throw trouble;
}

async function createQueues(boss: PgBoss): Promise<void> {
  for (const { name, deadLetter, policy, ...changeable } of QUEUES.map((one) => ({
    deadLetter: undefined,
    policy: undefined,
    ...one,
  }))) {
    const options = { ...changeable, ...(deadLetter && { deadLetter }) };
    await boss.createQueue(name, { ...options, ...(policy && { policy }) });
    await boss.updateQueue(name, options);
  }
}

/** Throws if `installQueue` has not run for this version. */
export async function openQueue(db: Database, log: Logger): Promise<Queue> {
  const boss = await openBoss(db, { migrate: false, createSchema: false, supervise: true });
  boss.on("error", (error) => {
    // The consumers report an outage of the database, so it is no warning here.
    const level = isConnectionError(Object.assign(new Error(error.message), error)) ? "debug" : "warn";
    log[level]({ reason: error.message }, "queue error");
  });
  boss.on("warning", ({ message }) => log.warn({ reason: message }, "queue warning"));
  try {
    await boss.start();
  } catch (error) {
    if (!(error instanceof Error) || !/^pg-boss (is not installed|database requires migrations)$/.test(error.message))
      throw error;
    throw new AppError("database", "the tables of the queue are not those of this version; run: usage-export migrate");
  }
  return queueOn(boss, db);
}

function queueOn(boss: PgBoss, db: Database): Queue {
  return {
    async add(tx, queue, newJobs) {
      const jobs = newJobs.map(({ key, data, priority }) => ({ id: randomUUID(), singletonKey: key, data, priority }));
      const added = new Set(
        jobs.length > 0 ? await boss.insert(queue, jobs, { db: onTransaction(tx), returnId: true }) : [],
      );
      return newJobs.filter((_, index) => added.has(jobs[index]?.id ?? ""));
    },
    async claim(queue, count) {
      const jobs = await boss.fetch(queue, { batchSize: count, includeMetadata: true });
      return jobs.map(({ id, retryCount, data, sourceOutput }) => ({
        queue,
        id,
        retryCount,
        data,
        lastError: reasonIn(sourceOutput),
        lastCode: sourceOutput !== null && "code" in sourceOutput ? String(sourceOutput.code) : undefined,
      }));
    },
    async heartbeat(claimed) {
      for (const [queue, jobs] of Map.groupBy(claimed, (job) => job.queue))
        await boss.touch(queue, jobs.map(attemptOf));
    },
    async complete(tx, job) {
      return wasClaimed(await boss.complete(job.queue, attemptOf(job), null, { db: onTransaction(tx) }));
    },
    async fail(job, failure) {
      await boss.fail(job.queue, attemptOf(job), failure);
      const { rows } = await sql<{ at: Date }>`
        select start_after as at from ${sql.id(QUEUE_SCHEMA, "job")}
        where name = ${job.queue} and id = ${job.id} and state::text = 'retry'
      `.execute(db);
      return rows[0]?.at;
    },
    async countGivenUp({ queue, id }, requests) {
      await sql`
        update ${sql.id(QUEUE_SCHEMA, "job")} failed
        set output = jsonb_build_object('requests', ${requests}::integer) || coalesce(failed.output, '{}')
        from ${sql.id(QUEUE_SCHEMA, "job")} dead
        where dead.name = ${queue} and dead.id = ${id} and failed.name = dead.source_name and failed.id = dead.source_id
      `.execute(db);
    },
    async release(job, delaySeconds = 0) {
      await inTransaction(db, async (tx) => {
        const cancelled = await boss.cancel(job.queue, attemptOf(job), { db: onTransaction(tx) });
        if (!wasClaimed(cancelled)) return;
        await boss.resume(job.queue, job.id, { db: onTransaction(tx) });
        // Without the time of its start, pg-boss does not count the next claim as a retry, so the delay after a failure does not grow with
        // each release. As the count is then that of this claim again, another id tells the two apart.
        await sql`
          update ${sql.id(QUEUE_SCHEMA, "job")} set id = gen_random_uuid(), started_on = null, heartbeat_on = null,
            start_after = greatest(start_after, now() + make_interval(secs => ${delaySeconds}))
          where name = ${job.queue} and id = ${job.id}
        `.execute(tx);
      });
    },
    stop: () => boss.stop({ close: false, graceful: false }),
  };
}

function attemptOf({ id, retryCount }: ClaimedJob): { readonly id: string; readonly retryCount: number } {
  return { id, retryCount };
}

/** The reason that was passed to `fail`. If the heartbeats of a job stopped, the queue itself wrote the output, without a reason. */
function reasonIn(output: object | null): string | undefined {
  if (output === null) return undefined;
  if ("reason" in output) return String(output.reason);
  return "the process that read it ended";
}

/** pg-boss returns the number of changed jobs, but its types do not declare it. */
function wasClaimed(answer: object): boolean {
  return "affected" in answer && Number(answer.affected) === 1;
}

type BossOptions = {
  readonly migrate: boolean;
  readonly createSchema: boolean;
  readonly supervise: boolean;
  readonly db?: Db;
};

async function openBoss(db: Database, duties: BossOptions): Promise<PgBoss> {
  const { PgBoss } = await import("pg-boss");
  return new PgBoss({
    db: onPool(db),
    ...duties,
    schema: QUEUE_SCHEMA,
    // The worker plans the runs itself, by schedules and by coverage.
    schedule: false,
    superviseIntervalSeconds: SUPERVISE_SECONDS,
    monitorIntervalSeconds: SUPERVISE_SECONDS,
    // Only the owner of an index can rebuild it, and a few hundred new rows a night do not bloat an index.
    reindex: false,
    monitorVacuum: false,
  });
}

/**
 * Lets pg-boss use our pool, so that a process has only one. pg-boss sends some transactions as one text, from BEGIN to COMMIT. If a
 * statement of such a text fails, the connection must be rolled back before it returns to the pool.
 */
export function onPool(db: Database): Db {
  return {
    executeSql: (text, values) =>
      db.connection().execute(async (connection) => {
        try {
          return await executeRaw(connection, text, values);
        } catch (error) {
          await connection.executeQuery(CompiledQuery.raw("rollback")).catch(() => {});
          throw error;
        }
      }),
  };
}

/** As onPool, but no statement finds anything that somebody else put into a schema of the search path. */
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

function onTransaction(tx: Tx): Db {
  return { executeSql: (text, values) => executeRaw(tx, text, values) };
}

async function executeRaw(on: Database, text: string, values: readonly unknown[] = []): Promise<{ rows: unknown[] }> {
  const { rows } = await on.executeQuery(CompiledQuery.raw(text, [...values]));
  return { rows };
}

export type QueueDepth = {
  readonly queue: string;
  readonly state: "waiting" | "retrying" | "active" | "dead";
  readonly jobs: number;
};

/**
 * Counts requests, not chunks of them. "dead" counts those whose last attempt failed in the last 24 hours. Older ones do not matter:
 * coverage says whether their days are complete.
 */
export async function queueDepths(db: Database): Promise<readonly QueueDepth[]> {
  const { rows } = await sql<QueueDepth>`
    select q.queue, s.label as state,
      coalesce(sum(coalesce(r.requests, (j.output->>'requests')::integer, 1)) filter (where j.id is not null), 0)::integer as jobs
    from unnest(${[...QUEUE_NAMES]}::text[]) as q (queue)
    cross join (values ('created', 'waiting'), ('retry', 'retrying'), ('active', 'active'), ('failed', 'dead')) as s (state, label)
    left join ${sql.id(QUEUE_SCHEMA, "job")} j
      on j.name = q.queue and j.state::text = s.state
      and (s.state <> 'failed' or j.completed_on > now() - interval '24 hours')
    left join (
      select chunk_id, count(*)::integer as requests from usage_export.queued_request group by chunk_id
    ) r on r.chunk_id = (j.data->>'chunkId')::uuid
    group by q.queue, s.label
  `.execute(db);
  return rows;
}
