// Makes the requests of a run, project by project, and records what each project did. A command makes all of a run, a worker the
// projects that it has claimed.

import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { inParallel } from "../async.ts";
import { judgePendingDays } from "../db/anomalies.ts";
import { databaseNow } from "../db/connection/database.ts";
import { isConnectionError } from "../db/connection/errors.ts";
import { storeBalances, storeLineItems, storeListedKeys } from "../db/project-facts.ts";
import { dueSlices } from "../db/usage/due-slices.ts";
import { markDue, seriesIdOf } from "../db/usage/stored-series.ts";
import type { StoredAnswer } from "../db/usage/writer.ts";
import { errorText } from "../errors.ts";
import { nextOccurrence } from "../schedule/cron.ts";
import { hasStatus } from "../service/answer.ts";
import { listKeys } from "../service/keys.ts";
import { fetchBalances, fetchBilledFields } from "../service/projects.ts";
import type { DueSlice } from "../usage/backfill.ts";
import { addCounts, NO_COUNTS, pickCounts, type RunCounts, type RunTrigger } from "../usage/counts.ts";
import { addDays } from "../usage/days.ts";
import type { Source } from "../usage/dimensions.ts";
import {
  type DaysToReread,
  type ExportJob,
  type ExportPlan,
  requestsAtOnce,
  seriesOf,
  sliceCount,
  totalSliceCount,
  type UsageRequest,
} from "../usage/plan.ts";
import { type Project, seriesKey } from "../usage/series.ts";
import type { ExportContext } from "./context.ts";
import { FilterCheck } from "./filters.ts";
import { recordedRun } from "./recorded-run.ts";
import { type FailedRequest, makeRequest, type RequestRun } from "./request.ts";

/** How many projects a process has in hand: so many wait for their keys before others have to. */
export const PROJECTS_AT_ONCE = 32;

export type ProjectRun = RequestRun & {
  readonly requests: readonly UsageRequest[];
  /** Once it is aborted, no further request is started. Requests that were started are completed. */
  readonly stopStarting?: AbortSignal;
  /** Called with what each request adds to the counts. */
  readonly onCounted?: (added: RunCounts) => void;
};

export type ExportResult = RunCounts & {
  readonly failures: readonly (FailedRequest & RequestReason)[];
  /** One for each suspect slice. */
  readonly doubts: readonly RequestReason[];
};
/** `allowed` is what the key may read. Undefined if all requests failed: the project would not answer anything else either. */
type ProjectResult = ExportResult & { readonly allowed: Source | undefined };
export type RequestReason = { readonly request: UsageRequest; readonly reason: string };

/**
 * Makes the requests of one project, each even if others fail, so that one broken filter does not keep the others from being read.
 * Failures are recorded on their slices and counted. If the program stops, the result is what was made until then. Throws if the database is
 * lost.
 */
export async function exportProject(context: ExportContext, project: ProjectRun): Promise<ProjectResult> {
  const { signal } = context.app;
  const { requests, stopStarting, onCounted } = project;
  const shared = { ...project, check: new FilterCheck(context), fetchNo: await context.fetchNumbers() };
  const failures: ExportResult["failures"][number][] = [];
  const doubts: RequestReason[] = [];
  let counts: RunCounts = { ...NO_COUNTS, planned: totalSliceCount(requests) };
  const makeAndCount = async (request: UsageRequest) => {
    const outcome = await makeRequest(context, shared, request);
    if ("reason" in outcome) failures.push({ request, ...outcome });
    else for (const { doubt } of outcome.slices) if (doubt !== undefined) doubts.push({ request, reason: doubt });
    const added = countOutcome(request, outcome);
    counts = addCounts(counts, added);
    onCounted?.(added);
  };
  const isOver = () => signal.aborted || stopStarting?.aborted === true;
  const { service, projects } = context.config;
  const atOnce = requestsAtOnce(service.maxConcurrent, projects.length);
  await inParallel(requests, atOnce, makeAndCount, isOver).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  const allowed = failures.length < counts.requests ? project.job.source : undefined;
  return { ...counts, failures, doubts, allowed };
}

/** The counts that one request adds to its run, except `planned`, which is counted when the run begins. */
function countOutcome(request: UsageRequest, outcome: StoredAnswer | FailedRequest): RunCounts {
  if ("reason" in outcome) return { ...NO_COUNTS, requests: 1, failed: sliceCount(request) };
  const counts: Record<keyof RunCounts, number> = { ...NO_COUNTS, requests: 1, rowsChanged: outcome.rowsChanged };
  for (const { decision, undated } of outcome.slices) {
    if (decision === "suspect" || decision === "stale") counts[decision]++;
    else counts[undated ? "undated" : "complete"]++;
  }
  return counts;
}

