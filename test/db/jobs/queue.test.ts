// The queue as workers use it, each on connections of its own.

import { setTimeout } from "node:timers/promises";
import { sql } from "kysely";
import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import { type ClaimedJob, type NewJob, openQueue, type Queue } from "../../../src/db/jobs/queue.ts";
import { testDatabase } from "../../support/database.ts";

const { db, url } = await testDatabase();
const opened: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0)) await close();
  await sql`delete from usage_export_queue.job`.execute(db);
});

test("jobs can be claimed when the transaction that added them commits, and not before", async () => {
  const queue = await open();
  const refused = inTransaction(db, async (tx) => {
    await queue.add(tx, "usage_request", [work("a")]);
    throw new Error("rolled back");
  });
  await expect(refused).rejects.toThrow("rolled back");
  expect(await queue.claim("usage_request", 10)).toEqual([]);

  await add(queue, work("a"));
  expect(keysOf(await queue.claim("usage_request", 10))).toEqual(["a"]);
});

test("a job that waits or is handled is not added again, and can be once it is completed", async () => {
  const queue = await open();
  await add(queue, work("a"));
  expect(await add(queue, work("a"), work("b"))).toEqual(["b"]);
  const [taken] = await queue.claim("usage_request", 1);
  expect(await add(queue, work("a"), work("b"))).toEqual([]);
  if (taken) await complete(queue, taken);
  expect(await add(queue, work("a"))).toEqual(["a"]);
});

test("two workers never claim the same job, and the highest priority comes first", async () => {
  const [one, other] = await Promise.all([open(), open()]);
  await add(one, ...["a", "b", "c", "d", "e", "f"].map((key, priority) => work(key, priority)));
  const [first, second] = await Promise.all([one.claim("usage_request", 2), other.claim("usage_request", 2)]);
  expect(keysOf([...first, ...second]).sort()).toEqual(["c", "d", "e", "f"]);
  expect(keysOf(await one.claim("usage_request", 10)).sort()).toEqual(["a", "b"]);
});

test("the jobs of a worker without heartbeats go to another, and the first one can no longer complete them", async () => {
  const [silent, other] = await Promise.all([open(), open()]);
  await add(silent, work("a"));
  const [old] = await silent.claim("usage_request", 1);
  await sql`update usage_export_queue.job set heartbeat_on = now() - interval '16 seconds'`.execute(db);
  const taken: ClaimedJob[] = [];
  await expect.poll(async () => taken.push(...(await other.claim("usage_request", 1)))).toBe(1);
  expect(old && (await complete(silent, old))).toBe(false);
  expect(taken[0] && (await complete(other, taken[0]))).toBe(true);
});

test("a worker with heartbeats keeps its jobs", async () => {
  const queue = await open();
  await add(queue, work("a"));
  const taken = await queue.claim("usage_request", 1);
  await sql`update usage_export_queue.job set heartbeat_on = now() - interval '14 seconds'`.execute(db);
  await queue.heartbeat(taken);
  const { rows } = await sql<{ ago: number }>`
    select extract(epoch from now() - heartbeat_on)::float8 as ago from usage_export_queue.job
  `.execute(db);
  expect(rows[0]?.ago).toBeLessThan(14);
});

test("a heartbeat of claimed jobs never waits for a transaction that completes some of them, in any order", async () => {
  const queue = await open();
  await add(queue, ...Array.from({ length: 8 }, (_, n) => work(`${n}`)));
  const taken = await queue.claim("usage_request", 8);
  const [first, last] = [taken.at(0), taken.at(-1)];
  if (!first || !last) throw new Error("nothing to take");
  await sql`update usage_export_queue.job set heartbeat_on = now() - interval '14 seconds'`.execute(db);
  await inTransaction(db, async (tx) => {
    // Whichever of the two rows the server locks first, a heartbeat that waits would have locked the other one by now.
    for (const one of [first, last]) {
      expect(await queue.complete(tx, one)).toBe(true);
      const touched = queue.heartbeat(taken).then(() => "touched");
      expect(await Promise.race([touched, setTimeout(15_000, "waits")])).toBe("touched");
    }
  });
  const { rows } = await sql<{ active: number; alive: number }>`
    select count(*)::integer as active, count(*) filter (where heartbeat_on > now() - interval '10 seconds')::integer as alive
    from usage_export_queue.job where state = 'active'
  `.execute(db);
  expect(rows).toEqual([{ active: 6, alive: 6 }]);
});

test("a released job can be claimed by others at once", async () => {
  const [one, other] = await Promise.all([open(), open()]);
  await add(one, work("a"));
  const [taken] = await one.claim("usage_request", 1);
  if (taken) await one.release(taken);
  const [again] = await other.claim("usage_request", 1);
  expect(again?.data).toEqual({ key: "a" });
  // The worker that released it can no longer complete it.
  expect(taken && (await complete(one, taken))).toBe(false);
});

test("a failed job is tried again later, and becomes a dead letter with its reason after the last attempt", async () => {
  const queue = await open();
  await add(queue, work("a"));
  for (let tries = 1; tries <= 8; tries++) {
    const [taken] = await queue.claim("usage_request", 1);
    expect(taken?.retryCount).toBe(tries - 1);
    if (taken) await queue.fail(taken, { reason: `failure ${tries}`, code: "unavailable" });
    expect(await queue.claim("usage_request", 1)).toEqual([]);
    await sql`update usage_export_queue.job set start_after = now() where state = 'retry'`.execute(db);
  }
  const [dead] = await queue.claim("usage_request_dead", 1);
  expect(dead).toMatchObject({ data: { key: "a" }, lastError: "failure 8", lastCode: "unavailable" });
});

test("the first delays after a failure are short", async () => {
  const queue = await open();
  await add(queue, work("a"));
  const [taken] = await queue.claim("usage_request", 1);
  const nextTry = taken && (await queue.fail(taken, { reason: "failure", code: "unavailable" }));
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

function work(key: string, priority = 0): NewJob {
  return { key, priority, data: { key } };
}

async function add(queue: Queue, ...works: readonly NewJob[]): Promise<readonly string[]> {
  const added = await inTransaction(db, (tx) => queue.add(tx, "usage_request", works));
  return added.map(({ key }) => key);
}

async function complete(queue: Queue, taken: ClaimedJob): Promise<boolean> {
  return inTransaction(db, (tx) => queue.complete(tx, taken));
}

function keysOf(taken: readonly ClaimedJob[]): unknown[] {
  return taken.map(({ data }) => Object(data).key);
}
