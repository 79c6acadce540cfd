// What thousands of projects cost: each command, page and scrape in a process of its own as users run it, over a database that holds a
// week of every series, and then the nightly run of all of them. Not part of `npm run bench` without its name: 5,000 projects take
// twenty minutes.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { freePort } from "../../test/support/keeper.ts";
import { startScript } from "../../test/support/program.ts";
import { openConfigFolder } from "./config-folder.ts";
import { median, type NewDatabase } from "./figures.ts";
import { KEY } from "./pipeline.ts";
import { prepareDatabase } from "./prepared-database.ts";
import { builtProgram } from "./processes.ts";
import { requireAsAnswered } from "./sampled-slices.ts";
import { type Service, startService } from "./service.ts";
import { storeSlices } from "./stored-slices.ts";

const SIZES = (process.env.PROJECTS ?? "100 1000 5000").split(" ").map(Number);
const DAYS = 7;
const GROUPINGS = ["none", "accessor", "deployment", "endpoint", "feature_set", "method", "model", "tags"];
const ROUNDS = Number(process.env.ROUNDS ?? 3);
/** How many slices are compared with the service's answers after each nightly run. */
const SAMPLED = 1_000;
/** One nightly run for each number, with that many workers. */
const NIGHTS = (process.env.NIGHTS ?? "1 3").split(" ").filter(Boolean).map(Number);

const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  "check --offline": ["check", "--offline"],
  "backfill --dry-run": ["backfill", "--dry-run", "--only", "all"],
  status: ["status"],
  "status --project": ["status", "--project", "customer-0001"],
};

export async function measureProjects(newDatabase: NewDatabase): Promise<string[]> {
  const program = await builtProgram();
  const lines: string[] = [];
  for (const projects of SIZES) lines.push(...(await measureSize(program, await newDatabase(), projects)));
  return lines;
}

async function measureSize(program: string, databaseUrl: string, projects: number): Promise<string[]> {
  await using service = await startService({ rows: 7, latencyMs: 0 });
  const config = configOf(service.url, projects);
  await using folder = await openConfigFolder(config);
  await using prepared = await prepareDatabase(databaseUrl, config);
  await storeSlices(prepared.db, { days: DAYS });
  await judgeADay(prepared.db);
  const env = { DATABASE_URL: databaseUrl, LOG_LEVEL: "warn", KEY };
  const lines = [`${projects} projects, ${projects * GROUPINGS.length * 2} series, ${DAYS} days:`];
  for (const [what, args] of Object.entries(COMMANDS)) {
    const range = what.startsWith("backfill") ? await lastDays(prepared.db) : [];
    const taken: Taken[] = [];
    for (let round = 0; round < ROUNDS; round++)
      taken.push(await timed(program, [...args, ...range], folder.folder, env));
    lines.push(`  ${what.padEnd(24)}${text(taken)}`);
  }
  const workers = { program, folder: folder.folder, env };
  lines.push(...(await measureQuietWorker(workers, config)));
  for (const count of NIGHTS) lines.push(await measureNight(workers, prepared.db, count, service));
  // The pages then add up usage, not only the states of days.
  lines.push("  with the usage of a night stored:", ...(await measureQuietWorker(workers, config)));
  return lines;
}

/** As each night does for every project and filter, once its days become final. */
async function judgeADay(db: Database): Promise<void> {
  await sql`
    insert into usage_export.judged_day (project_id, filter_key, usage_date, series_id, verdict, is_final)
    select project_id, filter_key, current_date - 8, series_id, 'not judged', true from usage_export.series where "grouping" = 'none'
  `.execute(db);
  await sql`analyze usage_export.judged_day`.execute(db);
}

function configOf(service: string, projects: number): object {
  const names = Array.from({ length: projects }, (_, i) => `customer-${String(i).padStart(4, "0")}`);
  return {
    service: { baseUrl: service, dialect: "interface", requestsPerSecond: 10_000, maxConcurrent: 32 },
    projects: names.map((name) => ({ id: name, name, key: { env: "KEY" } })),
    exports: [
      {
        ...{ name: "nightly", schedule: "0 2 * * *", projects: names, window: { days: DAYS }, groupings: GROUPINGS },
        filters: [{ name: "all" }, { name: "streamed", dimensions: { method: "streaming" } }],
        checkFeatures: "off",
      },
    ],
    monitor: { port: 0 },
  };
}

type Workers = { readonly program: string; readonly folder: string; readonly env: Readonly<Record<string, string>> };