/** Makes the requests of the plan now and records the run, however it ends. `onCounted` is called with what each request adds. */
export async function runExportJob(
  context: ExportContext,
  job: ExportJob,
  trigger: RunTrigger,
  plan: ExportPlan,
  onCounted: (added: RunCounts) => void = () => {},
): Promise<ExportResult> {
  const { app, writer } = context;
  await markPlannedDue(context, job, plan);
  const runId = randomUUID();
  const log = app.log.child({ job: job.name, runId });
  const projects = Map.groupBy(plan.requests, ({ series }) => series.project.id);
  const planned = [...projects].map(([projectId, requests]) => ({ projectId, planned: totalSliceCount(requests) }));
  log.info({ requests: plan.requests.length }, "export started");
  const shared = { runId, job, runDay: plan.runDay, log };
  const results: ExportResult[] = [];
  const exportOne = async ([projectId, requests]: [string, UsageRequest[]]) => {
    const result = await exportProject(context, { ...shared, requests, onCounted });
    results.push(result);
    const reason = result.failures[0]?.reason;
    const error = reason && app.scrubber.scrub(reason);
    const { allowed } = result;
    await writer.endProject({ runId, projectId, counts: result, error, allowed });
    const project = requests[0]?.series.project;
    if (project && allowed && !app.signal.aborted) await readProjectFacts(context, project, allowed);
  };
  const exportAll = async () => {
    await inParallel([...projects], PROJECTS_AT_ONCE, exportOne, () => app.signal.aborted);
    const made = {
      ...results.reduce<RunCounts>(addCounts, NO_COUNTS),
      failures: results.flatMap(({ failures }) => failures),
      doubts: results.flatMap(({ doubts }) => doubts),
    };
    if (made.requests < plan.requests.length) app.signal.throwIfAborted();
    return made;
  };
  const statusOf = ({ failed, suspect }: RunCounts) => (failed + suspect === 0 ? "ok" : "failed");
  const result = await recordedRun(
    context,
    { runId, kind: "export", job: job.name, trigger },
    planned,
    exportAll,
    (made) => ({ status: statusOf(made), error: made.failures[0]?.reason }),
  );
  await judgeDays(context);
  // On a terminal the command itself prints what failed.
  log[statusOf(result) === "ok" || app.terminal ? "info" : "warn"](pickCounts(result), "export finished");
  return result;
}

/** By seriesKey, the due days of the job that need another reading, except those that `isWanted` leaves out. */
export async function daysToReread(
  { db, ids }: Pick<ExportContext, "db" | "ids">,
  job: ExportJob,
  isWanted: (slice: DueSlice) => boolean = () => true,
): Promise<DaysToReread> {
  if (!job.window) return new Map();
  const keys = new Map(seriesOf(job).map((series) => [seriesIdOf(ids, series), seriesKey(series)]));
  const due = await dueSlices(db, [...keys.keys()]);
  return Map.groupBy(due.filter(isWanted), ({ seriesId }) => keys.get(seriesId) ?? "");
}

/** Marks the planned days as due before the first request: if the process ends in between, the days still show as missing. */
async function markPlannedDue(
  { db, ids }: ExportContext,
  job: ExportJob,
  { requests, runDay, due }: ExportPlan,
): Promise<void> {
  const seriesIds = [...new Set(requests.map(({ series }) => seriesIdOf(ids, series)))];
  const newlyDue = due ?? (job.window ? undefined : { through: addDays(runDay, -1) });
  if (newlyDue) await markDue(db, seriesIds, { ...newlyDue, nextAt: nextOccurrence(job, await databaseNow(db)) });
}

/** A key that reads usage may lack the scope for billing, so balances and line items are read in runs of billing only. */
const READINGS = { usage: [syncKeyList], billing: [syncKeyList, readBalances, readLineItems] } as const;

/** Long enough for an answer. If the service asks for a longer wait (Retry-After), the reading is skipped: it is not worth one. */
const READING_MS_MAX = 10_000;

/**
 * Reads what a project has beside its numbers, once a run: its list of API keys and, if the run is of billing, its balances and line items.
 * Never throws: the run has succeeded without it.
 */
export async function readProjectFacts(context: ExportContext, project: Project, source: Source): Promise<void> {
  const log = context.app.log.child({ project: project.name });
  const signal = AbortSignal.any([context.app.signal, AbortSignal.timeout(READING_MS_MAX)]);
  await Promise.all(READINGS[source].map((read) => read(context, project, log, signal)));
}

/** Stores the service's list of API keys, so that a deleted key keeps its comment and tags. */
async function syncKeyList({ db, service, keys }: ExportContext, project: Project, log: Logger, signal: AbortSignal) {
  try {
    const listed = await keys.use(project, (key) => listKeys(service, project.id, key, signal));
    if (listed) await storeListedKeys(db, project.id, listed);
    else log.debug("the service does not list the project's keys");
  } catch (error) {
    log.debug({ reason: errorText(error) }, "the project's keys were not listed");
  }
}

async function readBalances({ db, service, keys }: ExportContext, project: Project, log: Logger, signal: AbortSignal) {
  try {
    await storeBalances(db, project, await keys.use(project, (key) => fetchBalances(service, project.id, key, signal)));
  } catch (error) {
    const reason = errorText(error);
    if (hasStatus(error, [404])) log.info("the service does not offer balances");
    else if (hasStatus(error, [401, 403])) log.info({ reason }, "the key may not read balances");
    else log.warn({ reason }, "the balances were not read");
  }
}

async function readLineItems({ db, service, keys }: ExportContext, project: Project, log: Logger, signal: AbortSignal) {
  try {
    const fields = await keys.use(project, (key) => fetchBilledFields(service, project.id, key, signal));
    await storeLineItems(db, fields?.labels ?? []);
  } catch (error) {
    log.debug({ reason: errorText(error) }, "the names of line items were not read");
  }
}

/** Judges the days that were read first or became final, and logs the unusual ones. Never throws, except if the database can't be reached: no run fails because its days could not be judged. */
export async function judgeDays({ app, db, config }: Pick<ExportContext, "app" | "db" | "config">): Promise<void> {
  try {
    for (const { verdict, ...day } of await judgePendingDays(db, config.anomalies)) {
      if (verdict === "high" || verdict === "low") app.log.warn({ ...day, verdict }, "unusual usage");
    }
  } catch (error) {
    if (isConnectionError(error)) throw error;
    app.log.warn({ reason: errorText(error) }, "days not judged");
  }
}
