// Measures forecast and anomalies on made-up usage, and writes the tables of docs/forecast.md: npm run accuracy

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { openEmbedded } from "../../src/db/connection/database.ts";
import { migrateToLatest } from "../../src/db/connection/migrate.ts";
import { anomalyTable } from "./anomaly-hits.ts";
import { forecastTable } from "./forecast-errors.ts";

const PAGE = path.join(import.meta.dirname, "../../docs/forecast.md");

const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-accuracy-"));
try {
  const db = await openEmbedded(folder);
  try {
    await migrateToLatest(db);
    await replaceTable("forecast", await forecastTable(db));
    await replaceTable("anomalies", await anomalyTable(db));
  } finally {
    await db.destroy();
  }
} finally {
  await rm(folder, { recursive: true });
}

/** Replaces the table after the comment with this name. */
async function replaceTable(name: string, table: string): Promise<void> {
  const page = await readFile(PAGE, "utf8");
  await writeFile(PAGE, page.replace(new RegExp(`(<!-- ${name} -->\\n)\\n?(\\|.*\\n)*`), `$1\n${table}\n`));
  process.stdout.write(`${table}\n`);
}
