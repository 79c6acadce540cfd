// The command `demo`: the whole product on this machine. It runs the packaged jobs.config.json with the emulator and a temporary database.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { App } from "../app.ts";
import { type Config, parseConfig } from "../config/config.ts";
import { type Database, openEmbedded } from "../db/connection/database.ts";
import { migrateToLatest } from "../db/connection/migrate.ts";
import { queryOn } from "../db/connection/transaction.ts";
import { keysOfMadeUpUsage } from "../emulator/keys.ts";
import { type Emulator, startEmulator } from "../emulator/server.ts";
import { openExportContext } from "../jobs/context.ts";
import type { ExportResult } from "../jobs/export.ts";
import { rotateByHand } from "../jobs/rotation.ts";
import { COMMAND, CONFIG_FILE, PACKAGE_FOLDER } from "../package-files.ts";
import { Secret } from "../secret.ts";
import { DAY_MS, DAYS_DEFAULT, type Day, dayOf, daysOf, lastDays } from "../usage/days.ts";
import type { ExportJob } from "../usage/export-plan.ts";
import { openMonitoring } from "../worker/monitoring.ts";
import { exportWithProgress } from "./export.ts";
import { writeFileAtomically } from "./output.ts";

const BACKFILL_DAYS = 30;
const PROJECT_ID = "demo";

/** Holds the demo's key. The packaged example names another variable, which may hold a real key that the demo must not send. */
const KEY_VARIABLE = "USAGE_EXPORT_DEMO_KEY";

export async function runDemo(app: App, { serve }: { readonly serve?: boolean }): Promise<number> {
  // The demo prints what it does, so the log need not.
  if (app.env.LOG_LEVEL === undefined) app.log.level = "warn";
  const secret = app.scrubber.add(new Secret(randomBytes(20).toString("hex"))).reveal();
  const masterKey = app.scrubber.add(new Secret(randomBytes(32).toString("base64"))).reveal();
  const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-demo-"));
  const projectKey = { projectId: PROJECT_ID, secret, scopes: ["member", "billing:read"] };
  await using emulator = await startEmulator({ consoleKeys: [projectKey, ...keysOfMadeUpUsage(PROJECT_ID)] });
  const env = { ...app.env, [KEY_VARIABLE]: secret, USAGE_EXPORT_MASTER_KEY: masterKey };
  app.write(`service: the built-in emulator at ${emulator.url}\n`);
  const db = await openEmbedded(folder);
  try {
    const config = await demoConfig(emulator.url, folder);
    const status = await runScenario({ ...app, env }, config, db, emulator);
    if (serve) await serveDashboard(app, config, db);
    return status;
  } finally {
    await db.destroy();
    await rm(folder, { recursive: true, force: true });
  }
}

/** The packaged example, changed to call the emulator and to export costs, too. Rotated keys are delivered into the folder. */
async function demoConfig(baseUrl: string, folder: string): Promise<Config> {
  const example = JSON.parse(await readFile(path.join(PACKAGE_FOLDER, CONFIG_FILE), "utf8"));
  const [project] = example.projects;
  const [nightly] = example.exports;
  const key = { rotation: example.rotations[0].name, first: { env: KEY_VARIABLE } };
  const costs = { source: "billing", groupings: ["none", "line_item"], filters: [{ name: "all" }] };
  const config = {
    ...example,
    // The emulator runs on this machine, so calling it slowly would protect nobody.
    service: { baseUrl, requestsPerSecond: 100 },
    projects: [{ ...project, id: PROJECT_ID, key }],
    exports: [nightly, { ...nightly, name: "costs", ...costs }],
  };
  return parseConfig(JSON.stringify(config), CONFIG_FILE, folder);
}

