// How much memory an export takes at its peak, for few rows and for many over the same requests: it must not grow with
// the rows that were stored before. Needs DATABASE_URL of a database that may be filled; Linux only, as it reads /proc.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { startEmulator } from "../../src/emulator/server.ts";

const MAIN = path.join(import.meta.dirname, "../../src/main.ts");
const KEY = "0123456789abcdef0123456789abcdef01234567";
const DAYS = 7;
const GROUPINGS = ["accessor", "model", "tags", "feature_set"];
const LOOK_MS = 20;

export type Measured = { readonly rows: number; readonly peakMb: number; readonly seconds: number };

/** Exports `projects` × 4 groupings × 7 days × `groups` rows into an empty schema, and once more unchanged. */
export async function measureExport(databaseUrl: string, projects: number, groups: number): Promise<Measured[]> {
  const ids = Array.from({ length: projects }, (_, i) => `project-${groups}-${i}`);
  await using emulator = await startEmulator({
    consoleKeys: ids.map((projectId, i) => ({ secret: `${KEY}${i}`, projectId, scopes: ["member"] })),
    usage: (_, day) =>
      Array.from({ length: groups }, (_, i) => ({
        accessor: `accessor-${i}`,
        model: [`model-${i}`],
        tags: [`tag-${i}`],
        feature_set: [`feature-${i}`],
        hours: i + 0.25,
        total_hours: i + 0.5,
        requests: i + Number(day.slice(-2)),
      })),
  });
  const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-bench-"));
  try {
    const config = {
      service: { baseUrl: emulator.url, requestsPerSecond: 100 },
      projects: ids.map((id, i) => ({ id, name: id, key: { env: `KEY_${i}` } })),
      exports: [{ name: "bench", schedule: "0 2 * * *", projects: ids, window: { days: DAYS }, groupings: GROUPINGS }],
    };
    await writeFile(path.join(folder, "jobs.config.json"), JSON.stringify(config));
    const keys = Object.fromEntries(ids.map((_, i) => [`KEY_${i}`, `${KEY}${i}`]));
    const env = {
      PATH: process.env.PATH,
      DATABASE_URL: databaseUrl,
      LOG_LEVEL: "error",
      ...keys,
    };
    await run(["migrate"], folder, env);
    const rows = projects * GROUPINGS.length * DAYS * groups;
    return [
      { rows, ...(await run(["export"], folder, env)) },
      { rows, ...(await run(["export"], folder, env)) },
    ];
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function run(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<Omit<Measured, "rows">> {
  const startedMs = performance.now();
  const child = spawn(process.execPath, [MAIN, ...args], { cwd, env, stdio: ["ignore", "ignore", "inherit"] });
  let peakMb = 0;
  const look = setInterval(async () => {
    const status = await readFile(`/proc/${child.pid}/status`, "utf8").catch(() => "");
    peakMb = Math.max(peakMb, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
  }, LOOK_MS);
  const [status] = await once(child, "exit");
  clearInterval(look);
  if (status !== 0) throw new Error(`${args.join(" ")} ended with ${status}`);
  return { peakMb: Math.round(peakMb), seconds: Math.round((performance.now() - startedMs) / 100) / 10 };
}
