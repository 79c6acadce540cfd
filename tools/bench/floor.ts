// What an export costs, compared with the least that one can do: floor-program.ts. Both are processes of their own, ours the built
// package, and both must store the same rows.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { z } from "zod";
import { openPostgres } from "../../src/db/connection/database.ts";
import { breakdownQuery } from "../../src/service/breakdown.ts";
import { dayOf } from "../../src/usage/days.ts";
import { planRun } from "../../src/usage/export-plan.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import { seriesKey } from "../../src/usage/series.ts";
import { openConfigFolder } from "./config-folder.ts";
import { median, type NewDatabase, ratio } from "./figures.ts";
import type { FloorRequest } from "./floor-program.ts";
import { configOf, GROUPINGS, KEY, type Workload } from "./pipeline.ts";
import { prepareDatabase } from "./prepared-database.ts";
import { builtProgram, run } from "./processes.ts";
import { type Service, startService } from "./service.ts";

const FLOOR = path.join(import.meta.dirname, "floor-program.ts");
const METER = path.join(import.meta.dirname, "cpu-meter.cjs");

type Step = { readonly name: string; readonly percentChanged: number };
const NEW: Step = { name: "new rows", percentChanged: 0 };
const AGAIN: Step = { name: "unchanged", percentChanged: 0 };
const CHANGED: Step = { name: "5 % changed", percentChanged: 5 };

type Task = Workload & { readonly rows: number; readonly steps: readonly Step[]; readonly rounds: number };
const TASKS: readonly Task[] = [
  { rows: 50, projects: 100, days: 1, cap: 16, steps: [NEW], rounds: 5 },
  {
    rows: 1_000,
    projects: 125,
    groupings: GROUPINGS.slice(0, 2),
    days: 10,
    cap: 16,
    steps: [NEW, AGAIN, CHANGED],
    rounds: 3,
  },
];

/** Seconds: wall time from the first request to the end of the process, CPU in that time, and CPU before. */
type Took = { readonly wall: number; readonly work: number; readonly start: number };

/** Runs on a database that has the tables and the series. */
type Contestant = { readonly name: string; readonly exportAll: (meter: Meter) => Promise<void> };
/** The environment that makes the program write its CPU seconds. */
type Meter = Readonly<Record<string, string>>;

export async function measureFloor(newDatabase: NewDatabase): Promise<string[]> {
  const lines: string[] = [];
  for (const task of TASKS) lines.push(...(await measureTask(task, newDatabase)));
  return lines;
}

async function measureTask(task: Task, newDatabase: NewDatabase): Promise<string[]> {
  await using service = await startService({ rows: task.rows, latencyMs: 0 });
  const config = configOf(service.url, task);
  await using folder = await openConfigFolder(config);
  const took = new Map<string, Took[]>();
  for (let round = 0; round < task.rounds; round++) {
    const stored = new Map<string, string>();
    for (const contestant of [ours, floor]) {
      const databaseUrl = await newDatabase();
      const { name, exportAll } = await contestant(service.url, folder.folder, databaseUrl, config);
      for (const step of task.steps) {
        await service.change(step.percentChanged);
        const what = `${step.name}, ${name}`;
        took.set(what, [...(took.get(what) ?? []), await measure(service, folder.folder, exportAll)]);
        const rows = await storedRows(databaseUrl);
        if ((stored.get(step.name) ?? rows) !== rows)
          throw new Error(`${what}: expected the stored rows ${stored.get(step.name)}, got ${rows}`);
        stored.set(step.name, rows);
      }
    }
  }
  return linesOf(task, took);
}

const Metered = z.object({ start: z.number(), work: z.number() });

async function measure(service: Service, folder: string, exportAll: Contestant["exportAll"]): Promise<Took> {
  const file = path.join(folder, "cpu.json");
  await service.asked();
  await exportAll({ NODE_OPTIONS: `--require=${METER}`, CPU_METER: file });
  const { firstMsAgo } = await service.asked();
  return { wall: firstMsAgo / 1_000, ...Metered.parse(JSON.parse(await readFile(file, "utf8"))) };
}

