// Opens the monitor of a worker: health checks and metrics, which answer before the database does.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/database.ts";
import { newestMigration } from "../db/migrate.ts";
import { readMonitorFigures } from "../db/monitor-figures.ts";
import { nextRunAt } from "../jobs/next-due.ts";
import { type Metrics, openMetrics } from "../monitor/metrics.ts";
import type { Health } from "../monitor/routes.ts";
import { openMonitor } from "../monitor/server.ts";
import type { Contact } from "./contact.ts";

export type Monitoring = AsyncDisposable & { readonly metrics: Metrics };

const PACKAGE = path.join(import.meta.dirname, "../../package.json");

/** Throws `config` where it can't listen at the configured address. */
export async function openMonitoring(app: App, config: Config, db: Database, contact: Contact): Promise<Monitoring> {
  const health = (): Health => {
    const reasons = contact.reasons();
    return { live: contact.isLive(), ready: reasons.length === 0, reasons };
  };
  const jobs = [
    ...config.exports.map((job) => ({ job, kind: "export" as const })),
    ...config.rotations.map((job) => ({ job, kind: "rotation" as const })),
  ].map(({ job, kind }) => ({ kind, name: job.name, nextAfter: (moment: Date) => nextRunAt(job, moment) }));
  const { version } = JSON.parse(await readFile(PACKAGE, "utf8"));
  const metrics = openMetrics({
    log: app.log,
    build: { version: String(version), schema: await newestMigration() },
    configHash: createHash("sha256").update(JSON.stringify(config)).digest("hex").slice(0, 12),
    rotations: config.rotations,
    ready: () => health().ready,
    readFigures: () => readMonitorFigures(db, jobs),
  });
  const scrub = (text: string) => app.scrubber.scrub(text);
  const monitor = await openMonitor(config.monitor, { log: app.log, scrub, health, metrics: metrics.scrape });
  app.log.info({ url: monitor.url }, "monitor listens");
  return { metrics, [Symbol.asyncDispose]: () => monitor[Symbol.asyncDispose]() };
}
