// Rotations of many projects that are due at one moment, on two workers of which one is killed half-way: how long it takes until each
// project has a new key, and how many calls the service got in its busiest second.

import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { type Database, openPostgres } from "../../src/db/connection/database.ts";
import { migrateToLatest } from "../../src/db/connection/migrate.ts";
import { registerJobs } from "../../src/db/jobs/jobs.ts";
import { type Emulator, startEmulator } from "../../src/emulator/server.ts";
import { startScript } from "../support/program.ts";
import { openConfigFolder } from "./config-folder.ts";
import type { NewDatabase } from "./figures.ts";
import { builtProgram } from "./processes.ts";

const PROJECTS = Number(process.env.ROTATIONS ?? 300);
const LIMITS = { requestsPerSecond: 50, maxConcurrent: 8 };
const LONGEST_MS = 15 * 60_000;

export async function measureRotations(newDatabase: NewDatabase): Promise<string[]> {
  const url = await newDatabase();
  const program = await builtProgram();
  const ids = Array.from({ length: PROJECTS }, (_, i) => `customer-${i}`);
  const firstKeys = ids.map((projectId) => ({
    secret: randomBytes(20).toString("hex"),
    projectId,
    scopes: ["member"],
  }));
  await using emulator = await startEmulator({ consoleKeys: firstKeys });
  const dueAt = soon();
  const timing = { schedule: `${dueAt.getUTCMinutes()} ${dueAt.getUTCHours()} * * *` };
  await using folder = await openConfigFolder(configOf(emulator.url, ids, timing));
  await mkdir(path.join(folder.folder, "first"), { mode: 0o700 });
  for (const { projectId, secret } of firstKeys)
    await writeFile(path.join(folder.folder, "first", projectId), secret, { mode: 0o600 });
  await using db = openPostgres(url);
  await migrateToLatest(db);
  await markHandled(db, ids);
  const env = { DATABASE_URL: url, LOG_LEVEL: "info", USAGE_EXPORT_MASTER_KEY: randomBytes(32).toString("base64") };
  const options = { cwd: folder.folder, env, timeoutMs: LONGEST_MS };
  await using killed = startScript(program, ["start"], options);
  await using other = startScript(program, ["start"], options);
  await Promise.all([killed, other].map((worker) => worker.waitFor("worker started")));
  if (Date.now() > dueAt.getTime()) throw new Error("the workers started after the rotations were due");
  await until(async () => createdKeys(emulator).length >= PROJECTS / 2);
  killed.kill("SIGKILL");
  await until(async () => (await ledger(db)).active === PROJECTS);
  const seconds = (Date.now() - dueAt.getTime()) / 1_000;
  await until(async () => (await ledger(db)).pending === 0);
  return [
    `${PROJECTS} rotations due at one moment, two workers, of which one is killed when half of the keys are made; ${LIMITS.requestsPerSecond} calls a second allowed:`,
    `  each project has its new key ${seconds.toFixed(1)} s after that moment`,
    `  ${await accountOf(emulator, db)}`,
    `  busiest second: ${busiestSecond(emulator)} calls, of ${LIMITS.requestsPerSecond} and ${LIMITS.maxConcurrent} that may begin at once`,
  ];
}

/** The next full minute before which two workers can start. */
function soon(): Date {
  return new Date(Math.ceil((Date.now() + 25_000) / 60_000) * 60_000);
}

/** As if the scheduled times before now had been handled: rotations that never ran are due at once. */
async function markHandled(db: Database, ids: readonly string[]): Promise<void> {
  await registerJobs(
    db,
    ids.map((id) => ({ kind: "rotation", name: `fleet/${id}` })),
  );
  await sql`update usage_export.job set scheduled_through = now()`.execute(db);
}

function configOf(baseUrl: string, ids: readonly string[], timing: { readonly schedule: string }): object {
  return {
    service: { baseUrl, dialect: "interface", ...LIMITS },
    projects: ids.map((id) => ({ id, name: id, key: { rotation: "fleet", first: { file: `first/${id}` } } })),
    exports: [],
    rotations: [
      {
        ...{ name: "fleet", projects: ["customer-*"], ...timing },
        ...{ comment: "exporter", scopes: ["member"], deliver: [{ file: "out/{id}.key" }] },
      },
    ],
    monitor: { port: 0 },
  };
}

function createdKeys(emulator: Emulator) {
  return emulator.keys().filter(({ origin }) => origin === "created");
}

type Ledger = { readonly active: number; readonly pending: number; readonly ids: readonly string[] };

async function ledger(db: Database): Promise<Ledger> {
  const { rows } = await sql<Ledger>`
    select (count(distinct project_id) filter (where state = 'active'))::integer as active,
      (count(*) filter (where state = 'pending'))::integer as pending,
      coalesce(json_agg(api_key_id) filter (where api_key_id is not null), '[]') as ids
    from usage_export.api_key
  `.execute(db);
  return rows[0] ?? { active: 0, pending: 0, ids: [] };
}

/** Throws if a key works at the service that the ledger does not know, other than one whose answer was lost with the killed worker. */
async function accountOf(emulator: Emulator, db: Database): Promise<string> {
  const known = new Set((await ledger(db)).ids);
  const { rows } = await sql<{ orphans: number }>`
    select count(*)::integer as orphans from usage_export.api_key where state = 'orphan'
  `.execute(db);
  const orphans = rows[0]?.orphans ?? 0;
  const created = createdKeys(emulator);
  const unknown = created.filter(({ apiKeyId, state }) => state === "active" && !known.has(apiKeyId)).length;
  if (unknown > orphans)
    throw new Error(`${unknown} keys work that the ledger does not know; it has ${orphans} orphans`);
  const counts = [...Map.groupBy(created, ({ projectId }) => projectId).values()].map(({ length }) => length);
  const once = counts.filter((count) => count === 1).length;
  return `${created.length} keys made, one for each of ${once} projects; ${orphans} orphans in the ledger, no other key is unknown to it`;
}

function busiestSecond(emulator: Emulator): number {
  const times = emulator.requests.map(({ receivedAt }) => receivedAt.getTime()).sort((a, b) => a - b);
  let [busiest, from] = [0, 0];
  for (const [i, ms] of times.entries()) {
    while ((times[from] ?? ms) <= ms - 1_000) from++;
    busiest = Math.max(busiest, i - from + 1);
  }
  return busiest;
}

async function until(isOver: () => Promise<boolean>): Promise<void> {
  const startedMs = performance.now();
  while (!(await isOver())) {
    if (performance.now() - startedMs > LONGEST_MS) throw new Error("the rotations did not end");
    await sleep(250);
  }
}
