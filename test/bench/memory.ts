// The peak memory of an export, which must not grow with the number of rows, nor with an answer that is far too large. Linux only,
// because it reads /proc.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { openConfigFolder } from "./config-folder.ts";
import type { NewDatabase } from "./figures.ts";
import { configOf, GROUPINGS, KEY, type Workload } from "./pipeline.ts";
import { prepareDatabase } from "./prepared-database.ts";
import { builtProgram } from "./processes.ts";
import { startService } from "./service.ts";

const CAP = 4;
const LOOK_MS = 20;
/** An answer has 10 days, so each day has 100 rows. */
const SMALL_ANSWER_ROWS = 1_000;
/** An answer of this many rows has about 200 MB. */
const LARGE_ANSWER_ROWS = 650_000;

type Peak = { readonly peakMb: number; readonly status: number };

export async function measureMemory(newDatabase: NewDatabase): Promise<string[]> {
  const few = await peakOf(SMALL_ANSWER_ROWS, { projects: 3, days: 10, cap: CAP }, await newDatabase());
  const many = await peakOf(SMALL_ANSWER_ROWS, { projects: 250, days: 10, cap: CAP }, await newDatabase());
  const large = await peakOf(LARGE_ANSWER_ROWS, { projects: 1, days: 1, cap: 1 }, await newDatabase());
  if (large.status !== 1) throw new Error(`an answer that is too large ended the export with ${large.status}`);
  const line = (what: string, { peakMb }: Peak) =>
    `  ${what.padEnd(44)}${String(peakMb).padStart(5)} MB ${String(peakMb - few.peakMb).padStart(5)} MB more`;
  const rows = (projects: number) => (projects * GROUPINGS.length * SMALL_ANSWER_ROWS).toLocaleString("en");
  return [
    "memory of an export of new rows at its peak:",
    line(`${rows(3)} rows in answers of ${SMALL_ANSWER_ROWS}`, few),
    line(`${rows(250)} rows in answers of ${SMALL_ANSWER_ROWS}`, many),
    line("answers of about 200 MB, which are refused", large),
  ];
}

async function peakOf(rows: number, workload: Workload, databaseUrl: string): Promise<Peak> {
  const program = await builtProgram();
  await using service = await startService({ rows, latencyMs: 0 });
  const config = configOf(service.url, workload);
  await using opened = await openConfigFolder(config);
  await (await prepareDatabase(databaseUrl, config)).db.destroy();
  const child = spawn(process.execPath, [program, "export"], {
    cwd: opened.folder,
    env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl, LOG_LEVEL: "fatal", KEY },
    stdio: "ignore",
  });
  let peakMb = 0;
  const look = setInterval(async () => {
    const status = await readFile(`/proc/${child.pid}/status`, "utf8").catch(() => "");
    peakMb = Math.max(peakMb, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
  }, LOOK_MS);
  const [status] = await once(child, "exit");
  clearInterval(look);
  return { peakMb: Math.round(peakMb), status };
}
