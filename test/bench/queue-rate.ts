// How many usage requests a second go through the queue with one, two and three workers, which share one cap. All calls are paused
// until each worker has claimed jobs, so that all of them start at the same time.

import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { storePause } from "../../src/db/calling-processes.ts";
import type { Database } from "../../src/db/connection/database.ts";
import { addDays, dayOf } from "../../src/usage/days.ts";
import { type Program, startProgram } from "../support/program.ts";
import { openConfigFolder } from "./config-folder.ts";
import { median, type NewDatabase, ratio } from "./figures.ts";
import { configOf, GROUPINGS, KEY } from "./pipeline.ts";
import { prepareDatabase } from "./prepared-database.ts";
import { PROGRAM, run } from "./processes.ts";
import { type Service, startService } from "./service.ts";
import { storeSlices } from "./stored-slices.ts";

const WORKLOAD = { projects: 150, days: 1, cap: 16 };
const REQUESTS = WORKLOAD.projects * GROUPINGS.length;
const ROWS = 50;
const LATENCIES_MS = [0, 100];
const WORKERS = [1, 2, 3];
const ROUNDS = 3;
/** Filling the queue takes the command a second, and an idle worker looks for jobs every second. */
const HOLD_MS = 4_500;
const LOOK_MS = 10;

export async function measureQueue(newDatabase: NewDatabase): Promise<string[]> {
  const lines = [
    `${REQUESTS} requests of ${ROWS} rows through the queue at a shared cap of ${WORKLOAD.cap}, each made once; rate and ratio to one worker:`,
  ];
  for (const latencyMs of LATENCIES_MS) {
    const seconds = await secondsBy(latencyMs, newDatabase);
    const alone = median(seconds.get(1) ?? []);
    for (const [workers, took] of seconds) {
      const rate = Math.round(REQUESTS / median(took));
      const what = `${workers} ${workers === 1 ? "worker" : "workers"}, ${latencyMs} ms of latency`;
      lines.push(`  ${what.padEnd(30)} ${String(rate).padStart(6)} requests/s ${ratio(alone, median(took))}`);
    }
  }
  return lines;
}

/** Seconds of each round, by the number of workers. */
async function secondsBy(latencyMs: number, newDatabase: NewDatabase): Promise<ReadonlyMap<number, readonly number[]>> {
  await using service = await startService({ rows: ROWS, latencyMs });
  const seconds = new Map(WORKERS.map((workers): [number, number[]] => [workers, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [workers, took] of seconds) took.push(await measureWorkers(workers, service, await newDatabase()));
  }
  return seconds;
}

/** Seconds from the first request to the end of the run. */
async function measureWorkers(count: number, service: Service, databaseUrl: string): Promise<number> {
  const config = { ...configOf(service.url, WORKLOAD), monitor: { port: 0 } };
  await using folder = await openConfigFolder(config);
  await using prepared = await prepareDatabase(databaseUrl, config);
  const { db } = prepared;
  // Nothing is due before the backfill.
  await storeSlices(db, { days: 0 });
  const options = { cwd: folder.folder, env: { DATABASE_URL: databaseUrl, LOG_LEVEL: "info", KEY } };
  await using workers = new AsyncDisposableStack();
  const started: Program[] = [];
  for (let i = 0; i < count; i++) started.push(workers.use(startProgram(["start"], options)));
  await Promise.all(started.map((worker) => worker.waitFor("worker started")));

  const yesterday = addDays(dayOf(new Date()), -1);
  await storePause(db, "", HOLD_MS);
  await run(process.execPath, [PROGRAM, "backfill", "--from", yesterday, "--to", yesterday, "--enqueue"], options);
  while (!(await isOver(db))) await sleep(LOOK_MS);
  const { count: asked, firstMsAgo } = await service.asked();
  await requireWhole(db, asked);
  return firstMsAgo / 1_000;
}

async function isOver(db: Database): Promise<boolean> {
  const { rows } = await sql`select from usage_export.run where finished_at is not null`.execute(db);
  return rows.length > 0;
}

async function requireWhole(db: Database, asked: number): Promise<void> {
  const { rows } = await sql<{ status: string; stored: number }>`
    select status, (select count(*)::integer from usage_export.snapshot_row) as stored from usage_export.run
  `.execute(db);
  const seen = JSON.stringify([asked, ...rows]);
  const expected = JSON.stringify([REQUESTS, { status: "ok", stored: REQUESTS * ROWS }]);
  if (seen !== expected) throw new Error(`expected ${expected}; got ${seen}`);
}
