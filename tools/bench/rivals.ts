// The same requests of 50 rows at a cap of 16, by this program and by the tools that people use instead, from the start of the process
// to its end. Each stores into a database of its own that has no usage yet.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { sql } from "kysely";
import { openPostgres } from "../../src/db/connection/database.ts";
import { addDays, dayOf } from "../../src/usage/days.ts";
import { openConfigFolder } from "./config-folder.ts";
import { median, type NewDatabase, ratio } from "./figures.ts";
import { configOf, GROUPINGS, KEY } from "./pipeline.ts";
import { builtProgram, run } from "./processes.ts";
import { startService } from "./service.ts";

const RIVALS = path.join(import.meta.dirname, "rivals");
const ROWS = 50;
const CAP = 16;
const ROUNDS = 3;

/** What each contestant has to do. */
type Task = { readonly projects: number; readonly latencyMs: number };
/** The last task is ten times as large, so that a process has time to warm up. The shell would take minutes for it. */
const TASKS: readonly Task[] = [
  { projects: 100, latencyMs: 0 },
  { projects: 100, latencyMs: 20 },
  { projects: 1_000, latencyMs: 0 },
];
const SHELL_PROJECTS_MAX = 100;

type Contestant = {
  readonly name: string;
  /** Resolves when all is stored. */
  readonly exportAll: (task: Task, service: string, databaseUrl: string) => Promise<void>;
  readonly storedRows: string;
  readonly roundsOf: (task: Task) => number;
};

export async function measureRivals(newDatabase: NewDatabase): Promise<string[]> {
  await installRivals();
  await builtProgram();
  const lines: string[] = [];
  for (const task of TASKS) lines.push(...(await measureTask(task, newDatabase)));
  return lines;
}

async function measureTask(task: Task, newDatabase: NewDatabase): Promise<string[]> {
  const { latencyMs } = task;
  await using service = await startService({ rows: ROWS, latencyMs });
  const contestants = CONTESTANTS.filter(({ roundsOf }) => roundsOf(task) > 0);
  const times = new Map<Contestant, Took[]>(contestants.map((one) => [one, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [contestant, took] of times) {
      if (round >= contestant.roundsOf(task)) continue;
      const databaseUrl = await newDatabase();
      if (contestant === OURS) await runProgram(["migrate"], task, "http://127.0.0.1:1", databaseUrl);
      const startedMs = performance.now();
      await contestant.exportAll(task, service.url, databaseUrl);
      const wholeMs = performance.now() - startedMs;
      const asked = await service.asked();
      took.push({ wholeMs, workMs: asked.firstMsAgo });
      await requireWhole(contestant, task, databaseUrl, asked);
    }
  }
  const ours = mediansOf(times.get(OURS) ?? []);
  return [
    `${requestsOf(task).length} requests × ${ROWS} rows at a cap of ${CAP}, ${latencyMs} ms of latency; from the first request to the end of the process, and the whole process:`,
    ...[...times].map(([{ name }, took]) => {
      const { workMs, wholeMs } = mediansOf(took);
      const figures = [seconds(workMs), ratio(workMs, ours.workMs), seconds(wholeMs), ratio(wholeMs, ours.wholeMs)];
      return `  ${name.padEnd(36)} ${figures.join("  ")}`;
    }),
  ];
}

type Took = {
  /** Milliseconds from the first request that the service received. */
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

function requestsOf({ projects }: Task) {
  return Array.from({ length: projects }, (_, i) => `project-${i}`).flatMap((project) =>
    GROUPINGS.map((grouping) => ({ project, grouping, start: yesterday, end: yesterday })),
  );
}

const OURS: Contestant = {
  name: "usage-export",
  exportAll: (task, service, databaseUrl) => runProgram(["export"], task, service, databaseUrl),
  storedRows: "usage_export.slice_row",
  roundsOf: () => ROUNDS,
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
    exportAll: (task, service, databaseUrl) =>
      run(process.execPath, [path.join(RIVALS, file)], {
        env: rivalEnv(service, databaseUrl),
        input: JSON.stringify(requestsOf(task)),
      }),
    storedRows: "usage_row",
    roundsOf: () => ROUNDS,
  };
}

/** Measured in one round only, because it takes long. */
function byShell(name: string, mode: string): Contestant {
  return {
    name,
    exportAll: (task, service, databaseUrl) =>
      run("bash", [path.join(RIVALS, "shell.sh")], {
        env: { ...rivalEnv(service, databaseUrl), MODE: mode },
        input: requestsOf(task)
          .map(({ project, grouping, start, end }) => `${project} ${grouping} ${start} ${end}\n`)
          .join(""),
      }),
    storedRows: "usage_row",
    roundsOf: ({ projects }) => (projects > SHELL_PROJECTS_MAX ? 0 : 1),
  };
}

function rivalEnv(service: string, databaseUrl: string): Readonly<Record<string, string>> {
  return { SERVICE: service, DATABASE_URL: databaseUrl, CAP: String(CAP) };
}

async function runProgram(
  args: readonly string[],
  { projects }: Task,
  service: string,
  databaseUrl: string,
): Promise<void> {
  await using config = await openConfigFolder(configOf(service, { projects, days: 1, cap: CAP }));
  await run(process.execPath, [await builtProgram(), ...args], {
    cwd: config.folder,
    env: { DATABASE_URL: databaseUrl, LOG_LEVEL: "error", KEY },
  });
}

async function requireWhole(
  { name, storedRows }: Contestant,
  task: Task,
  databaseUrl: string,
  asked: { readonly count: number; readonly requests: number },
): Promise<void> {
  const requests = requestsOf(task).length;
  const db = openPostgres(databaseUrl);
  try {
    const { rows } = await sql<{ rows: number; requests: string }>`
      select count(*)::integer as rows, sum(requests)::text as requests from ${sql.table(storedRows)}
    `.execute(db);
    const expected = { rows: requests * ROWS, requests: String(asked.requests) };
    const seen = `${asked.count} requests, ${JSON.stringify(rows[0])}`;
    if (asked.count !== requests || JSON.stringify(rows[0]) !== JSON.stringify(expected)) {
      throw new Error(`${name}: expected ${requests} requests, ${JSON.stringify(expected)}; got ${seen}`);
    }
  } finally {
    await db.destroy();
  }
}

/** The rivals have a package of their own, so that the program does not need theirs. */
async function installRivals(): Promise<void> {
  for (const tool of ["curl", "jq", "psql"]) {
    await promisify(execFile)("which", [tool]).catch(() => {
      throw new Error(`${tool} is needed: apt-get install curl jq postgresql-client`);
    });
  }
  if (existsSync(path.join(RIVALS, "node_modules"))) return;
  await promisify(execFile)("npm", ["install", "--no-package-lock", "--no-audit", "--no-fund"], { cwd: RIVALS });
}
