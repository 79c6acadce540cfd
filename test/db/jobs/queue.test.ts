// The queue as workers use it: each worker has its own connections.

import { sql } from "kysely";
import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import {
  type ClaimedJob,
  type NewJob,
  openQueue,
  type Queue,
  REQUEST_ATTEMPTS_MAX,
} from "../../../src/db/jobs/queue.ts";
import { testDatabase } from "../../support/database.ts";

const { db, url } = await testDatabase();
/** Other workers can claim a worker's jobs after 15 seconds without a heartbeat. */
const STALE_HEARTBEAT = "16 seconds";
const OLD_HEARTBEAT = "14 seconds";

const opened: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0)) await close();
  await sql`delete from usage_export_queue.job`.execute(db);
});

test("jobs can be claimed when the transaction that added them commits, and not before", async () => {
  const queue = await open();
  const refused = inTransaction(db, async (tx) => {
    await queue.add(tx, "usage_request", [newJob("a")]);
    throw new Error("rolled back");
  });
  await expect(refused).rejects.toThrow("rolled back");
  expect(await queue.claim("usage_request", 10)).toEqual([]);

  await add(queue, newJob("a"));
  expect(keysOf(await queue.claim("usage_request", 10))).toEqual(["a"]);
});

test("a job that waits or is claimed is not added a second time; after its completion it can be added again", async () => {
  const queue = await open();
  await add(queue, newJob("a"));
  expect(await add(queue, newJob("a"), newJob("b"))).toEqual(["b"]);
  const [claimed] = await queue.claim("usage_request", 1);
  expect(await add(queue, newJob("a"), newJob("b"))).toEqual([]);
  if (claimed) await complete(queue, claimed);
  expect(await add(queue, newJob("a"))).toEqual(["a"]);
});

test("two workers never claim the same job, and the highest priority comes first", async () => {
  const [one, other] = await Promise.all([open(), open()]);
  await add(one, ...["a", "b", "c", "d", "e", "f"].map((key, priority) => newJob(key, priority)));
  const [first, second] = await Promise.all([one.claim("usage_request", 2), other.claim("usage_request", 2)]);
  expect(keysOf([...first, ...second]).sort()).toEqual(["c", "d", "e", "f"]);
  expect(keysOf(await one.claim("usage_request", 10)).sort()).toEqual(["a", "b"]);
});

test("another worker claims the jobs of a worker without heartbeats, which then can't complete them any more", async () => {
  const [silent, other] = await Promise.all([open(), open()]);
  await add(silent, newJob("a"));
  const [old] = await silent.claim("usage_request", 1);
  await sql`update usage_export_queue.job set heartbeat_on = now() - ${STALE_HEARTBEAT}::interval`.execute(db);
  const claimed: ClaimedJob[] = [];
  await expect.poll(async () => claimed.push(...(await other.claim("usage_request", 1)))).toBe(1);
  expect(old && (await complete(silent, old))).toBe(false);
  expect(claimed[0] && (await complete(other, claimed[0]))).toBe(true);
});

test("a worker with heartbeats keeps its jobs", async () => {
  const queue = await open();
  await add(queue, newJob("a"));
  const claimed = await queue.claim("usage_request", 1);
  await sql`update usage_export_queue.job set heartbeat_on = now() - ${OLD_HEARTBEAT}::interval`.execute(db);
  await queue.heartbeat(claimed);
  const { rows } = await sql<{ ago: number }>`
    select extract(epoch from now() - heartbeat_on)::float8 as ago from usage_export_queue.job
  `.execute(db);
  expect(rows[0]?.ago).toBeLessThan(14);
});

test("a release is no attempt: however many there were, a job is tried again seconds after a failure, or after the death of its worker", async () => {
  const [queue, other] = await Promise.all([open(), open()]);
  await add(queue, newJob("a"));
  for (let i = 0; i < 2 * REQUEST_ATTEMPTS_MAX; i++) {
    const [claimed] = await queue.claim("usage_request", 1);
    if (claimed) await queue.release(claimed);
  }
  const [first] = await queue.claim("usage_request", 1);
  expect(first?.retryCount).toBe(0);
  const nextTry = first && (await queue.fail(first, { reason: "away", code: "unavailable", requests: 1 }));
  expect(nextTry).toBeInstanceOf(Date);
  expect(await secondsToNextTry()).toBeLessThanOrEqual(4);

  await sql`update usage_export_queue.job set start_after = now()`.execute(db);
  const [second] = await queue.claim("usage_request", 1);
  if (second) await queue.release(second);
  const [again] = await queue.claim("usage_request", 1);
  expect([second?.retryCount, again?.retryCount]).toEqual([1, 1]);
  await sql`update usage_export_queue.job set heartbeat_on = now() - ${STALE_HEARTBEAT}::interval`.execute(db);
  const stateOf = async () =>
    (await sql<{ state: string }>`select state::text from usage_export_queue.job`.execute(db)).rows[0]?.state;
  await expect.poll(stateOf).toBe("retry");
  expect(await secondsToNextTry()).toBeLessThanOrEqual(8);
  await sql`update usage_export_queue.job set start_after = now()`.execute(db);
  expect(await other.claim("usage_request", 1)).toMatchObject([{ retryCount: 2 }]);
});

