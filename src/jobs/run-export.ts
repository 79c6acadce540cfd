// Wires one run of an export job: the pipeline of usage/ to the service, the database and the log.

import { randomUUID } from "node:crypto";
import type { Config } from "../config/config.ts";
import { databaseNow } from "../db/database.ts";
import { finishRun, startRun, touchRun } from "../db/runs.ts";
import { idOf, markDue, markNextDue, registerSeries } from "../db/series.ts";
import { inTransaction } from "../db/transaction.ts";
import { errorText } from "../errors.ts";
import {
  type ExportResult,
  exportUsage,
  NOTHING_DONE,
  pickCounts,
  type RunCounts,
  type RunTrigger,
} from "../usage/export.ts";
import { configuredSeries, type ExportJob, type ExportPlan, isUpToDate, type UsageRequest } from "../usage/plan.ts";
import { seriesKey } from "../usage/series.ts";
import { type ExportWorld, exportDeps } from "./export-deps.ts";
import { openFeatureCheck } from "./feature-check.ts";
import { nextDueOf } from "./next-due.ts";
import { rememberKeys } from "./remember-keys.ts";

/** What runs of the same process share. */
export type ExportContext = ExportWorld & {
  readonly config: Config;
  readonly onProgress?: (counts: RunCounts) => void;
};

/** How often a run says that it is alive: a third of the time after which it is taken for interrupted. */
const HEARTBEAT_MS = 20_000;

/** Runs a job's plan now and records the run, whatever becomes of it. */
export async function runExportJob(
  context: ExportContext,
  job: ExportJob,
  trigger: RunTrigger,
  plan: ExportPlan,
): Promise<ExportResult> {
  const { app, config, db } = context;
  const log = app.log.child({ job: job.name });
  const { requests, runDay, due } = plan;
  const ids = await registerSeries(db, configuredSeries(config.exports));
  const series = [...new Map(requests.map((request) => [seriesKey(request.series), request.series])).values()];
  // In this order: a run that ends in between has not hidden a night that was missed.
  if (due) {
    const seriesIds = series.map((one) => idOf(ids, one));
    await markDue(db, seriesIds, due);
  }
  if (isUpToDate(plan)) {
    const next = nextDueOf(series, ids, config.exports, await databaseNow(db));
    await inTransaction(db, (tx) => markNextDue(tx, next));
  }

  const runId = randomUUID();
  await startRun(db, { runId, kind: "export", job: job.name, trigger });
  log.info({ runId, requests: requests.length }, "export started");
  const heartbeat = setInterval(() => touchRun(db, runId).catch(() => {}), HEARTBEAT_MS);
  let done = NOTHING_DONE;
  let remembered: Promise<void> | undefined;
  const onProgress = (counts: RunCounts) => {
    done = pickCounts(counts);
    context.onProgress?.(counts);
  };
  try {
    const features = openFeatureCheck(context);
    const { emptyGuard, cliffGuard, undated } = job;
    const stored = {
      runId,
      check: { features, strictness: job.checkFeatures },
      idOf: ({ series }: UsageRequest) => idOf(ids, series),
      emptyGuard,
      cliffGuard,
      undated,
    };
    const deps = {
      ...exportDeps(context, stored),
      refuse: (request: UsageRequest) => features.refusalOf(request, job.checkFeatures),
      log: log.child({ runId }),
      onProgress,
      onAnswered: (failed: readonly UsageRequest[]) => {
        // Who answered nothing would not list keys.
        const silent = new Set(failed);
        const answered = requests.filter((request) => !silent.has(request));
        remembered = rememberKeys(
          context,
          answered.map((request) => request.series.project),
        );
      },
    };
    // Twice as many as may call at once: as soon as a call ends the next one is ready for its place.
    const run = { requests, runDay, concurrency: 2 * config.service.maxConcurrent };
    const result = await exportUsage(run, deps, app.signal);
    const status = result.failed + result.suspect === 0 ? "ok" : "failed";
    await finishRun(db, runId, status, result, result.failures[0]?.reason);
    // On a terminal the command's own answer says what failed.
    log[status === "ok" || app.terminal ? "info" : "warn"]({ runId, ...pickCounts(result) }, "export finished");
    return result;
  } catch (error) {
    const status = app.signal.aborted ? "stopped" : "failed";
    // Where the database is what failed, this fails too, and the heartbeat's end tells.
    await finishRun(db, runId, status, done, app.scrubber.scrub(errorText(error))).catch(() => {});
    throw error;
  } finally {
    clearInterval(heartbeat);
    await remembered;
  }
}
