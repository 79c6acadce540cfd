// The queue as several workers use it, each with its own connections, and its installation. pg-boss sends several statements in one text,
// on connections of the pool that the rest of the program also uses.

import { sql } from "kysely";
import type { JobInsert } from "pg-boss";
import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import { type ClaimedJob, installQueue, onPool, openQueue, type Queue } from "../../../src/db/jobs/queue.ts";
import { PASS } from "../../faults/fault-decision.ts";
import { startPostgresFront } from "../../faults/postgres-front.ts";
import { testDatabase } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { emptyDatabase } from "../connection/empty-database.ts";

const { db, url, read } = await testDatabase();

const opened: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0)) await close();
  await sql`delete from usage_export_queue.job`.execute(db);
});

test("committed jobs are handled in the order of their priority", async () => {
  const queue = await open();
  const refused = inTransaction(db, async (tx) => {
    await queue.add(tx, "export", [{ data: { key: "refused" } }]);
    throw new Error("rolled back");
  });
  await expect(refused).rejects.toThrow("rolled back");
  await add(queue, { data: { key: "low" } }, { data: { key: "high" }, priority: 1 });
  const handled: unknown[] = [];
  queue.work("export", { atOnce: 1, handle: async (job) => void handled.push(keyOf(job)) });
  await expect.poll(() => handled).toEqual(["high", "low"]);
});

test("jobs that do not end delay no jobs of another group", async () => {
  const queue = await open();
  const jobs = Array.from({ length: 200 }, (_, i) => ({ data: { key: i }, group: { id: i < 20 ? "stuck" : "quick" } }));
  await add(queue, ...jobs);
  const [stuck, quick]: [unknown[], unknown[]] = [[], []];
  const end = Promise.withResolvers<void>();
  queue.work("export", {
    ...{ atOnce: 6, atOnceOfGroup: 2 },
    async handle(job) {
      if (Number(keyOf(job)) >= 20) return void quick.push(job);
      stuck.push(job);
      await end.promise;
    },
  });
  await expect.poll(() => quick.length).toBe(180);
  expect(stuck).toHaveLength(2);
  end.resolve();
  await expect.poll(() => stuck.length).toBe(20);
});

test("jobs that begin or end at about the same time share a statement, even if another group is nearly at its limit", async () => {
  let statements = 0;
  const queue = await open(() => statements++);
  const end = Promise.withResolvers<void>();
  const jobs = Array.from({ length: 67 }, (_, key) => ({ data: { key }, group: { id: key < 7 ? "stuck" : "quick" } }));
  await add(queue, ...jobs);
  statements = 0;
  const handle = (job: ClaimedJob) => (Number(keyOf(job)) < 7 ? end.promise : Promise.resolve());
  queue.work("export", { atOnce: 20, atOnceOfGroup: 8, handle });
  await expect.poll(async () => (await states()).filter((state) => state === "completed")).toHaveLength(60);
  // Jobs are claimed and completed eight times each, and one claim finds none. The rest is left for the queue's own upkeep.
  expect(statements).toBeLessThan(30);
  end.resolve();
});

test("the jobs that a worker has claimed are free for others as soon as it stops", async () => {
  const queue = await open();
  await add(queue, { data: { key: "a" } });
  const lost = Promise.withResolvers<void>();
  const handle = ({ signal }: ClaimedJob) =>
    new Promise<void>(() => signal.addEventListener("abort", () => lost.resolve()));
  queue.work("export", { atOnce: 1, handle });
  await expect.poll(states).toEqual(["active"]);
  await queue.stop();
  expect(await states()).toEqual(["retry"]);
  await lost.promise;
});

test("a worker's handler is aborted if another worker has claimed its job", async () => {
  const [silent, other] = [await open(), await open()];
  await add(silent, { data: { key: "a" } });
  let lost = 0;
  silent.work("export", {
    atOnce: 1,
    handle: ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(void lost++))),
  });
  await expect.poll(states).toEqual(["active"]);
  // The queue does this to a job whose heartbeats stopped.
  await sql`update usage_export_queue.job set state = 'retry', start_after = now()`.execute(db);
  const attempts: number[] = [];
  other.work("export", { atOnce: 1, handle: async ({ retryCount }) => void attempts.push(retryCount) });
  await expect.poll(() => attempts).toEqual([1]);
  await expect.poll(() => lost).toBe(1);
});