async function runScenario(app: App, config: Config, db: Database, emulator: Emulator): Promise<number> {
  const [nightly, costs] = config.exports;
  const [rotation] = config.rotations;
  if (!nightly || !costs || !rotation) throw new Error("the packaged example lacks an export or the rotation");
  const { migrations } = await migrateToLatest(db);
  app.write(`database: embedded, ${migrations.length} migrations applied\n`);
  await using context = await openExportContext(app, config, db);
  const results: ExportResult[] = [];
  const run = async (label: string, job: ExportJob, days?: readonly Day[]) => {
    const trigger = days ? "backfill" : "manual";
    const result = await exportWithProgress(context, job, { trigger, selection: { days }, label });
    const { requests, complete, failed, rowsChanged } = result;
    const slices = `${complete} slices complete, ${failed} failed`;
    app.write(`${label}: ${requests} calls, ${slices}, ${rowsChanged} rows written\n`);
    results.push(result);
  };

  const days = daysOf(lastDays(dayOf(new Date()), BACKFILL_DAYS));
  await run(`the last ${BACKFILL_DAYS} days`, nightly, days);
  await run("the export again, nothing has changed", nightly);
  emulator.now = () => new Date(Date.now() + DAY_MS);
  await run("a day later, late usage has arrived", nightly);
  await run("what it costs, by line item", costs, days);
  let isRotated = false;
  await rotateByHand(context, rotation.name, [rotation], undefined, (_, result) => {
    // Each text begins with the kind of its step, as in "create: …" or "deliver ue-1: …".
    const steps = result.did.map((text) => text.split(/[ :]/)[0]).join(", ");
    const text = result.errors[0] ?? `a fresh key (${steps}); the export uses it from now on`;
    app.write(`rotation ${rotation.name}: ${text}\n`);
    isRotated = result.status === "ok";
  });
  await run("with the rotated key", nightly);

  app.write(`${await samplesText(db)}\nreport: ${await writeDemoReport(app, db)}\n`);
  // `init` refuses to replace a file.
  const file = existsSync(app.configPath) ? " --config my-jobs.json" : "";
  app.write(`Next: make a configuration for your own project\n  ${COMMAND} init${file}\n`);
  return isRotated && results.every(({ failed, suspect }) => failed + suspect === 0) ? 0 : 1;
}

/** For each view, what follows `select` in a statement that returns one line of text to print. */
const SAMPLES = {
  usage_total: `concat(usage_date, ': ', requests, ' requests, ', hours, ' hours') as line
    from bi.usage_total order by usage_date desc, project limit 1`,
  cost_total:
    "concat(usage_date, ': ', amount, ' ', currency) as line from bi.cost_total order by usage_date desc, project limit 1",
  coverage: `concat(count(*) filter (where status = 'complete'), ' of ', count(*), ' slices complete, ',
    (select count(*) from bi.coverage_gaps), ' gaps') as line from bi.coverage`,
  restatements: `concat(count(*), ' stored numbers changed later, each with its old and new value') as line
    from bi.restatements`,
  reconciliation: "concat(count(*), ' days on which a grouping differs from the total') as line from bi.reconciliation",
};

async function samplesText(db: Database): Promise<string> {
  let text = "\nwhat a BI tool reads now, in schema bi:\n";
  for (const [view, sample] of Object.entries(SAMPLES)) {
    const [row] = await queryOn(db)<{ readonly line: string }>(`select ${sample}`);
    text += `  ${view.padEnd(17)} ${row?.line ?? "no rows"}\n`;
  }
  return text;
}

/** Returns the file's path. It is not the default path of `report`, so that the demo never overwrites a report of the user's. */
async function writeDemoReport(app: App, db: Database): Promise<string> {
  const { readReport } = await import("./report.ts");
  const file = path.resolve("usage-report-demo.html");
  const { page } = await readReport(app, db, { period: lastDays(dayOf(new Date()), DAYS_DEFAULT) });
  await writeFileAtomically(file, [page], app.signal);
  return file;
}

async function serveDashboard(app: App, config: Config, db: Database): Promise<void> {
  const current = { config: { ...config, monitor: { host: "127.0.0.1", port: 0 } }, access: undefined };
  // Always live: no worker runs that could hang, and the database is in this process.
  const liveness = { isLive: () => true, reasons: () => [] };
  await using monitoring = await openMonitoring(app, () => current, { db, liveness });
  app.write(`dashboard: ${monitoring.url}/ until you press Ctrl-C\n`);
  if (!app.signal.aborted) await once(app.signal, "abort");
}
