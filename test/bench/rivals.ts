// The same 400 requests of 50 rows at a cap of 16, by this program and by what people use instead: from the start of the
// process to its end, each into a database of its own that has no usage yet.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { sql } from "kysely";
import { openPostgres } from "../../src/db/database.ts";
import { addDays, dayOf } from "../../src/usage/day.ts";
import { openConfigFolder } from "./config-folder.ts";
import { median, type NewDatabase, ratio } from "./figures.ts";
import { configOf, GROUPINGS, KEY } from "./pipeline.ts";
import { PROGRAM, run } from "./processes.ts";
import { startService } from "./service.ts";

const RIVALS = path.join(import.meta.dirname, "rivals");
const ROWS = 50;
const WORKLOAD = { projects: 100, days: 1, cap: 16 };
const ROUNDS = 3;

type Contestant = {
  readonly name: string;
  /** Ends when all is stored. */
  readonly exportAll: (service: string, databaseUrl: string) => Promise<void>;
  readonly storedRows: string;
  readonly rounds: number;
};

export async function measureRivals(newDatabase: NewDatabase): Promise<string[]> {
  await installRivals();
  return [...(await measureAt(0, newDatabase)), ...(await measureAt(20, newDatabase))];
}

async function measureAt(latencyMs: number, newDatabase: NewDatabase): Promise<string[]> {
  await using service = await startService({ rows: ROWS, latencyMs });
  const times = new Map<Contestant, Took[]>(CONTESTANTS.map((one) => [one, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [contestant, took] of times) {
      if (round >= contestant.rounds) continue;
      const databaseUrl = await newDatabase();
      if (contestant === OURS) await migrate(databaseUrl);
      const startedMs = performance.now();
      await contestant.exportAll(service.url, databaseUrl);
      const wholeMs = performance.now() - startedMs;
      const { count, firstMsAgo } = await service.asked();
      took.push({ wholeMs, workMs: firstMsAgo });
      await requireWhole(contestant, databaseUrl, count);
    }
  }
  const ours = mediansOf(times.get(OURS) ?? []);
  return [
    `${REQUESTS.length} requests × ${ROWS} rows at a cap of ${WORKLOAD.cap}, ${latencyMs} ms of latency; from the first request to the end of the process, and the whole process:`,
    ...[...times].map(([{ name }, took]) => {
      const { workMs, wholeMs } = mediansOf(took);
      const figures = [seconds(workMs), ratio(workMs, ours.workMs), seconds(wholeMs), ratio(wholeMs, ours.wholeMs)];
      return `  ${name.padEnd(36)} ${figures.join("  ")}`;
    }),
  ];
}

type Took = {
  /** From the first request that the service saw. */
  readonly workMs: number;
  readonly wholeMs: number;
};

function mediansOf(took: readonly Took[]): Took {
  return { workMs: median(took.map(({ workMs }) => workMs)), wholeMs: median(took.map(({ wholeMs }) => wholeMs)) };
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2).padStart(7)} s`;
}

const yesterday = addDays(dayOf(new Date()), -1);
const REQUESTS = Array.from({ length: WORKLOAD.projects }, (_, i) => `project-${i}`).flatMap((project) =>
  GROUPINGS.map((grouping) => ({ project, grouping, start: yesterday, end: yesterday })),
);

const OURS: Contestant = {
  name: "usage-export",
  exportAll: (service, databaseUrl) => runProgram(["export"], service, databaseUrl),
  storedRows: "usage_export.snapshot_row",
  rounds: ROUNDS,
};

const CONTESTANTS: readonly Contestant[] = [
  OURS,
  bySdk("SDK with TypeORM", "typeorm.ts"),
  bySdk("SDK with Drizzle", "drizzle.ts"),
  byShell("curl, jq, psql: upsert", "upsert"),
  byShell("curl, jq, psql: \\copy and a merge", "copy"),
];

function bySdk(name: string, file: string): Contestant {
  return {
    name,
    exportAll: (service, databaseUrl) =>
      run(process.execPath, [path.join(RIVALS, file)], {
        env: { ...rivalEnv(service, databaseUrl), REQUESTS: JSON.stringify(REQUESTS) },
      }),
    storedRows: "usage_row",
    rounds: ROUNDS,
  };
}

/** Once: each takes minutes. */
function byShell(name: string, mode: string): Contestant {
  return {
    name,
    exportAll: (service, databaseUrl) =>
      run("bash", [path.join(RIVALS, "shell.sh")], {
        env: { ...rivalEnv(service, databaseUrl), MODE: mode },
        input: REQUESTS.map(({ project, grouping, start, end }) => `${project} ${grouping} ${start} ${end}\n`).join(""),
      }),
    storedRows: "usage_row",
    rounds: 1,
  };
}

function rivalEnv(service: string, databaseUrl: string): Readonly<Record<string, string>> {
  return { SERVICE: service, DATABASE_URL: databaseUrl, CAP: String(WORKLOAD.cap) };
}

async function migrate(databaseUrl: string): Promise<void> {
  await runProgram(["migrate"], "http://127.0.0.1:1", databaseUrl);
}

async function runProgram(args: readonly string[], service: string, databaseUrl: string): Promise<void> {
  await using config = await openConfigFolder(configOf(service, WORKLOAD));
  await run(process.execPath, [PROGRAM, ...args], {
    cwd: config.folder,
    env: { DATABASE_URL: databaseUrl, LOG_LEVEL: "error", KEY },
  });
}

async function requireWhole({ name, storedRows }: Contestant, databaseUrl: string, asked: number): Promise<void> {
  const db = openPostgres(databaseUrl);
  try {
    const { rows } = await sql<{ rows: number; requests: string }>`
      select count(*)::integer as rows, sum(requests)::text as requests from ${sql.table(storedRows)}
    `.execute(db);
    const expected = { rows: REQUESTS.length * ROWS, requests: String(REQUESTS.length * ROWS * 373_381) };
    const seen = `${asked} requests, ${JSON.stringify(rows[0])}`;
    if (asked !== REQUESTS.length || JSON.stringify(rows[0]) !== JSON.stringify(expected)) {
      throw new Error(`${name}: expected ${REQUESTS.length} requests, ${JSON.stringify(expected)}; got ${seen}`);
    }
  } finally {
    await db.destroy();
  }
}

/** By their own lock file, so that the program's own packages stay few. */
async function installRivals(): Promise<void> {
  for (const tool of ["curl", "jq", "psql"]) {
    await promisify(execFile)("which", [tool]).catch(() => {
      throw new Error(`${tool} is needed: apt-get install curl jq postgresql-client`);
    });
  }
  if (existsSync(path.join(RIVALS, "node_modules"))) return;
  await promisify(execFile)("npm", ["ci", "--no-audit", "--no-fund"], { cwd: RIVALS });
}
