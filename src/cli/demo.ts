// The whole product on this machine with nothing configured: jobs.config.json with the emulator in the service's place
// and a database that is thrown away.

import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { type App, openServiceOf, readConfig } from "../app.ts";
import type { Config } from "../config/config.ts";
import { type Database, openEmbedded } from "../db/database.ts";
import { demoNumbers } from "../db/demo-numbers.ts";
import { migrateToLatest } from "../db/migrate.ts";
import { type Emulator, startEmulator } from "../emulator/server.ts";
import { AppError } from "../errors.ts";
import { runExportJob } from "../run-export.ts";
import { Secret } from "../secret.ts";
import { addDays, dayOf, daysOf } from "../usage/day.ts";
import type { ExportResult, RunTrigger } from "../usage/export.ts";
import type { Selection } from "../usage/plan.ts";
import { progressLine } from "./progress.ts";

const BACKFILL_DAYS = 30;
const DAY_MS = 24 * 60 * 60 * 1000;

export async function runDemo(app: App): Promise<number> {
  const configured = await readConfig(app);
  const key = app.scrubber.add(new Secret(randomBytes(20).toString("hex")));
  const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-demo-"));
  await using emulator = await startEmulator({
    consoleKeys: configured.projects.map(({ id }) => ({ secret: key.reveal(), projectId: id, scopes: ["member"] })),
  });
  // The emulator is this machine's own, so nobody is spared by calling it slowly.
  const config = { ...configured, service: { ...configured.service, baseUrl: emulator.url, requestsPerSecond: 100 } };
  app.write(`service: the built-in emulator at ${emulator.url}\n`);
  const db = await openEmbedded(folder);
  try {
    return await tellStory(app, config, db, emulator, key);
  } finally {
    await db.destroy();
    await rm(folder, { recursive: true, force: true });
  }
}

async function tellStory(app: App, config: Config, db: Database, emulator: Emulator, key: Secret): Promise<number> {
  const applied = await migrateToLatest(db);
  app.write(`database: embedded, ${applied.length} migrations applied\n`);
  const run = demoRunner(app, config, db, key);
  const yesterday = addDays(dayOf(new Date()), -1);
  const days = daysOf({ start: addDays(yesterday, 1 - BACKFILL_DAYS), end: yesterday });

  const first = await run(`the last ${BACKFILL_DAYS} days`, "backfill", { days });
  const second = await run("the same night once more", "manual", {});
  emulator.now = () => new Date(Date.now() + DAY_MS);
  const third = await run("a day later: late usage has arrived", "manual", {});

  const numbers = await demoNumbers(db);
  const total = numbers.latest;
  app.write(
    [
      "",
      "what a BI tool reads now, in schema bi:",
      `  usage_total       ${total ? `${total.usage_date}: ${total.requests} requests, ${total.hours} hours (${total.finality}, revision ${total.revision})` : "no rows"}`,
      `  coverage          ${numbers.complete} of ${numbers.slices} slices complete, ${numbers.gaps} gaps`,
      `  restatements      ${numbers.restatements} numbers changed after they had been stored, each with its old and new value`,
      `  reconciliation    ${numbers.differences} days on which a grouping differs from the total`,
      "",
      "the second run wrote no row, as nothing had changed. Next: put your project into jobs.config.json and run",
      "  npm run usage-export -- check",
      "",
    ].join("\n"),
  );
  const failed = [first, second, third].reduce((sum, result) => sum + result.failed + result.suspect, 0);
  const honest =
    numbers.gaps === 0 && numbers.differences === 0 && second.rowsChanged === 0 && numbers.restatements > 0;
  if (failed === 0 && !honest) throw new Error("the demo did not show what it promises");
  return failed === 0 ? 0 : 1;
}

type Run = (label: string, trigger: RunTrigger, selection: Selection) => Promise<ExportResult>;

function demoRunner(app: App, config: Config, db: Database, key: Secret): Run {
  return async (label, trigger, selection) => {
    const job = config.exports.find(({ window }) => window !== undefined);
    if (!job) throw new AppError("config", `${app.configPath}: the demo needs an export with a "window"`);
    const service = openServiceOf(app, config);
    const progress = progressLine(label, app.terminal, (text) => process.stderr.write(text));
    try {
      const context = { app, config, db, service, keyOf: async () => key, onProgress: progress.show };
      const result = await runExportJob(context, job, trigger, selection);
      progress.clear();
      const { requests, complete, failed, rowsChanged } = result;
      app.write(
        `${label}: ${requests} calls, ${complete} slices complete, ${failed} failed, ${rowsChanged} rows written\n`,
      );
      return result;
    } finally {
      await service.close();
    }
  };
}
