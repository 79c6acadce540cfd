// The command `status`: prints the health state; with --project what is missing of some projects.

import type { App } from "../app.ts";
import { loadConfig } from "../config/config.ts";
import { requireKnown } from "../config/messages.ts";
import { matchesPattern } from "../config/projects.ts";
import { withDatabase } from "../database.ts";
import type { CallPause } from "../db/calling-processes.ts";
import { runOn } from "../db/connection/transaction.ts";
import { type RotationRow, rotationStatus } from "../db/keys/status.ts";
import type { StoredList } from "../db/projects.ts";
import { type GapGroup, groupGaps, type ProjectHealth, worstProjects } from "../facts/completeness.ts";
import type { Condition } from "../facts/conditions.ts";
import { undatedSeries } from "../facts/coverage.ts";
import { type HealthState, isWell, queueTotals, health as readHealth } from "../facts/health.ts";
import type { WorkerHealth } from "../facts/health-facts.ts";
import type { JobHealth, LastRun } from "../facts/job-health.ts";
import { withKnownProjects } from "../jobs/discovery.ts";
import { budgetTitle, budgetUseText } from "../show/budget-text.ts";
import { counted, instantText, windowText } from "../show/format.ts";
import { firstOf } from "../text.ts";
import { type SeriesName, seriesText } from "../usage/series.ts";
import { jobTitle, renderPause } from "./jobs.ts";
import { pick } from "./output.ts";

type Status = {
  readonly health: HealthState;
  /** Series whose answers carry no dates, so that their days are neither complete nor missing. */
  readonly undated: readonly SeriesName[];
};

/** Exit status 1 while there is any fault, so that a script need not read the answer. */
export async function runStatus(app: App, options: StatusOptions): Promise<number> {
  if (options.project) return runStatusOfProjects(app, options.project, options);
  const written = await loadConfig(app.configPath);
  const status = await withDatabase(app, async (db): Promise<Status> => {
    const config = await withKnownProjects(written, db);
    const health = await readHealth(db, config);
    return { health, undated: await undatedSeries(runOn(db), undefined) };
  });
  app.write(options.json ? `${JSON.stringify(statusJson(status))}\n` : renderStatus(status));
  return isWell(status.health) ? 0 : 1;
}

const JOB_FIELDS = [
  ...(["kind", "job", "projects", "schedule", "timezone", "nextRun", "lastRun", "failedRun", "paused"] as const),
  ...(["needsWorker", "overdueSince"] as const),
];

const CONDITION_FIELDS = ["name", "subject", "severity", "isWrong", "since", "text"] as const;

/** Scripts read these fields. */
function statusJson({ health, undated }: Status) {
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
    ...{ undated, queue },
    // The exit status is 1 while one of them is wrong.
    conditions: health.conditions.map((one) => pick(one, CONDITION_FIELDS)),
  };
}

const UNDATED_SHOWN_MAX = 20;
const WORKERS_SHOWN_MAX = 10;
const PAUSES_SHOWN_MAX = 5;