type Prepare = (service: string, folder: string, databaseUrl: string, config: object) => Promise<Contestant>;

const ours: Prepare = async (_service, folder, databaseUrl, config) => {
  await (await prepareDatabase(databaseUrl, config)).db.destroy();
  const program = await builtProgram();
  const env = { DATABASE_URL: databaseUrl, LOG_LEVEL: "error", KEY };
  return {
    name: "usage-export",
    exportAll: (meter) => run(process.execPath, [program, "export"], { cwd: folder, env: { ...env, ...meter } }),
  };
};

const floor: Prepare = async (service, _folder, databaseUrl, json) => {
  await using prepared = await prepareDatabase(databaseUrl, json);
  const { config, ids } = prepared;
  const requests = config.exports
    .flatMap((job) => planRun(job, dayOf(new Date())).requests)
    .map((request): FloorRequest => {
      const { series } = request;
      const seriesId = ids.get(seriesKey(series));
      if (seriesId === undefined) throw new Error(`${seriesKey(series)} is not registered`);
      const query = breakdownQuery(request, "interface");
      return {
        seriesId,
        grouping: series.grouping,
        path: `/v1/projects/${series.project.id}/usage/breakdown?${query}`,
      };
    });
  const env = { SERVICE: service, DATABASE_URL: databaseUrl, CAP: String(config.service.maxConcurrent) };
  return {
    name: "floor",
    exportAll: (meter) =>
      run(process.execPath, [FLOOR], { env: { ...env, ...meter }, input: JSON.stringify(requests) }),
  };
};

/** How many rows and slices are stored, and a hash of all that they say, without times and ids. */
async function storedRows(databaseUrl: string): Promise<string> {
  const db = openPostgres(databaseUrl);
  const numbers = sql.join([...METRICS, "extra_metrics"].map((name) => sql.ref(`r.${name}`)));
  const common = sql`s.project_id, s."grouping", s.filter_key, r.usage_date`;
  const ofRow = sql`${common}, g.group_key, g.display, r.revision, r.gone, r.returned, r.restates, ${numbers}`;
  const joined = sql`r join usage_export.series s using (series_id) left join usage_export.group_value g using (group_id)`;
  try {
    const { rows } = await sql<{ stored: string }>`
      with line as (
        select 'row', concat_ws(' ', ${ofRow}) as line from usage_export.slice_row ${joined}
        union all select 'superseded', concat_ws(' ', ${ofRow}) from usage_export.superseded_row ${joined}
        union all select 'slice', concat_ws(' ', ${common}, r.status, r.rows, r.closed_at is null)
          from usage_export.slice r join usage_export.series s using (series_id)
      ) 
      select string_agg(kind, ', ' order by kind) as stored from (
        select count(*) || ' × ' || kind || ' ' || md5(string_agg(line, '\n' order by line collate "C")) as kind from line as line (kind, line) group by kind
      ) counted
    `.execute(db);
    return rows[0]?.stored ?? "nothing";
  } finally {
    await db.destroy();
  }
}

function linesOf(
  { rows, projects, groupings = GROUPINGS, cap, steps }: Task,
  took: ReadonlyMap<string, readonly Took[]>,
): string[] {
  const medians = (what: string): Took => {
    const all = took.get(what) ?? [];
    return {
      wall: median(all.map(({ wall }) => wall)),
      work: median(all.map(({ work }) => work)),
      start: median(all.map(({ start }) => start)),
    };
  };
  const figure = (seconds: number, least: number) => `${seconds.toFixed(2).padStart(7)} s ${ratio(seconds, least)}`;
  return [
    `${projects * groupings.length} requests × ${rows} rows at a cap of ${cap}, beside the least that an export can do: wall time and CPU from the first request, CPU before`,
    ...steps.flatMap(({ name }) => {
      const least = medians(`${name}, floor`);
      return ["usage-export", "floor"].map((who) => {
        const { wall, work, start } = medians(`${name}, ${who}`);
        return `  ${`${name}, ${who}`.padEnd(28)} ${figure(wall, least.wall)} ${figure(work, least.work)} ${figure(start, least.start)}`;
      });
    }),
  ];
}
