// Opens the monitor of a worker: health checks and metrics, which answer before the database does, and the dashboard.

import { createHash } from "node:crypto";
import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import { writtenRotations } from "../config/rotations.ts";
import type { Database } from "../db/connection/database.ts";
import { newestMigration } from "../db/connection/migrate.ts";
import { readByStatements } from "../db/connection/statements.ts";
import type { Run } from "../facts/scope.ts";
import { type Metrics, openMetrics } from "../health/metrics.ts";
import { readHealthFigures } from "../health/read-health.ts";
import { programVersion } from "../package-files.ts";
import type { Access } from "../web/access.ts";
import { openDashboard } from "../web/dashboard/dashboard.ts";
import { openUsagePage } from "../web/explore/usage-page.ts";
import { openMonitor } from "../web/server.ts";
import { dashboardReads } from "./dashboard-reads.ts";
import type { Liveness } from "./liveness.ts";

export type Monitoring = AsyncDisposable & {
  readonly metrics: Metrics;
  /** Without a slash at its end. */
  readonly url: string;
};

export type MonitoringDeps = {
  readonly db: Database;
  readonly liveness: Pick<Liveness, "isLive" | "reasons">;
};

export type MonitoredConfig = {
  readonly config: Config;
  /** What visitors must send; undefined if nothing. */
  readonly access: Access | undefined;
};

/** `current` is called at each request, as the configuration may be another one then. Throws `config` if it can't listen at the configured address. */
export async function openMonitoring(
  app: App,
  current: () => MonitoredConfig,
  { db, liveness }: MonitoringDeps,
): Promise<Monitoring> {
  const hashOf = hashOfNewest();
  const readiness = () => ({ live: liveness.isLive(), reasons: liveness.reasons() });
  const version = await programVersion();
  const metrics = openMetrics({
    log: app.log,
    build: { version, schema: await newestMigration() },
    config() {
      const { config } = current();
      return { hash: hashOf(config), rotations: writtenRotations(config) };
    },
    ready: () => readiness().reasons.length === 0,
    readHealth: () => readHealthFigures(db, current().config),
  });
  const scrub = (text: string) => app.scrubber.scrub(text);
  const dashboard = openDashboard({
    log: app.log,
    readiness,
    ...dashboardReads(db, () => current().config),
  });
  const usage = {
    readByStatements: <T>(read: (run: Run) => Promise<T>, signal: AbortSignal) =>
      readByStatements(db, read, { signal }),
  };
  const loadApi = async () => (await import("../web/explore/api.ts")).openApi({ log: app.log, version, ...usage });
  let api: ReturnType<typeof loadApi> | undefined;
  const usagePage = openUsagePage({ framed: dashboard.framed, ...usage });
  const deps = {
    ...{ log: app.log, scrub, access: () => current().access, readiness },
    ...{ metrics: metrics.scrape, pages: { ...dashboard.pages, ...usagePage }, api: () => (api ??= loadApi()) },
  };
  const monitor = await openMonitor(current().config.monitor, deps);
  app.log.info({ url: monitor.url }, "monitor listens");
  return { metrics, url: monitor.url, [Symbol.asyncDispose]: () => monitor[Symbol.asyncDispose]() };
}

/** Hashes a configuration only when it is another one than before: one with thousands of projects is long. */
function hashOfNewest(): (config: Config) => string {
  let newest: { readonly config: Config; readonly hash: string } | undefined;
  return (config) => {
    if (newest?.config !== config) {
      const hash = createHash("sha256").update(JSON.stringify(config)).digest("hex").slice(0, 12);
      newest = { config, hash };
    }
    return newest.hash;
  };
}