function renderStatus({ health, undated }: Status): string {
  const texts = (part: (one: Condition) => boolean) => health.conditions.filter(part).map(({ text }) => text);
  const { jobs, workers, slices, rotations, queue, callPauses } = health;
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

/** "projects of env ACCOUNT_KEY: 120, listed 2026-11-22 02:15 UTC" */
function listText({ list, projects, readAt }: StoredList): string {
  return `projects of ${list}: ${projects}, ${readAt ? `listed ${instantText(readAt)}` : "never listed"}`;
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

function renderRun({ status, startedAt, trigger, error }: LastRun): string {
  return `${status}, ${instantText(startedAt)}, ${trigger}${error === null ? "" : `: ${error}`}`;
}

function renderUndated(series: SeriesName): string {
  return `undated: ${seriesText(series)}: the answers carry no date, see bi.usage_snapshot`;
}

const WORST_SHOWN = 10;
const FOUND_SHOWN_MAX = 50;

/** The projects that have days that are not complete; nothing of a single project, of which the rest of the answer is. */
export function worstProjectLines(projects: readonly ProjectHealth[]): readonly string[] {
  const incomplete = projects.filter(isIncomplete);
  // Usage and billing of a project are two.
  const countOf = (some: readonly ProjectHealth[]) => new Set(some.map(({ project }) => project)).size;
  if (countOf(projects) < 2 || incomplete.length === 0) return [];
  const lines = worstProjects(incomplete).map((one) => `  ${projectLine(one)}`);
  const rest = 'status --project NAME shows one of them, and "*" stands for any text';
  return [
    `projects: ${countOf(incomplete)} of ${countOf(projects)} have days that are not complete`,
    ...firstOf(lines, WORST_SHOWN, (more) => `  and ${more} more: ${rest}`),
  ];
}

function isIncomplete({ missing, failed, suspect }: ProjectHealth): boolean {
  return missing + failed + suspect > 0;
}

function projectLine({ project, source, series, complete, freshThrough, ...lacking }: ProjectHealth): string {
  const { missing, failed, suspect } = lacking;
  const counts = Object.entries({ missing, failed, suspect }).flatMap(([status, count]) =>
    count > 0 ? `${count} ${status}` : [],
  );
  const fresh = freshThrough === null ? "no day is due" : `nothing missing through ${freshThrough}`;
  return `${project}${source === "usage" ? "" : ` (${source})`}: ${counted(series, "series", "series")}, ${[`${complete} complete`, ...counts].join(", ")}; ${fresh}`;
}

export type StatusOptions = { readonly project?: readonly string[]; readonly json?: boolean };

/** Exit status 1 if a day of these projects is not complete. */
export async function runStatusOfProjects(
  app: App,
  patterns: readonly string[],
  { json }: StatusOptions,
): Promise<number> {
  const config = await loadConfig(app.configPath);
  const isAsked = (project: string) => patterns.some((pattern) => matchesPattern(pattern, project));
  const health = await withDatabase(app, async (db) =>
    readHealth(db, await withKnownProjects(config, db), { isShown: isAsked }),
  );
  const names = [...new Set(health.projects.map(({ project }) => project))];
  const unknown = patterns.filter((pattern) => !names.some((name) => matchesPattern(pattern, name)));
  requireKnown("--project", unknown, names, (name) => `no project that is read or was read is called ${name}`);
  const projects = worstProjects(health.projects.filter(({ project }) => isAsked(project)));
  app.write(json ? `${JSON.stringify(answerJson(health, projects))}\n` : answerText(health, projects));
  return projects.some(isIncomplete) ? 1 : 0;
}

function answerJson({ readAt, gaps, gapsLeftOut }: HealthState, projects: readonly ProjectHealth[]) {
  return { readAt, projects, gaps, gapsLeftOut };
}

function answerText(health: HealthState, projects: readonly ProjectHealth[]): string {
  const rest = (more: number) => `and ${more} more that have fewer days that are not complete`;
  const lines = [...firstOf(projects.map(projectLine), FOUND_SHOWN_MAX, rest), ...gapLines(health)];
  return `${lines.join("\n")}\n`;
}

// The gaps as lines of text, the newest first.

const GAPS_SHOWN_MAX = 20;
const SERIES_SHOWN_MAX = 3;

export function gapLines({ gaps, gapsLeftOut }: Pick<HealthState, "gaps" | "gapsLeftOut">): readonly string[] {
  const groups = groupGaps(gaps);
  const more = Math.max(groups.length - GAPS_SHOWN_MAX, 0) + gapsLeftOut;
  return [
    ...groups.slice(0, GAPS_SHOWN_MAX).map(renderGap),
    ...(more > 0 ? [`  and ${more} more: see bi.coverage_gaps`] : []),
  ];
}

function renderGap({ status, series, from, to, error }: GapGroup): string {
  const names = firstOf(series.map(seriesText), SERIES_SHOWN_MAX, (more) => `and ${more} more series`);
  const days = windowText({ start: from, end: to });
  return `  ${status}: ${names.join(", ")}, ${days}${error === null ? "" : `: ${error}`}`;
}
