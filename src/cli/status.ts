// The command `status`: prints the health state, the clocks, and windows that should be changed.

import type { App } from "../app.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { withDatabase } from "../database.ts";
import type { CallPause } from "../db/calling-processes.ts";
import type { Database } from "../db/connection/database.ts";
import { type RotationRow, rotationStatus } from "../db/keys/status.ts";
import type { StoredList } from "../db/projects.ts";
import { type UndatedSeries, undatedSeries, worstProjects } from "../facts/completeness.ts";
import type { Condition } from "../facts/conditions.ts";
import { type HealthState, isWell, queueTotals, health as readHealth } from "../facts/health.ts";
import type { WorkerHealth } from "../facts/health-facts.ts";
import type { JobHealth, LastRun } from "../facts/job-health.ts";
import { type Clocks, clockWarning, compareClocks } from "../jobs/clocks.ts";
import { deliveryWarnings } from "../jobs/delivered-files.ts";
import { withKnownProjects } from "../jobs/discover.ts";
import { budgetTitle, budgetUseText } from "../show/budget-text.ts";
import { counted, instantText } from "../show/format.ts";
import { firstOf } from "../text.ts";
import { seriesText } from "../usage/series.ts";
import { jobTitle, renderPause } from "./jobs.ts";
import { pick } from "./output.ts";
import { gapLines, runStatusOfProjects, type StatusOptions, worstProjectLines } from "./status-projects.ts";
import { adviseWindows, type JobAdvice, renderAdvice } from "./window-advice.ts";

type Status = {
  readonly health: HealthState;
  readonly clocks: Clocks;
  /** Series whose answers carry no dates, so that their days are neither complete nor missing. */
  readonly undated: readonly UndatedSeries[];
  /** Exports whose window should be changed. */
  readonly windows: readonly JobAdvice[];
};

/** Exit status 1 while there is any fault, so that a script need not read the answer. */
export async function runStatus(app: App, options: StatusOptions): Promise<number> {
  if (options.project) return runStatusOfProjects(app, options.project, options);
  const written = await loadConfig(app.configPath);
  const status = await withDatabase(app, async (db): Promise<Status> => {
    const config = await withKnownProjects(written, db);
    const health = await readStatusHealth(app, db, config);
    // While calls are paused, the service is not asked for its time.
    const clocks = await compareClocks(app, config, db, health.callPauses.length === 0);
    const [undated, windows] = [await undatedSeries(db), await adviseWindows(db, config.exports)];
    return { health, clocks, undated, windows };
  });
  app.write(options.json ? `${JSON.stringify(statusJson(status))}\n` : renderStatus(status));
  return isWell(status.health) ? 0 : 1;
}

/** The health state with what only this machine knows: whether the key files are as they were delivered. */
export async function readStatusHealth(app: App, db: Database, config: Config): Promise<HealthState> {
  const deliveries = await deliveryWarnings(app, db, config);
  const rotationWarnings = [...deliveries].flatMap(([rotation, texts]) => texts.map((text) => ({ rotation, text })));
  return readHealth(db, config, { rotationWarnings });
}

const JOB_FIELDS = [
  ...(["kind", "job", "projects", "schedule", "timezone", "nextRun", "lastRun", "failedRun", "paused"] as const),
  ...(["needsWorker", "overdueSince"] as const),
];

const CONDITION_FIELDS = ["name", "subject", "severity", "isWrong", "since", "text"] as const;

/** Scripts read these fields. */
function statusJson({ health, undated, clocks, windows }: Status) {
  const { readAt, callPauses, workers, slices, causes, gaps, gapsLeftOut, queue, budgets } = health;
  return {
    readAt,
    callPauses,
    jobs: health.jobs.map((job) => pick(job, JOB_FIELDS)),
    workers,
    slices,
    causes,
    projectLists: health.lists,
    budgets,
    rotations: health.rotations.map(rotationStatus),
    ...{ gaps, gapsLeftOut },
    projects: worstProjects(health.projects),
    ...{ undated, queue, clocks, windows },
    // The exit status is 1 while one of them is wrong.
    conditions: health.conditions.map((one) => pick(one, CONDITION_FIELDS)),
  };
}

const UNDATED_SHOWN_MAX = 20;
const WORKERS_SHOWN_MAX = 10;
const PAUSES_SHOWN_MAX = 5;

