// Runs an export job in this process and records the run.

import { randomUUID } from "node:crypto";
import { databaseNow } from "../db/connection/database.ts";
import { inTransaction } from "../db/connection/transaction.ts";
import { finishRun, heartbeatRun, startRun } from "../db/jobs/runs.ts";
import { markDue, markNextDue, seriesIdOf } from "../db/usage/series.ts";
import { errorText } from "../errors.ts";
import { nextDueOf } from "../schedule/due.ts";
import {
  type ExportResult,
  exportUsage,
  NO_COUNTS,
  pickCounts,
  type RunCounts,
  type RunTrigger,
} from "../usage/export.ts";
import { type ExportJob, type ExportPlan, isUpToDate, type UsageRequest } from "../usage/plan.ts";
import { seriesKey } from "../usage/series.ts";
import type { ExportContext } from "./export-context.ts";
import { openFilterCheck } from "./filter-check.ts";
import { syncKeyList } from "./key-list.ts";
import { requestDeps } from "./request-deps.ts";

/** How often a run says that it is alive: a third of the time after which it is taken for interrupted. */
const HEARTBEAT_MS = 20_000;

/** Runs a job's plan now and records the run, whatever becomes of it. */
export async function runExportJob(
  context: ExportContext,
  job: ExportJob,
  trigger: RunTrigger,
  plan: ExportPlan,
  reportProgress: (counts: RunCounts) => void = () => {},
): Promise<ExportResult> {
  const { app, config, db, ids } = context;
  const log = app.log.child({ job: job.name });
  const { requests, runDay, due } = plan;
  const series = [...new Map(requests.map((request) => [seriesKey(request.series), request.series])).values()];
  // In this order: a run that ends in between has not hidden a night that was missed.
  if (due) {
    const seriesIds = series.map((one) => seriesIdOf(ids, one));
    await markDue(db, seriesIds, due);
  }
  if (isUpToDate(plan)) {
    const next = nextDueOf(series, ids, config.exports, await databaseNow(db));
    await inTransaction(db, (tx) => markNextDue(tx, next));
  }

  const runId = randomUUID();
  await startRun(db, { runId, kind: "export", job: job.name, trigger });
  log.info({ runId, requests: requests.length }, "export started");
  const heartbeat = setInterval(() => heartbeatRun(db, runId).catch(() => {}), HEARTBEAT_MS);
  let done = NO_COUNTS;
  let remembered: Promise<void> | undefined;
  const onProgress = (counts: RunCounts) => {
    done = pickCounts(counts);
    reportProgress(counts);
  };
  try {
    const settings = {
      runId,
      policy: job,
      check: openFilterCheck(context),
      idOf: ({ series }: UsageRequest) => seriesIdOf(ids, series),
      log: log.child({ runId }),
    };
    const deps = {
      ...requestDeps(context, settings),
      onProgress,
      onAnswered: (failed: readonly UsageRequest[]) => {
        // Who answered nothing would not list keys.
        const silent = new Set(failed);
        const answered = requests.filter((request) => !silent.has(request));
        remembered = syncKeyList(
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
