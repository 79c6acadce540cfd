// The queue through which workers share their work: pg-boss, in a schema of its own beside our tables. The only file that knows
// pg-boss.

import { randomUUID } from "node:crypto";
import { CompiledQuery, sql } from "kysely";
import type { Db, PgBoss } from "pg-boss";
import type { Logger } from "pino";
import { AppError } from "../../errors.ts";
import type { Database } from "../connection/database.ts";
import { isConnectionError } from "../connection/errors.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";
import { QUEUE_SCHEMA } from "../schema.ts";

/** What waits in each queue, as JSON. */
export type QueueName = "usage_request" | "usage_request_dead" | "rotation";

/** One try at a piece of work: whoever has an older one can't settle it any more. */
export type ClaimedJob = {
  readonly queue: QueueName;
  readonly id: string;
  readonly retryCount: number;
  readonly data: unknown;
  /** Of a dead letter, what went wrong at its last try. */
  readonly lastError: string | undefined;
  /** The code of the last failure, if there was one. */
  readonly lastCode: string | undefined;
};

type JobFailure = { readonly reason: string; readonly code: string };

export type NewJob = {
  /** What no two pieces of work are about at the same time. */
  readonly key: string;
  readonly data: object;
  /** The highest goes first. */
  readonly priority: number;
};