function renderStatus({ health, undated, clocks, windows }: Status): string {
  const texts = (part: (one: Condition) => boolean) => health.conditions.filter(part).map(({ text }) => text);
  const { jobs, workers, slices, rotations, queue, callPauses } = health;
  const warning = clockWarning(clocks);
  const queued = queueTotals(queue).flatMap(({ jobs, text }) => (jobs > 0 ? [text] : []));
  const lines = [
    ...(isWell(health)
      ? [wellText(health)]
      : titled(
          "not well:",
          texts(({ isWrong }) => isWrong),
        )),
    ...titled(
      "reminders:",
      texts(({ isWrong }) => !isWrong),
    ),
    ...jobs.flatMap(jobLines),
    ...workerLines(workers),
    ...firstOf(callPauses.map(pauseText), PAUSES_SHOWN_MAX, (more) => `and with ${counted(more, "more key")}`),
    ...(warning ? [`warning: ${warning}`] : []),
    ...windows.map((advice) => `window of ${advice.job}: ${renderAdvice(advice)}`),
    `slices: ${slices.complete} complete, ${slices.suspect} suspect, ${slices.failed} failed, ${slices.missing} missing`,
    ...worstProjectLines(health.projects),
    ...gapLines(health),
    ...health.lists.map(listText),
    ...firstOf(undated.map(renderUndated), UNDATED_SHOWN_MAX, (more) => `undated: ${more} more series`),
    ...health.budgets
      .filter(({ isOver }) => !isOver)
      .map((budget) => `budget ${budgetTitle(budget)}: ${budgetUseText(budget)}`),
    ...(queued.length > 0 ? [`queue: ${queued.join(", ")}`] : []),
    ...rotations.flatMap(({ rotation, configured, projects, apiKeyId, ageDays, keys }) => {
      if (projects !== undefined) {
        if (!configured && !hasKeys(keys)) return [];
        return [
          `rotation ${rotation}: ${counted(keys.active, "key")} of ${projects} projects, ${ageDays ?? 0} days old at most${configured ? "" : otherKeysText(keys)}`,
        ];
      }
      return apiKeyId === null ? [] : [`rotation ${rotation}: key ${apiKeyId}, ${ageDays} days old`];
    }),
  ];
  return `${lines.join("\n")}\n`;
}

/** Another scheduler may run the exports. If none has, the jobs wait for a worker. */
function wellText({ jobs, workers }: HealthState): string {
  const isIdle = workers.length === 0 && jobs.some(({ paused, lastRun }) => !paused && !lastRun);
  return isIdle ? "all is well so far, but nothing will run: no worker was ever started" : "all is well";
}

function hasKeys({ pending, active, draining, orphan }: RotationRow["keys"]): boolean {
  return pending + active + draining + orphan > 0;
}

/** Those that are not in use, of a rotation of projects that are gone: nothing renews or deletes them. */
function otherKeysText({ pending, draining, orphan }: RotationRow["keys"]): string {
  const counts = Object.entries({ pending, draining, orphan }).filter(([, count]) => count > 0);
  return counts.map(([state, count]) => `, ${count} ${state}`).join("");
}

/** A pause of all calls has no key. */
function pauseText({ key, until }: CallPause): string {
  const calls = key === "" ? "calls to the service" : `calls with the key of ${key}`;
  return `${calls} are paused until ${instantText(until)}, as the service asked`;
}

/** "projects of env ACCOUNT_KEY: 120, 3 gone in the last 7 days, listed 2026-11-22 02:15 UTC" */
function listText({ list, projects, vanished, readAt }: StoredList): string {
  const gone = vanished > 0 ? `, ${vanished} gone in the last 7 days` : "";
  return `projects of ${list}: ${projects}${gone}, ${readAt ? `listed ${instantText(readAt)}` : "never listed"}`;
}

function titled(title: string, texts: readonly string[]): readonly string[] {
  return texts.length === 0 ? [] : [title, ...texts.map((text) => `  ${text}`)];
}

function jobLines({ nextRun, lastRun, paused, overdueSince, ...job }: JobHealth): string[] {
  return [
    jobTitle(job),
    `  last run: ${lastRun ? renderRun(lastRun) : "never"}`,
    `  ${paused ? renderPause(paused) : `next run: ${nextRun ? instantText(nextRun) : "none"}`}`,
    ...(overdueSince ? [`  overdue since ${instantText(overdueSince)}: no worker has taken it up`] : []),
  ];
}

/** Stopped workers are shown only if no worker runs. */
function workerLines(workers: readonly WorkerHealth[]): readonly string[] {
  const shown = workers.filter(({ state }) => state !== "stopped");
  if (shown.length === 0) {
    const [last] = workers;
    const who = last ? `none runs; the last one was ${renderWorker(last)}` : "none was ever seen";
    return [`workers: ${who}; nothing runs by itself until one is started with usage-export start`];
  }
  const texts = shown.map((worker) => `  ${renderWorker(worker)}`);
  return [
    `workers: ${shown.filter(({ state }) => state === "live").length} live`,
    ...firstOf(texts, WORKERS_SHOWN_MAX, (more) => `  and ${more} more`),
  ];
}

function renderWorker({ host, pid, version, startedAt, lastSeenAt, state }: WorkerHealth): string {
  const since = { live: "last seen", silent: "silent since", stopped: "stopped" }[state];
  return `${host} pid ${pid}, version ${version}, started ${instantText(startedAt)}, ${since} ${instantText(lastSeenAt)}`;
}

function renderRun({ status, startedAt, trigger, error, skippedSince }: LastRun): string {
  const skipped = skippedSince > 0 ? `, ${counted(skippedSince, "scheduled time")} skipped since` : "";
  return `${status}, ${instantText(startedAt)}, ${trigger}${skipped}${error === null ? "" : `: ${error}`}`;
}

function renderUndated({ snapshots, takenAt, ...series }: UndatedSeries): string {
  return `undated: ${seriesText(series)}: ${counted(snapshots, "snapshot")}, the newest of ${instantText(takenAt)}; the answers carry no date, see bi.usage_snapshot`;
}
