// The speed that storing is compared with: psql copies all stored rows from a file into a table with neither key nor index.

import { rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import { secondsOf } from "./figures.ts";
import { run } from "./processes.ts";

export async function secondsOfCopy(db: Database, databaseUrl: string): Promise<number> {
  const columns = ["project_id", "usage_date", "grouping", "group_value", ...METRICS];
  const { rows } = await sql<Record<string, unknown>>`
    select ${sql.join(columns.map((name) => sql.ref(name)))} from usage_export.visible_usage
  `.execute(db);
  await sql`drop table if exists bare_row`.execute(db);
  await sql`
    create table bare_row (project_id text, usage_date date, "grouping" text, group_value text,
      ${sql.join(METRICS.map((name) => sql`${sql.ref(name)} numeric`))})
  `.execute(db);
  const file = path.join(os.tmpdir(), `usage-export-bench-${process.pid}.tsv`);
  await writeFile(file, rows.map((row) => columns.map((name) => row[name] ?? "\\N").join("\t")).join("\n"));
  try {
    return await secondsOf(() => run("psql", ["-q", databaseUrl, "-c", `\\copy bare_row from ${file}`], { env: {} }));
  } finally {
    await rm(file);
  }
}
