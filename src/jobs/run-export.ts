// Makes the requests of a run, project by project, and records what each project did. A command makes all of a run, a worker the
// projects that it has claimed.

import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { databaseNow } from "../db/connection/database.ts";
import { endProjects, finishRun, heartbeatRun, startRun } from "../db/jobs/runs.ts";
import { markDue, seriesIdOf } from "../db/usage/series.ts";
import { errorText } from "../errors.ts";
import { nextRunAt } from "../schedule/due.ts";
import { addDays, type Day } from "../usage/days.ts";
import {
  addCounts,
  type ExportResult,
  exportUsage,
  NO_COUNTS,
  pickCounts,
  type RunCounts,
  type RunTrigger,
} from "../usage/export.ts";
import { type ExportJob, type ExportPlan, requestsAtOnce, totalSliceCount, type UsageRequest } from "../usage/plan.ts";
import type { ExportContext } from "./export-context.ts";
import { FilterCheck } from "./filter-check.ts";
import { judgeDays } from "./judge-days.ts";
import { readProjectFacts } from "./project-facts.ts";
import { requestDeps } from "./request-deps.ts";

/** A third of the time after which a run without a heartbeat counts as interrupted. */
const HEARTBEAT_MS = 20_000;
/** How many projects a process has in hand: so many wait for their keys before others have to. */
export const PROJECTS_AT_ONCE = 32;

export type ProjectRun = {
  readonly runId: string;
  readonly job: ExportJob;
  readonly requests: readonly UsageRequest[];
  readonly runDay: Day;
  readonly log: Logger;
  readonly check: FilterCheck;
  readonly stopStarting?: AbortSignal;
  /** Whether a request that fails for this reason is tried again by the same run. */
  readonly isRetried?: (code: string) => boolean;
  readonly onCounted?: (added: RunCounts) => void;
};

/** Makes the requests of one project. */
export async function exportProject(context: ExportContext, project: ProjectRun): Promise<ExportResult> {
  const { app, ids, config } = context;
  const { runId, job, requests, runDay, log, check, stopStarting, isRetried, onCounted } = project;
  const { maxConcurrent } = config.service;
  const idOf = ({ series }: UsageRequest) => seriesIdOf(ids, series);
  const deps = requestDeps(context, { runId, policy: job, check, idOf, log, ...(isRetried && { isRetried }) });
  const concurrency = requestsAtOnce({ maxConcurrent, projects: config.projects.length });
  const run = { requests, runDay, concurrency, ...(stopStarting && { stopStarting }) };
  return exportUsage(run, { ...deps, ...(onCounted && { onCounted }) }, app.signal);
}

/** Makes the requests of the plan now and records the run, however it ends. */
export async function runExportJob(
  context: ExportContext,
  job: ExportJob,
  trigger: RunTrigger,
  plan: ExportPlan,
  reportProgress: (counts: RunCounts) => void = () => {},
): Promise<ExportResult> {
  const { app, db } = context;
  await markPlannedDue(context, job, plan);
  const runId = randomUUID();
  const log = app.log.child({ job: job.name, runId });
  const projects = Map.groupBy(plan.requests, ({ series }) => series.project.id);
  const planned = [...projects].map(([projectId, requests]) => ({ projectId, planned: totalSliceCount(requests) }));
  await startRun(db, { runId, kind: "export", job: job.name, trigger }, planned);
  log.info({ requests: plan.requests.length }, "export started");
  const heartbeat = setInterval(() => heartbeatRun(db, runId).catch(() => {}), HEARTBEAT_MS);
  const progress = new Map<string, RunCounts>(
    planned.map((one) => [one.projectId, { ...NO_COUNTS, planned: one.planned }]),
  );
  let total: RunCounts = { ...NO_COUNTS, planned: totalSliceCount(plan.requests) };
  const shared = { runId, job, runDay: plan.runDay, log, check: new FilterCheck(context) };
  try {
    const results = await inParallel([...projects], PROJECTS_AT_ONCE, async ([projectId, requests]) => {
      const onCounted = (added: RunCounts) => {
        progress.set(projectId, addCounts(progress.get(projectId) ?? NO_COUNTS, added));
        total = addCounts(total, added);
        reportProgress(total);
      };
      const result = await exportProject(context, { ...shared, requests, onCounted });
      const allowed = result.failures.length < result.requests ? job.source : undefined;
      await context.writer.endProject({ runId, projectId, counts: result, error: scrubbed(app, result), allowed });
      return result;
    });
    const result = {
      ...total,
      failures: results.flatMap(({ failures }) => failures),
      doubts: results.flatMap(({ doubts }) => doubts),
    };
    const status = result.failed + result.suspect === 0 ? "ok" : "failed";
    await finishRun(db, runId, status, scrubbed(app, result));
    const refused = new Set(
      results
        .flatMap((one) => (one.failures.length === one.requests ? one.failures : []))
        .map(({ request }) => request.series.project.id),
    );
    // A project whose requests all failed would not answer anything else either.
    await readProjectFacts(
      context,
      job.projects.filter(({ id }) => projects.has(id) && !refused.has(id)),
      job.source,
    );
    await judgeDays(context);
    // On a terminal the command itself prints what failed.
    log[status === "ok" || app.terminal ? "info" : "warn"](pickCounts(result), "export finished");
    return result;
  } catch (error) {
    const status = app.signal.aborted ? "stopped" : "failed";
    // If the database is lost, this fails, too, and the missing heartbeat shows that the run was interrupted.
    await endUnfinished(context, runId, progress).catch(() => {});
    await finishRun(db, runId, status, app.scrubber.scrub(errorText(error))).catch(() => {});
    throw error;
  } finally {
    clearInterval(heartbeat);
  }
}

/** What the projects had done when the run was stopped. */
async function endUnfinished(
  { db }: ExportContext,
  runId: string,
  progress: ReadonlyMap<string, RunCounts>,
): Promise<void> {
  await endProjects(
    db,
    [...progress].map(([projectId, counts]) => ({ runId, projectId, counts })),
  );
}

function scrubbed({ scrubber }: ExportContext["app"], { failures }: ExportResult): string | undefined {
  const [first] = failures;
  return first && scrubber.scrub(first.reason);
}

/** All that were begun have ended when this function does. After an error no other is begun. */
async function inParallel<In, Out>(
  all: readonly In[],
  atOnce: number,
  work: (one: In) => Promise<Out>,
): Promise<Out[]> {
  const waiting = all.values();
  const outs: Out[] = [];
  let failed: { readonly error: unknown } | undefined;
  const next = async () => {
    for (let one = waiting.next(); !one.done && !failed; one = waiting.next()) {
      try {
        outs.push(await work(one.value));
      } catch (error) {
        failed ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, next));
  if (failed) throw failed.error;
  return outs;
}

/** Marks the planned days as due before the first request: if the process ends in between, the days still show as missing. */
async function markPlannedDue(
  { db, ids }: ExportContext,
  job: ExportJob,
  { requests, runDay, due }: ExportPlan,
): Promise<void> {
  const seriesIds = [...new Set(requests.map(({ series }) => seriesIdOf(ids, series)))];
  const newlyDue = due ?? (job.window ? undefined : { through: addDays(runDay, -1) });
  if (newlyDue) await markDue(db, seriesIds, { ...newlyDue, nextAt: nextRunAt(job, await databaseNow(db)) });
}
