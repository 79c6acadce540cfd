// Runs an export job in this process and records the run.

import { randomUUID } from "node:crypto";
import { databaseNow } from "../db/connection/database.ts";
import { inTransaction } from "../db/connection/transaction.ts";
import { endedRequest, requestRecorder } from "../db/jobs/run-requests.ts";
import { finishRun, heartbeatRun, startRun } from "../db/jobs/runs.ts";
import { markDue, markNextDue, seriesIdOf } from "../db/usage/series.ts";
import { errorText } from "../errors.ts";
import { nextDueOf } from "../schedule/due.ts";
import {
  type ExportDeps,
  type ExportResult,
  exportUsage,
  NO_COUNTS,
  pickCounts,
  type RunCounts,
  type RunTrigger,
} from "../usage/export.ts";
import { type ExportJob, type ExportPlan, readsEverythingDue, type UsageRequest } from "../usage/plan.ts";
import { seriesKey } from "../usage/series.ts";
import type { ExportContext } from "./export-context.ts";
import { FilterCheck } from "./filter-check.ts";
import { judgeDays } from "./judge-days.ts";
import { readProjectFacts } from "./project-facts.ts";
import { requestDeps } from "./request-deps.ts";

/** A third of the time after which a run without a heartbeat counts as interrupted. */
const HEARTBEAT_MS = 20_000;

/** Makes the requests of the plan now and records the run, however it ends. */
export async function runExportJob(
  context: ExportContext,
  job: ExportJob,
  trigger: RunTrigger,
  plan: ExportPlan,
  reportProgress: (counts: RunCounts) => void = () => {},
): Promise<ExportResult> {
  const { app, db } = context;
  await markPlannedDue(context, plan);
  const runId = randomUUID();
  const log = app.log.child({ job: job.name, runId });
  let counts = NO_COUNTS;
  let factsRead: Promise<void> | undefined;
  const idOf = ({ series }: UsageRequest) => seriesIdOf(context.ids, series);
  const recorder = requestRecorder(db, runId);
  const deps: ExportDeps = {
    ...requestDeps(context, { runId, policy: job, check: new FilterCheck(context), idOf, log }),
    onOutcome(request, outcome) {
      const hidden = "reason" in outcome ? { ...outcome, reason: app.scrubber.scrub(outcome.reason) } : outcome;
      recorder.add(endedRequest(request, hidden, idOf(request)));
    },
    onProgress(progress) {
      counts = progress;
      reportProgress(progress);
    },
    onAnswered(failed) {
      // A project whose requests all failed would not answer anything else either.
      const silent = new Set(failed);
      const answered = plan.requests.filter((request) => !silent.has(request));
      const projects = answered.map((request) => request.series.project);
      factsRead = readProjectFacts(context, projects, job.source);
    },
  };

  await startRun(db, { runId, kind: "export", job: job.name, trigger });
  log.info({ requests: plan.requests.length }, "export started");
  const heartbeat = setInterval(() => heartbeatRun(db, runId).catch(() => {}), HEARTBEAT_MS);
  try {
    const result = await exportUsage(plan, deps, app.signal);
    const status = result.failed + result.suspect === 0 ? "ok" : "failed";
    await recorder.flush();
    await finishRun(db, runId, status, result, result.failures[0]?.reason);
    await judgeDays(context);
    // On a terminal the command itself prints what failed.
    log[status === "ok" || app.terminal ? "info" : "warn"](pickCounts(result), "export finished");
    return result;
  } catch (error) {
    const status = app.signal.aborted ? "stopped" : "failed";
    // If the database is lost, this fails, too, and the missing heartbeat shows that the run was interrupted.
    await recorder.flush().catch(() => {});
    await finishRun(db, runId, status, counts, app.scrubber.scrub(errorText(error))).catch(() => {});
    throw error;
  } finally {
    clearInterval(heartbeat);
    await factsRead;
  }
}

/** Marks the planned days as due before it stores the next due time: if the process ends in between, the days still show as missing. */
async function markPlannedDue({ db, ids, config }: ExportContext, plan: ExportPlan): Promise<void> {
  const series = [...new Map(plan.requests.map((request) => [seriesKey(request.series), request.series])).values()];
  if (plan.due) {
    const seriesIds = series.map((one) => seriesIdOf(ids, one));
    await markDue(db, seriesIds, plan.due);
  }
  if (readsEverythingDue(plan)) {
    const next = nextDueOf(series, ids, config.exports, await databaseNow(db));
    await inTransaction(db, (tx) => markNextDue(tx, next));
  }
}
