// Opens the monitor of a worker: the dashboard, and the health checks and metrics, which answer even while the database can't be reached.

import type { App } from "../app.ts";
import { memoizeAsync, oneAtATime } from "../async.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { newestMigration } from "../db/connection/migrate.ts";
import { BRIEF_SECONDS, openRowCache, queryAtOneMoment, type RowCache } from "../db/connection/transaction.ts";
import { errorText } from "../errors.ts";
import { coverage } from "../facts/coverage.ts";
import { type HealthState, health } from "../facts/health.ts";
import { readRun, readRuns } from "../facts/jobs.ts";
import { readKeys } from "../facts/keys.ts";
import { readReportData } from "../facts/overview.ts";
import { programVersion } from "../package-files.ts";
import { type Metrics, openMetrics } from "../show/prometheus.ts";
import type { Access } from "../web/access.ts";
import { type DashboardDeps, openDashboard, pageReads } from "../web/dashboard/pages.ts";
import { openMonitor } from "../web/server.ts";
import { PAGES } from "../web/url.ts";
import type { Liveness } from "./liveness.ts";

/** How often the overview and usage pages are made ahead, so that visitors find their rows cached: the first reading takes long. */
const READ_AHEAD_MS = 5 * 60_000;

/** `current` is called at each request: a reload may have changed it. Throws `config` if the monitor can't listen at its address. */
export async function openMonitoring(
  app: App,
  current: () => { readonly config: Config; readonly access: Access | undefined },
  { db, liveness }: { readonly db: Database; readonly liveness: Pick<Liveness, "isLive" | "reasons"> },
): Promise<AsyncDisposable & { readonly metrics: Metrics; readonly url: string }> {
  const readiness = () => ({ live: liveness.isLive(), reasons: liveness.reasons() });
  const version = await programVersion();
  const build = { version, schema: await newestMigration() };
  const metrics = openMetrics(build, () => readiness().reasons.length === 0);
  const cache = openRowCache();
  const loadApi = async () =>
    (await import("../web/api.ts")).openReadApi({
      log: app.log,
      version,
      queryAtOneMoment: (work, signal) => queryAtOneMoment(db, work, { signal, cache }),
    });
  const loadOnce = memoizeAsync<Awaited<ReturnType<typeof loadApi>>>();
  const reads = dashboardReads(db, () => current().config, cache);
  const pages = openDashboard({ log: app.log, readiness, ...reads });
  const monitor = await openMonitor(current().config.monitor, {
    log: app.log,
    scrub: app.scrubber.scrub,
    access: () => current().access,
    readiness,
    metrics: openScrape(app.log, metrics, reads.readHealth),
    pages,
    api: () => loadOnce("api", loadApi),
  });
  app.log.info({ url: monitor.url }, "monitor listens");
  const makePagesAhead = async () => {
    if (readiness().reasons.length > 0) return;
    for (const { path } of [PAGES.overview, PAGES.usage]) await pages[path]?.(new URLSearchParams());
  };
  // An error is ignored: the same page fails for its visitor, who sees the reason.
  const readAhead = setInterval(() => void makePagesAhead().catch(() => {}), READ_AHEAD_MS);
  const close = () => {
    clearInterval(readAhead);
    return monitor[Symbol.asyncDispose]();
  };
  return { metrics, url: monitor.url, [Symbol.asyncDispose]: close };
}

/** Usage, cost, and the completeness in the health state are cached. The page Data health reads its coverage, runs and keys anew. */
export function dashboardReads(
  db: Database,
  config: () => Config,
  cache: RowCache,
): Pick<DashboardDeps, "readHealth" | "read" | "readReport"> {
  return {
    readHealth: () => health(db, config(), { secondsMax: BRIEF_SECONDS, cache }),
    read: pageReads({
      queryAtOneMoment: (read, signal) => queryAtOneMoment(db, read, { signal, cache }),
      async readDataHealth(question, signal) {
        const [covered, runs, keys] = await Promise.all([
          queryAtOneMoment(db, (query) => coverage(query, question), { signal }),
          readRuns(db),
          readKeys(db, config()),
        ]);
        return { coverage: covered, runs, keys };
      },
      readRun: (id) => readRun(db, id),
    }),
    readReport: (view, signal) => readReportData(db, view, new Date(), { signal, cache }),
  };
}

/** Half of the time that Prometheus waits for the answer to a scrape. */
const SCRAPE_MS_MAX = 5_000;

/** Answers scrapes. If the health state can't be read within SCRAPE_MS_MAX, the answer lacks the metrics that come from it. */
export function openScrape(log: Pick<App["log"], "warn">, metrics: Metrics, readHealth: () => Promise<HealthState>) {
  const inTurn = oneAtATime(SCRAPE_MS_MAX);
  let wasRead = true;
  return async () => {
    try {
      const state = await inTurn(readHealth);
      wasRead = true;
      return metrics.scrape(state);
    } catch (error) {
      if (wasRead) log.warn({ reason: errorText(error) }, "the health state could not be read: the metrics lack it");
      wasRead = false;
      return metrics.scrape(undefined);
    }
  };
}