test("a released job can be claimed by others at once", async () => {
  const [one, other] = await Promise.all([open(), open()]);
  await add(one, newJob("a"));
  const [claimed] = await one.claim("usage_request", 1);
  if (claimed) await one.release(claimed);
  const [again] = await other.claim("usage_request", 1);
  expect(again?.data).toEqual({ key: "a" });
  // The worker that released it can no longer complete it, nor fail, release or keep it.
  expect(claimed && (await complete(one, claimed))).toBe(false);
  expect(claimed && (await one.fail(claimed, { reason: "late", code: "unavailable" }))).toBeUndefined();
  if (claimed) await one.release(claimed);
  expect(again && (await complete(other, again))).toBe(true);
});

test("a failed job is tried again later, and becomes a dead letter with its reason after the last attempt", async () => {
  const queue = await open();
  await add(queue, newJob("a"));
  for (let tries = 1; tries <= 8; tries++) {
    const [claimed] = await queue.claim("usage_request", 1);
    expect(claimed?.retryCount).toBe(tries - 1);
    if (claimed) await queue.fail(claimed, { reason: `failure ${tries}`, code: "unavailable" });
    expect(await queue.claim("usage_request", 1)).toEqual([]);
    await sql`update usage_export_queue.job set start_after = now() where state = 'retry'`.execute(db);
  }
  const [dead] = await queue.claim("usage_request_dead", 1);
  expect(dead).toMatchObject({ data: { key: "a" }, lastError: "failure 8", lastCode: "unavailable" });
});

test("the first retry comes at most 4 seconds after the failure", async () => {
  const queue = await open();
  await add(queue, newJob("a"));
  const [claimed] = await queue.claim("usage_request", 1);
  const nextTry = claimed && (await queue.fail(claimed, { reason: "failure", code: "unavailable" }));
  const { rows } = await sql<{ delay: number; at: Date }>`
    select extract(epoch from start_after - now())::float8 as delay, start_after as at
    from usage_export_queue.job where state = 'retry'
  `.execute(db);
  expect(nextTry).toEqual(rows[0]?.at);
  expect(rows[0]?.delay).toBeGreaterThan(0);
  expect(rows[0]?.delay).toBeLessThanOrEqual(4);
});

test("a worker on a database without the queue's tables names the command that creates them", async () => {
  await sql`alter schema usage_export_queue rename to elsewhere`.execute(db);
  try {
    await expect(open()).rejects.toThrow("run: usage-export migrate");
  } finally {
    await sql`alter schema elsewhere rename to usage_export_queue`.execute(db);
  }
});

async function open(): Promise<Queue> {
  const connection = openPostgres(url);
  opened.unshift(() => connection.destroy());
  const queue = await openQueue(connection, pino({ level: "silent" }));
  opened.unshift(() => queue.stop());
  return queue;
}

function newJob(key: string, priority = 0): NewJob {
  return { key, priority, data: { key } };
}

async function add(queue: Queue, ...jobs: readonly NewJob[]): Promise<readonly string[]> {
  const added = await inTransaction(db, (tx) => queue.add(tx, "usage_request", jobs));
  return added.map(({ key }) => key);
}

async function secondsToNextTry(): Promise<number | undefined> {
  const { rows } = await sql<{ seconds: number }>`
    select extract(epoch from start_after - now())::float8 as seconds from usage_export_queue.job
  `.execute(db);
  return rows[0]?.seconds;
}

async function complete(queue: Queue, claimed: ClaimedJob): Promise<boolean> {
  return inTransaction(db, (tx) => queue.complete(tx, claimed));
}

function keysOf(claimed: readonly ClaimedJob[]): unknown[] {
  return claimed.map(({ data }) => Object(data).key);
}
