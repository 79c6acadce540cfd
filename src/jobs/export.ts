// Makes the requests of a run, project by project, and records what each project did. A command makes all requests of a run, a worker those
// of the projects that it has claimed.

import { randomUUID } from "node:crypto";
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
import type { Secret } from "../secret.ts";
import { hasStatus } from "../service/answer.ts";
import { listKeys } from "../service/keys.ts";
import { fetchBalances, fetchBilledFields } from "../service/projects.ts";
import type { Service } from "../service/service.ts";
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
import { type RunOutcome, recordedRun } from "./recorded-run.ts";
import { type FailedRequest, makeRequest, type RequestRun } from "./request.ts";

/** How many projects a process works on at once: while a few wait because of their keys, others go on. */
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
export type RequestReason = { readonly request: UsageRequest; readonly reason: string };

/**
 * Makes the requests of one project. A failed request is recorded on its slices and counted, and the others are made all the same. If the
 * program stops, returns what was done until then. `allowed` is what the key may read; undefined if all requests failed. Throws if the
 * database is lost.
 */
export async function exportProject(
  context: ExportContext,
  project: ProjectRun,
): Promise<ExportResult & { readonly allowed: Source | undefined }> {
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
  const run = { runId, job, runDay: plan.runDay, log };
  const results: ExportResult[] = [];
  const exportOne = async ([projectId, requests]: [string, UsageRequest[]]) => {
    const result = await exportProject(context, { ...run, requests, onCounted });
    results.push(result);
    const { allowed, failures } = result;
    const error = failures[0] && app.scrubber.scrub(failures[0].reason);
    await writer.endProject({ runId, projectId, counts: result, error, allowed });
    const project = requests[0]?.series.project;
    if (project && allowed && !app.signal.aborted) await readProjectFacts(context, project, allowed);
  };
  const recorded = { runId, kind: "export", job: job.name, trigger } as const;
  const result = await recordedRun(context, recorded, planned, async () => {
    await inParallel([...projects], PROJECTS_AT_ONCE, exportOne, () => app.signal.aborted);
    const counts = results.reduce<RunCounts>(addCounts, NO_COUNTS);
    if (counts.requests < plan.requests.length) app.signal.throwIfAborted();
    const failures = results.flatMap((one) => one.failures);
    const doubts = results.flatMap((one) => one.doubts);
    const status: RunOutcome["status"] = counts.failed + counts.suspect === 0 ? "ok" : "failed";
    return { ...counts, failures, doubts, status, error: failures[0]?.reason };
  });
  await judgeDays(context);
  // On a terminal the command itself prints what failed.
  log[result.status === "ok" || app.terminal ? "info" : "warn"](pickCounts(result), "export finished");
  return result;
}

/** By seriesKey, the due days of the job that need another reading and that `isWanted` accepts. */
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

/** Long enough for an answer. If the service asks for a longer wait (Retry-After), the reading is skipped: it is not worth one. */
const READING_MS_MAX = 10_000;

/**
 * Reads what a project has beside its numbers, once a run: its list of API keys, so that a deleted key keeps its comment and tags. A run of
 * billing also reads its balances and the names of its line items: the key of usage alone may lack the scope. Never throws: the run has
 * succeeded without it.
 */
export async function readProjectFacts(context: ExportContext, project: Project, source: Source): Promise<void> {
  const { app, db, service, keys } = context;
  const log = app.log.child({ project: project.name });
  const signal = AbortSignal.any([app.signal, AbortSignal.timeout(READING_MS_MAX)]);
  type Fetch<T> = (service: Service, projectId: string, key: Secret, signal: AbortSignal) => Promise<T>;
  const read = async <T>(
    what: string,
    fetch: Fetch<T>,
    store: (answer: T) => Promise<void>,
    level: (error: unknown) => "debug" | "info" | "warn" = () => "debug",
  ) => {
    try {
      await store(await keys.use(project, (key) => fetch(service, project.id, key, signal)));
    } catch (error) {
      log[level(error)]({ reason: errorText(error) }, `${what} not read`);
    }
  };
  const readings = [
    read("list of keys", listKeys, async (listed) => {
      if (listed) await storeListedKeys(db, project.id, listed);
      else log.debug("the service does not list the project's keys");
    }),
  ];
  if (source === "billing") {
    readings.push(
      // The rest only adds names, but balances are numbers that a person asked for.
      read(
        "balances",
        fetchBalances,
        (balances) => storeBalances(db, project, balances),
        (error) => (hasStatus(error, [401, 403, 404]) ? "info" : "warn"),
      ),
      read("names of line items", fetchBilledFields, (fields) => storeLineItems(db, fields?.labels ?? [])),
    );
  }
  await Promise.all(readings);
}

/**
 * Judges the days that were read first or became final, and logs the unusual ones. Throws only if the database can't be reached: no run
 * fails because its days could not be judged.
 */
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