export type Queue = {
  /** Becomes work when the transaction commits. What waits or is worked at under the same key is left alone; returns what was added. */
  readonly add: <Piece extends NewJob>(tx: Tx, queue: QueueName, works: readonly Piece[]) => Promise<readonly Piece[]>;
  /** At most so many pieces of work, which are this process's until it settles them or stops saying that it lives. */
  readonly claim: (queue: QueueName, count: number) => Promise<readonly ClaimedJob[]>;
  /** Says that this process lives and works at them. */
  readonly heartbeat: (taken: readonly ClaimedJob[]) => Promise<void>;
  /** Done, with the transaction. False where it was somebody else's by then: whatever is counted must not be counted. */
  readonly complete: (tx: Tx, taken: ClaimedJob) => Promise<boolean>;
  /** Schedules a retry, by any consumer, and returns its time. After the last attempt the job becomes a dead letter. */
  readonly fail: (taken: ClaimedJob, failure: JobFailure) => Promise<Date | undefined>;
  /** Put back as it was, for others to take at once. */
  readonly release: (taken: ClaimedJob) => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** A process that says nothing for so long is taken for dead, and its work goes to others. */
const HEARTBEAT_SECONDS = 15;
/** How often the queue looks for the work of the dead. With it and the first delay, work moves on after at most 25 s. */
const SUPERVISE_SECONDS = 5;

/** The queue's own tables hold settled work for so long: what it was about is in ours. */
const KEEP_SECONDS = 7 * 24 * 60 * 60;

const QUEUE_DEFAULTS = {
  heartbeatSeconds: HEARTBEAT_SECONDS,
  deleteAfterSeconds: KEEP_SECONDS,
  expireInSeconds: 24 * 60 * 60 - 1,
};

/** How often a usage request is tried, including the first attempt. */
export const REQUEST_ATTEMPTS_MAX = 8;

const QUEUES = [
  // What a dead letter needs is only that somebody counts it, which can't go wrong for long.
  { ...QUEUE_DEFAULTS, name: "usage_request_dead", retryLimit: 1000, retryDelay: 2 },
  // 2, 4, 8 … 128 seconds: a service that is away for four minutes costs no slice. One key at a time: no day is asked for twice at once.
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

/** Makes or updates the queue's tables. Safe from several processes at once. */
export async function installQueue(db: Database): Promise<void> {
  try {
    await install(db);
  } catch (error) {
    // A process that comes while another one is done may not see yet that the schema is there, and is refused by an index of
    // the catalogue. pg-boss takes other refusals of this kind for what they are.
    if (!(error instanceof Error && "code" in error && error.code === UNIQUE_VIOLATION)) throw error;
    await install(db);
  }
}

async function install(db: Database): Promise<void> {
  const boss = await openBoss(db, { migrate: true, createSchema: true, supervise: false });
  // What it does beside what it is asked for fails in an event, which would end the process where nobody listens.
  let trouble: Error | undefined;
  boss.on("error", (error) => {
    trouble ??= error;
  });
  await boss.start();
  try {
    for (const { name, ...options } of QUEUES) {
      await boss.createQueue(name, options);
      const { policy: _fixed, ...changeable } = { policy: undefined, ...options };
      await boss.updateQueue(name, changeable);
    }
  } finally {
    await boss.stop({ close: false, graceful: false });
  }
  if (trouble) throw trouble;
}

/** Throws where `installQueue` has not run for this version. */
export async function openQueue(db: Database, log: Logger): Promise<Queue> {
  const boss = await openBoss(db, { migrate: false, createSchema: false, supervise: true });
  boss.on("error", (error) => {
    // Whoever asks the queue for work reports an outage.
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
  return {
    async add(tx, queue, works) {
      const jobs = works.map(({ key, data, priority }) => ({ id: randomUUID(), singletonKey: key, data, priority }));
      const added = new Set(
        jobs.length > 0 ? await boss.insert(queue, jobs, { db: onTransaction(tx), returnId: true }) : [],
      );
      return works.filter((_, index) => added.has(jobs[index]?.id ?? ""));
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
    async heartbeat(taken) {
      for (const [queue, attempts] of Map.groupBy(taken, (one) => one.queue)) {
        await inTransaction(db, async (tx) => {
          const free = await lockUnlocked(tx, attempts);
          const touched = attempts.filter(({ id }) => free.has(id)).map(attemptOf);
          if (touched.length > 0) await boss.touch(queue, touched, { db: onTransaction(tx) });
        });
      }
    },
    async complete(tx, taken) {
      return wasClaimed(await boss.complete(taken.queue, attemptOf(taken), null, { db: onTransaction(tx) }));
    },
    async fail(taken, failure) {
      await boss.fail(taken.queue, attemptOf(taken), failure);
      const { rows } = await sql<{ at: Date }>`
        select start_after as at from ${sql.id(QUEUE_SCHEMA, "job")}
        where name = ${taken.queue} and id = ${taken.id} and state::text = 'retry'
      `.execute(db);
      return rows[0]?.at;
    },
    async release(taken) {
      await inTransaction(db, async (tx) => {
        const cancelled = await boss.cancel(taken.queue, attemptOf(taken), { db: onTransaction(tx) });
        if (wasClaimed(cancelled)) await boss.resume(taken.queue, taken.id, { db: onTransaction(tx) });
      });
    },
    stop: () => boss.stop({ close: false, graceful: false }),
  };
}

/**
 * Locks only rows that nobody else has locked, so that a heartbeat never waits. A transaction that completes jobs locks them in
 * the order of its answers; a heartbeat that held one job while waiting for another could deadlock with it. A job that is being
 * completed needs no heartbeat.
 */
async function lockUnlocked(tx: Tx, taken: readonly ClaimedJob[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ id: string }>`
    select id from ${sql.id(QUEUE_SCHEMA, "job")}
    where name = any(${[...new Set(taken.map(({ queue }) => queue))]}::pg_catalog.text[])
      and id = any(${taken.map(({ id }) => id)}::pg_catalog.uuid[])
    order by id for update skip locked
  `.execute(tx);
  return new Set(rows.map(({ id }) => id));
}

function attemptOf({ id, retryCount }: ClaimedJob): { readonly id: string; readonly retryCount: number } {
  return { id, retryCount };
}

/** What `fail` was given; or what the queue itself says where a process ended. */
function reasonIn(output: object | null): string | undefined {
  if (output === null) return undefined;
  if ("reason" in output) return String(output.reason);
  return "the process that read it ended";
}

/** How many pieces of work were settled stands in the answer, and not in its type. */
function wasClaimed(answer: object): boolean {
  return "affected" in answer && Number(answer.affected) === 1;
}

type BossOptions = { readonly migrate: boolean; readonly createSchema: boolean; readonly supervise: boolean };

async function openBoss(db: Database, duties: BossOptions): Promise<PgBoss> {
  const { PgBoss } = await import("pg-boss");
  return new PgBoss({
    ...duties,
    db: onPool(db),
    schema: QUEUE_SCHEMA,
    // Schedules are ours: they know coverage.
    schedule: false,
    superviseIntervalSeconds: SUPERVISE_SECONDS,
    monitorIntervalSeconds: SUPERVISE_SECONDS,
    // Rebuilding an index needs its owner, and a few hundred rows a night bloat none.
    reindex: false,
    monitorVacuum: false,
  });
}

// Lets pg-boss speak through our own pool, so that a process has one, and through a transaction of ours.

/**
 * pg-boss sends some work as several statements from BEGIN to COMMIT in one text. Where one of them fails the connection
 * is left inside an aborted transaction, and would go back to the pool like that.
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

/** What is done by it is done with the transaction or not at all. */
function onTransaction(tx: Tx): Db {
  return { executeSql: (text, values) => executeRaw(tx, text, values) };
}

async function executeRaw(on: Database, text: string, values: readonly unknown[] = []): Promise<{ rows: unknown[] }> {
  const { rows } = await on.executeQuery(CompiledQuery.raw(text, [...values]));
  return { rows };
}

// Reads what waits in the queue, what is worked at, and what was given up.

export type QueueDepth = {
  readonly queue: string;
  readonly state: "waiting" | "retrying" | "active" | "dead";
  readonly jobs: number;
};

/** "dead" is what was given up in the last day: it is kept for longer, and what matters of it later is whether its days are complete. */
export async function queueDepths(db: Database): Promise<readonly QueueDepth[]> {
  const { rows } = await sql<QueueDepth>`
    select q.name as queue, s.label as state, count(j.id)::integer as jobs
    from ${sql.id(QUEUE_SCHEMA, "queue")} q
    cross join (values ('created', 'waiting'), ('retry', 'retrying'), ('active', 'active'), ('failed', 'dead')) as s (state, label)
    left join ${sql.id(QUEUE_SCHEMA, "job")} j
      on j.name = q.name and j.state::text = s.state
      and (s.state <> 'failed' or j.completed_on > now() - interval '24 hours')
    where q.name not like '\\_\\_pgboss\\_\\_%'
    group by q.name, s.label
  `.execute(db);
  return rows;
}
