// Wires one run of an export job: the pipeline of usage/ to the service, the database and the log.

import { randomUUID } from "node:crypto";
import type { Config } from "../config/config.ts";
import { databaseNow } from "../db/database.ts";
import { finishRun, startRun, touchRun } from "../db/runs.ts";
import { idOf, markDue, markNextAlarm, registerSeries } from "../db/series.ts";
import { errorText } from "../errors.ts";
import { nextAlarm } from "../schedule/next-alarm.ts";
import { dayOf } from "../usage/day.ts";
import { type ExportResult, exportUsage, NOTHING_DONE, type RunCounts, type RunTrigger } from "../usage/export.ts";
import {
  configuredSeries,
  dueDays,
  type ExportJob,
  planExport,
  type Selection,
  seriesOf,
  type UsageRequest,
} from "../usage/plan.ts";
import { type ExportWorld, exportDeps } from "./export-deps.ts";
import { openFeatureCheck } from "./feature-check.ts";

/** What runs of the same process share. */
export type ExportContext = ExportWorld & {
  readonly config: Config;
  readonly onProgress?: (counts: RunCounts) => void;
};

/** How often a run says that it is alive: a third of the time after which it is taken for interrupted. */
const HEARTBEAT_MS = 20_000;

/** Runs a job now and records the run, whatever becomes of it. */
export async function runExportJob(
  context: ExportContext,
  job: ExportJob,
  trigger: RunTrigger,
  selection: Selection,
): Promise<ExportResult> {
  const { app, config, db } = context;
  const log = app.log.child({ job: job.name });
  // The database's clock is the one all replicas share.
  const today = dayOf(await databaseNow(db));
  const ids = await registerSeries(db, configuredSeries(config.exports));
  const requests = planExport(job, today, selection);
  const seriesIds = seriesOf(job, selection).map((series) => idOf(ids, series));
  await markNextAlarm(db, seriesIds, nextAlarm(job.schedule, job.timezone));
  const due = dueDays(job, today, selection);
  if (due) await markDue(db, seriesIds, due);

  const runId = randomUUID();
  await startRun(db, { runId, kind: "export", job: job.name, trigger });
  log.info({ runId, requests: requests.length }, "export started");
  const heartbeat = setInterval(() => touchRun(db, runId).catch(() => {}), HEARTBEAT_MS);
  let done = NOTHING_DONE;
  const onProgress = (counts: RunCounts) => {
    done = countsOf(counts);
    context.onProgress?.(counts);
  };
  try {
    const features = openFeatureCheck(context);
    await features.askFirst(requests, job.checkFeatures);
    const stored = { runId, idOf: ({ series }: UsageRequest) => idOf(ids, series), emptyGuard: job.emptyGuard };
    const deps = {
      ...exportDeps(context, stored),
      refuse: (request: UsageRequest) => features.refusalOf(request, job.checkFeatures),
      log: log.child({ runId }),
      onProgress,
    };
    const run = { requests, runDay: today, concurrency: config.service.maxConcurrent };
    const result = await exportUsage(run, deps, app.signal);
    const status = result.failed + result.suspect === 0 ? "ok" : "failed";
    await finishRun(db, runId, status, result, result.failures[0]?.reason);
    log.info({ runId, ...countsOf(result) }, "export finished");
    return result;
  } catch (error) {
    const status = app.signal.aborted ? "stopped" : "failed";
    // Where the database is what failed, this fails too, and the heartbeat's end tells.
    await finishRun(db, runId, status, done, app.scrubber.scrub(errorText(error))).catch(() => {});
    throw error;
  } finally {
    clearInterval(heartbeat);
  }
}

export function countsOf({ requests, planned, complete, suspect, failed, rowsChanged }: RunCounts): RunCounts {
  return { requests, planned, complete, suspect, failed, rowsChanged };
}
