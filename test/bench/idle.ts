// What an idle worker costs: the time of a tick that finds nothing to do, and the memory over an hour of such ticks, which must not
// grow.

import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { openConfigFolder } from "./config-folder.ts";
import { prepareDatabase } from "./prepared-database.ts";
import { storeSlices } from "./stored-slices.ts";

const WORKER = path.join(import.meta.dirname, "idle-worker.ts");
const GROUPINGS = ["none", "accessor", "deployment", "endpoint", "feature_set", "method", "model", "tags"];
const KEY = "0123456789abcdef0123456789abcdef01234567";

/** Returns one line for each ten minutes of the worker. */
export async function measureIdle(databaseUrl: string, filters: number, days: number): Promise<string[]> {
  const config = {
    service: { baseUrl: "http://127.0.0.1:1" },
    projects: [{ id: "p", name: "p", key: { env: "KEY" } }],
    exports: [
      {
        name: "bench",
        schedule: "0 2 * * *",
        projects: ["p"],
        window: { days: 7 },
        groupings: GROUPINGS,
        checkFeatures: "off",
        filters: Array.from({ length: filters }, (_, i) => ({ name: `f${i}`, dimensions: { accessor: `a${i}` } })),
      },
    ],
  };
  await using folder = await openConfigFolder(config);
  await using prepared = await prepareDatabase(databaseUrl, config);
  await storeSlices(prepared.db, { days });
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", WORKER, folder.file], {
    env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl, KEY, LOG_LEVEL: "warn" },
  });
  return stdout.trim().split("\n").map(describe);
}

function describe(line: string): string {
  const { minute, tickMs, heapUsed, rss } = JSON.parse(line);
  const mb = (bytes: number) => (bytes / 1024 / 1024).toFixed(1).padStart(6);
  return `  minute ${String(minute).padStart(2)}: ${tickMs.toFixed(1).padStart(6)} ms a tick, ${mb(heapUsed)} MB heap, ${mb(rss)} MB resident\n`;
}
