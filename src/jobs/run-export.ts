// Wires one run of an export job: the pipeline of usage/ to the service, the database and the log.

import { randomUUID } from "node:crypto";
import { fetchBreakdown, groupingName } from "../api/breakdown.ts";
import { fetchFields } from "../api/fields.ts";
import type { Service } from "../api/http.ts";
import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import { didYouMean } from "../config/near-miss.ts";
import { type Database, databaseNow } from "../db/database.ts";
import { recordFailure } from "../db/failures.ts";
import { mergeAnswer } from "../db/merge.ts";
import { finishRun, nextFetchNo, startRun, touchRun } from "../db/runs.ts";
import { idOf, markDue, markNextAlarm, registerSeries, type SeriesIds } from "../db/series.ts";
import { errorText } from "../errors.ts";
import { nextAlarm } from "../schedule/next-alarm.ts";
import { dayOf } from "../usage/day.ts";
import {
  type ExportDeps,
  type ExportResult,
  exportUsage,
  NOTHING_DONE,
  type RunCounts,
  type RunTrigger,
} from "../usage/export.ts";
import { unknownFeatures } from "../usage/features.ts";
import {
  configuredSeries,
  dueDays,
  type ExportJob,
  planExport,
  type Selection,
  seriesOf,
  type UsageRequest,
} from "../usage/plan.ts";
import type { Project } from "../usage/series.ts";
import type { KeyRing } from "./keys-in-use.ts";

/** What runs of the same process share. */
export type ExportContext = {
  readonly app: App;
  readonly config: Config;
  readonly db: Database;
  readonly service: Service;
  readonly keys: KeyRing;
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
    const refuse = await checkFeatures(context, job, requests);
    const deps = { ...exportDeps({ ...context, onProgress }, job, ids, runId), refuse, log: log.child({ runId }) };
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

function exportDeps(
  context: ExportContext,
  job: ExportJob,
  ids: SeriesIds,
  runId: string,
): Omit<ExportDeps, "log" | "refuse"> {
  const { app, db, service, keys, onProgress } = context;
  return {
    nextFetchNo: () => nextFetchNo(db),
    fetch: (request, signal) =>
      keys.use(request.series.project, (key) => fetchBreakdown(service, request, key, signal)),
    askedAs: ({ series }) => groupingName(series.grouping, service.dialect),
    store: (request, fetchNo, slices) =>
      mergeAnswer(db, {
        seriesId: idOf(ids, request.series),
        grouping: request.series.grouping,
        fetchNo,
        runId,
        slices,
        emptyGuard: job.emptyGuard,
        ownDays: request.window === undefined,
      }),
    fail: (request, fetchNo, days, reason) =>
      recordFailure(db, { seriesId: idOf(ids, request.series), days, fetchNo, reason: app.scrubber.scrub(reason) }),
    ...(onProgress && { onProgress }),
  };
}

/**
 * Asks each project which features it knows before anything else is asked: a name that is none would be answered with
 * numbers for another question. What can't be found out fails the requests that depend on it, and no others.
 */
async function checkFeatures(
  { app, service, keys }: ExportContext,
  job: ExportJob,
  requests: readonly UsageRequest[],
): Promise<ExportDeps["refuse"]> {
  const hasFeatures = ({ series: { filter } }: UsageRequest) => Object.keys(filter.features).length > 0;
  const projects = job.checkFeatures === "off" ? [] : requests.filter(hasFeatures).map(({ series }) => series.project);
  const once = new Map(projects.map((project) => [project.id, project]));
  const known = new Map([...once].map(([id, project]) => [id, knownFeatures(project)]));
  await Promise.allSettled(known.values());

  return async ({ series: { project, filter } }) => {
    const features = await known.get(project.id);
    const [unknown] = unknownFeatures(filter, features);
    if (unknown === undefined) return undefined;
    if (job.checkFeatures === "error") {
      return `the service knows no feature "${unknown}" in this project, and would answer with numbers for another question${didYouMean(unknown, features ?? [])}`;
    }
    app.log.warn({ project: project.name, filter: filter.name, feature: unknown }, "feature unknown to the service");
    return undefined;
  };

  async function knownFeatures(project: Project): Promise<readonly string[] | undefined> {
    const fields = await keys.use(project, (key) => fetchFields(service, project.id, key, app.signal));
    if (!fields?.features) {
      app.log.warn({ project: project.name }, "the service does not list its features: filters are not checked");
    }
    return fields?.features;
  }
}