test("a job fails for good with its seventh retry", async () => {
  const queue = await open();
  await add(queue, { data: { key: "a" } });
  const attempts: number[] = [];
  queue.work("export", {
    atOnce: 1,
    async handle({ retryCount, retryLimit }) {
      attempts.push(retryCount);
      expect(retryLimit).toBe(7);
      throw new Error(`failure ${retryCount}`);
    },
  });
  await expect.poll(states).toEqual(["retry"]);
  const [waits] = await read(sql<{ seconds: number }>`
    select extract(epoch from start_after - now())::float8 as seconds from usage_export_queue.job
  `);
  expect(waits?.seconds).toBeLessThanOrEqual(4);
  await sql`update usage_export_queue.job set start_after = now(), retry_count = 6`.execute(db);
  await expect.poll(states).toEqual(["failed"]);
  // On a busy machine the second attempt may come before the number of attempts is changed.
  expect([attempts[0], attempts.at(-1)]).toEqual([0, 7]);
});

test("a worker on a database without the queue's tables names the command that creates them", async () => {
  await sql`alter schema usage_export_queue rename to elsewhere`.execute(db);
  try {
    await expect(open()).rejects.toThrow("run: usage-export migrate");
  } finally {
    await sql`alter schema elsewhere rename to usage_export_queue`.execute(db);
  }
});

test("concurrent installations all succeed", async () => {
  await using empty = await databaseWithSchema();
  await using db = openPostgres(empty.url);
  await Promise.all([installQueue(db), installQueue(db), installQueue(db)]);
  expect((await sql`select name from usage_export_queue.queue`.execute(db)).rows).toHaveLength(2);
});

test("a connection that is lost in the queue's background work fails the installation", async () => {
  await using empty = await databaseWithSchema();
  let isCut = false;
  await using front = await startPostgresFront(empty.directUrl, {
    decideFault: ({ name, side }) => {
      if (isCut || side === "out" || !name.includes("bam_on")) return PASS;
      isCut = true;
      return { kind: "cut" };
    },
  });
  await using db = openPostgres(front.url);

  await expect(installQueue(db)).rejects.toThrow(/^Connection terminated|^Client has encountered a connection error/);

  expect(isCut).toBe(true);
  await installQueue(db);
});

test("nothing of a text from BEGIN to COMMIT is stored if a statement fails", async () => {
  await sql`create table public.note (text text)`.execute(db);
  const notes = async () => (await read(sql<{ text: string }>`select text from public.note`)).map(({ text }) => text);
  const queue = onPool(db);
  await queue.executeSql(`
    begin;
    set local lock_timeout = '7s';
    select pg_advisory_xact_lock(1);
    insert into public.note select 'limit of ' || current_setting('lock_timeout');
    commit;
  `);
  expect(await notes()).toEqual(["limit of 7s"]);
  const texts = Array.from({ length: 8 }, () =>
    queue.executeSql("begin; insert into public.note values ('half'); select 1 / 0; commit"),
  );
  for (const { status } of await Promise.allSettled(texts)) expect(status).toBe("rejected");
  const ones = await Promise.all(texts.map(() => read(sql`select 1 as one`)));
  expect(ones).toEqual(texts.map(() => [{ one: 1 }]));
  expect(await notes()).toEqual(["limit of 7s"]);
});

/** A database with the schema of the queue, as the migration leaves it. */
async function databaseWithSchema() {
  const empty = await emptyDatabase();
  await runStatement(empty.directUrl, "create schema usage_export_queue");
  return empty;
}

async function open(onStatement = () => {}): Promise<Queue> {
  const connection = openPostgres(url);
  opened.unshift(() => connection.destroy());
  const counted = connection.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      onStatement();
      return result;
    },
  });
  const queue = await openQueue(counted, pino({ level: "silent" }));
  opened.unshift(() => queue.stop());
  return queue;
}

async function add(queue: Queue, ...jobs: readonly JobInsert[]): Promise<void> {
  await inTransaction(db, (tx) => queue.add(tx, "export", jobs));
}

async function states(): Promise<readonly string[]> {
  const jobs = await read(sql<{ state: string }>`select state::text from usage_export_queue.job`);
  return jobs.map(({ state }) => state);
}

function keyOf({ data }: ClaimedJob): unknown {
  return Object(data).key;
}
