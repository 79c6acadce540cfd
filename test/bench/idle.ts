// What an idle worker costs: the time of a tick that finds nothing to do, and memory over an hour of them, which must be flat.

import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { sql } from "kysely";
import { parseConfig } from "../../src/config/config.ts";
import { openPostgres } from "../../src/db/database.ts";
import { registerJobs } from "../../src/db/jobs.ts";
import { migrateToLatest } from "../../src/db/migrate.ts";
import { registerSeries } from "../../src/db/series.ts";
import { configuredSeries } from "../../src/usage/plan.ts";

const WORKER = path.join(import.meta.dirname, "idle-worker.ts");
const GROUPINGS = ["none", "accessor", "deployment", "endpoint", "feature_set", "method", "model", "tags"];
const KEY = "0123456789abcdef0123456789abcdef01234567";

/** A line for each ten minutes. */
export async function measureIdle(databaseUrl: string, filters: number, days: number): Promise<string[]> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-bench-"));
  const db = openPostgres(databaseUrl);
  try {
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
          filters: Array.from({ length: filters }, (_, i) => ({ name: `f${i}`, dimensions: { accessor: `a${i}` } })),
        },
      ],
    };
    const text = JSON.stringify(config);
    const file = path.join(folder, "jobs.config.json");
    await writeFile(file, text);
    await migrateToLatest(db);
    const { exports } = parseConfig(text, { source: file, baseDir: folder });
    await registerSeries(db, configuredSeries(exports));
    await registerJobs(db, [{ kind: "export", name: "bench" }]);
    await fill(db, days);
    const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", WORKER, file], {
      env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl, KEY, LOG_LEVEL: "warn" },
    });
    return stdout.trim().split("\n").map(describe);
  } finally {
    await db.destroy();
    await rm(folder, { recursive: true });
  }
}

/** Every day of every series complete, and the schedule taken up until now. */
async function fill(db: ReturnType<typeof openPostgres>, days: number): Promise<void> {
  await sql`
    insert into usage_export.slice (series_id, usage_date, status, fetch_no, fetched_at, closed_at)
    select series_id, current_date - day, 'complete', 1, now(), now()
    from usage_export.series cross join generate_series(1, ${sql.lit(days)}) as day
  `.execute(db);
  await sql`
    update usage_export.series
    set due_from = current_date - ${sql.lit(days)}, due_through = current_date - 1, next_due_at = now() + interval '1 day'
  `.execute(db);
  await sql`update usage_export.job set scheduled_through = now()`.execute(db);
  // As the server does by itself after a while.
  await sql`analyze usage_export.slice, usage_export.series`.execute(db);
}

function describe(line: string): string {
  const { minute, tickMs, pollMs, heapUsed, rss } = JSON.parse(line);
  const mb = (bytes: number) => (bytes / 1024 / 1024).toFixed(1).padStart(6);
  return `  minute ${String(minute).padStart(2)}: ${tickMs.toFixed(1).padStart(6)} ms a tick, ${(pollMs / 60).toFixed(1)} ms for a second's looks into the queue, ${mb(heapUsed)} MB heap, ${mb(rss)} MB resident\n`;
}