/** A worker with nothing to do: its start, its pages and its memory. */
async function measureQuietWorker({ program, env }: Workers, config: object): Promise<string[]> {
  await using own = await openConfigFolder({ ...config, monitor: { port: await freePort() } });
  const startedMs = performance.now();
  await using worker = startScript(program, ["start"], {
    cwd: own.folder,
    env: { ...env, LOG_LEVEL: "debug" },
    timeoutMs: 600_000,
  });
  const { url } = JSON.parse(await worker.waitFor("monitor listens"));
  await worker.waitFor("worker started");
  const readySeconds = (performance.now() - startedMs) / 1000;
  await worker.waitFor("tick finished");
  const firstTick = (performance.now() - startedMs) / 1000 - readySeconds;
  const lines = [
    `  ${"start until it works".padEnd(24)}${readySeconds.toFixed(2)} s, and its first tick ${firstTick.toFixed(2)} s`,
  ];
  const checks: Taken[] = [];
  for (let round = 0; round < ROUNDS; round++) checks.push(await timed(program, ["health"], own.folder, env));
  lines.push(`  ${"health".padEnd(24)}${text(checks)}`);
  for (const path of ["/metrics", "/", "/data-health", "/usage", "/report.html"]) {
    const taken: Taken[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const [askedMs, cpu] = [performance.now(), await cpuOf(worker.pid)];
      const answer = await fetch(`${url}${path}`);
      const { length } = await answer.text();
      if (!answer.ok) lines.push(`  ${path} answered ${answer.status}`);
      taken.push({
        seconds: (performance.now() - askedMs) / 1000,
        cpu: (await cpuOf(worker.pid)) - cpu,
        mb: await peakOf(worker.pid),
        bytes: length,
      });
      // Longer than pages are kept.
      await sleep(6_000);
    }
    lines.push(`  ${path.padEnd(24)}${text(taken)}`);
  }
  return lines;
}

/** A whole nightly run. The first one finds no rows stored, later ones the same rows. */
async function measureNight(
  { program, folder, env }: Workers,
  db: Database,
  count: number,
  service: Service,
): Promise<string> {
  // One scheduled time has one run.
  await sql`delete from usage_export.run`.execute(db);
  await sql`update usage_export.job set scheduled_through = now() - interval '1 day'`.execute(db);
  const {
    rows: [before],
  } = await sql<{
    runs: number;
  }>`select count(*)::integer as runs from usage_export.run where finished_at is not null`.execute(db);
  await service.asked();
  const startedMs = performance.now();
  await using stack = new AsyncDisposableStack();
  const workers = Array.from({ length: count }, () =>
    stack.use(startScript(program, ["start"], { cwd: folder, env, timeoutMs: 3_600_000 })),
  );
  for (;;) {
    const {
      rows: [now],
    } = await sql<{
      runs: number;
    }>`select count(*)::integer as runs from usage_export.run where finished_at is not null`.execute(db);
    if ((now?.runs ?? 0) > (before?.runs ?? 0)) break;
    await sleep(250);
  }
  const seconds = (performance.now() - startedMs) / 1000;
  const { count: asked, firstMsAgo } = await service.asked();
  const rows = await requireAsAnswered(db, service.url, { count: SAMPLED, days: DAYS });
  const peaks = await Promise.all(workers.map(({ pid }) => peakOf(pid)));
  return `  ${`night, ${count} worker${count > 1 ? "s" : ""}`.padEnd(24)}${asked} requests in ${(firstMsAgo / 1000).toFixed(1)} s: ${Math.round((asked * 1000) / firstMsAgo)} a second; the first ${(seconds - firstMsAgo / 1000).toFixed(1)} s after the start; at most ${Math.max(...peaks).toFixed(0)} MB; ${SAMPLED} slices, ${rows} rows, have the service's numbers`;
}

const TICKS_PER_SECOND = 100;

async function cpuOf(pid: number | undefined): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

async function peakOf(pid: number | undefined): Promise<number> {
  return Number(/VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

async function lastDays(db: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ from: string; to: string }>`
    select (current_date - ${sql.lit(DAYS)})::text as "from", (current_date - 1)::text as "to"
  `.execute(db);
  return ["--from", rows[0]?.from ?? "", "--to", rows[0]?.to ?? ""];
}

type Taken = { readonly seconds: number; readonly cpu: number; readonly mb: number; readonly bytes: number };

/** The CPU time and memory are those of the process alone, as /usr/bin/time has them. */
async function timed(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<Taken> {
  const child = spawn("/usr/bin/time", ["-f", "%e %U %S %M", process.execPath, program, ...args], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
  });
  let [bytes, errors] = [0, ""];
  child.stdout.on("data", (data) => (bytes += data.length));
  child.stderr.on("data", (data) => (errors += data));
  await once(child, "close");
  const [seconds = 0, user = 0, system = 0, kb = 0] = (errors.trim().split("\n").at(-1) ?? "").split(" ").map(Number);
  return { seconds, cpu: user + system, mb: kb / 1024, bytes };
}

function text(taken: readonly Taken[]): string {
  const of = (what: keyof Taken) => median(taken.map((one) => one[what]));
  return `${of("seconds").toFixed(2)} s, ${of("cpu").toFixed(2)} s CPU, ${of("mb").toFixed(0)} MB, ${(of("bytes") / 1000).toFixed(0)} kB`;
}
