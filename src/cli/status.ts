// The command `status`: prints the health state or, with --project, which days of some projects are not complete.

import type { App } from "../app.ts";
import { loadConfig } from "../config/config.ts";
import { requireKnown } from "../config/messages.ts";
import { matchesPattern } from "../config/projects.ts";
import type { CallPause } from "../db/calling-processes.ts";
import { queryOn } from "../db/connection/transaction.ts";
import type { StoredWorker } from "../db/jobs/jobs.ts";
import type { Condition } from "../facts/conditions.ts";
import { type Gaps, newestGaps, type ProjectHealth, undatedSeries, worstFirst } from "../facts/coverage.ts";
import { type HealthState, isWell, health as readHealth } from "../facts/health.ts";
import type { JobHealth, LastRun } from "../facts/jobs.ts";
import { withKnownProjects } from "../jobs/discovery.ts";
import { withDatabase } from "../open-database.ts";
import { budgetTitle, counted, instantText, spentText, windowText } from "../show/format.ts";
import { firstOf, present } from "../text.ts";
import { type SeriesName, seriesText } from "../usage/series.ts";
import { jobTitle, renderPause } from "./jobs.ts";
import { writeAnswer } from "./output.ts";

export type StatusOptions = { readonly project?: readonly string[]; readonly json?: boolean };

/** Exit status 1 while something is wrong. With --project, 1 while a day of these projects is not complete. */
export async function runStatus(app: App, options: StatusOptions): Promise<number> {
  const { project: patterns } = options;
  const fileConfig = await loadConfig(app.configPath);
  const { health, names, gaps, undated } = await withDatabase(app, async (db) => {
    const health = await readHealth(db, await withKnownProjects(fileConfig, db));
    const names = patterns && projectNames(health, patterns);
    const gaps = await newestGaps(queryOn(db), names);
    return { health, names: names && new Set(names), gaps, undated: names ? [] : await undatedSeries(queryOn(db)) };
  });
  if (!names) {
    writeAnswer(app, options, statusJson(health, gaps, undated), () => renderStatus(health, gaps, undated));
    return isWell(health) ? 0 : 1;
  }
  const projects = worstFirst(health.projects.filter(({ project }) => names.has(project)));
  writeAnswer(app, options, { readAt: health.readAt, projects, ...gaps }, () => {
    const rest = (more: number) => `and ${more} more with fewer incomplete days`;
    return linesText([...firstOf(projects.map(projectLine), PROJECTS_SHOWN_MAX, rest), ...gapLines(gaps)]);
  });
  return projects.some(isIncomplete) ? 1 : 0;
}

/** The names that match a pattern. Throws `config` if a pattern matches no name. */
function projectNames({ projects }: HealthState, patterns: readonly string[]): readonly string[] {
  const names = [...new Set(projects.map(({ project }) => project))];
  const unknown = patterns.filter((pattern) => !names.some((name) => matchesPattern(pattern, name)));
  requireKnown("--project", unknown, names, (name) => `no project, present or past, is called ${name}`);
  return names.filter((name) => patterns.some((pattern) => matchesPattern(pattern, name)));
}

/** Scripts read these fields. Anomalies are left out, because conditions name the unusual days. */
function statusJson({ anomalies: _, ...health }: HealthState, gaps: Gaps, undated: readonly SeriesName[]) {
  const conditions = health.conditions.map(({ section: _, isQuiet: __, ...condition }) => condition);
  const jobs = health.jobs.map(({ mayReadMissing: _, ...job }) => job);
  const lists = health.lists.map(({ keyName: list, ...facts }) => ({ list, ...facts }));
  return { ...health, conditions, jobs, lists, projects: worstFirst(health.projects), ...gaps, undated };
}

const PROJECTS_SHOWN_MAX = 50;
const UNDATED_SHOWN_MAX = 20;
const WORKERS_SHOWN_MAX = 10;
const PAUSES_SHOWN_MAX = 5;

function renderStatus(health: HealthState, gaps: Gaps, undated: readonly SeriesName[]): string {
  const { conditions, jobs, workers, slices, rotations, callPauses, budgets, projects, lists } = health;
  const wrong = conditions.filter(({ isWrong }) => isWrong);
  const reminders = conditions.filter(({ isWrong }) => !isWrong);
  return linesText([
    ...(wrong.length === 0 ? [wellText(health)] : titled("not well:", wrong)),
    ...titled("reminders:", reminders),
    ...jobs.flatMap(jobLines),
    ...workerLines(workers),
    ...firstOf(callPauses.map(pauseText), PAUSES_SHOWN_MAX, (more) => `and with ${counted(more, "more key")}`),
    `slices: ${slices.complete} complete, ${slices.suspect} suspect, ${slices.failed} failed, ${slices.missing} missing`,
    ...lists.map(listText),
    ...worstProjectLines(projects),
    ...gapLines(gaps),
    ...firstOf(undated.map(undatedText), UNDATED_SHOWN_MAX, (more) => `undated: ${more} more series`),
    // A budget whose period is over is shown only by its condition, if it has one.
    ...budgets.filter(({ isOver }) => !isOver).map((one) => `budget ${budgetTitle(one)}: ${spentText(one)}`),
    ...rotations.flatMap(rotationLines),
  ]);
}

function linesText(lines: readonly string[]): string {
  return `${lines.join("\n")}\n`;
}

/** Another scheduler may run the jobs, so the lack of a worker is mentioned only while a job has never run. */
function wellText({ jobs, workers }: HealthState): string {
  const isIdle = workers.length === 0 && jobs.some(({ paused, lastRun }) => !paused && !lastRun);
  return isIdle ? "all is well so far, but nothing will run: no worker was ever started" : "all is well";
}

function titled(title: string, conditions: readonly Condition[]): readonly string[] {
  return conditions.length === 0 ? [] : [title, ...conditions.map(({ text }) => `  ${text}`)];
}

function jobLines({ nextRun, lastRun, paused, overdueSince, ...job }: JobHealth): string[] {
  return present([
    jobTitle(job),
    `  last run: ${lastRun ? renderRun(lastRun) : "never"}`,
    `  ${paused ? renderPause(paused) : `next run: ${nextRun ? instantText(nextRun) : "none"}`}`,
    overdueSince && `  overdue since ${instantText(overdueSince)}: no worker has taken it up`,
  ]);
}

function renderRun({ status, startedAt, trigger, error }: LastRun): string {
  return `${status}, ${instantText(startedAt)}, ${trigger}${error === null ? "" : `: ${error}`}`;
}

/** The last stopped worker is shown if no worker runs. */
function workerLines(workers: readonly StoredWorker[]): readonly string[] {
  const notStopped = workers.filter(({ state }) => state !== "stopped");
  if (notStopped.length === 0) {
    const [last] = workers;
    const who = last ? `none runs; the last one was ${renderWorker(last)}` : "none was ever seen";
    return [`workers: ${who}; nothing runs by itself until one is started with usage-export start`];
  }
  const live = notStopped.filter(({ state }) => state === "live");
  const texts = notStopped.map((worker) => `  ${renderWorker(worker)}`);
  return [`workers: ${live.length} live`, ...firstOf(texts, WORKERS_SHOWN_MAX, (more) => `  and ${more} more`)];
}

function renderWorker({ host, pid, version, startedAt, lastSeenAt, state }: StoredWorker): string {
  const since = { live: "last seen", silent: "silent since", stopped: "stopped" }[state];
  return `${host} pid ${pid}, version ${version}, started ${instantText(startedAt)}, ${since} ${instantText(lastSeenAt)}`;
}

/** A pause of all calls has an empty key. */
function pauseText({ key, until }: CallPause): string {
  const calls = key === "" ? "calls to the service" : `calls with the key of ${key}`;
  return `${calls} are paused until ${instantText(until)}, as the service asked`;
}

function listText({ keyName, projects, readAt }: HealthState["lists"][number]): string {
  return `projects of ${keyName}: ${projects}, ${readAt ? `listed ${instantText(readAt)}` : "never listed"}`;
}

const WORST_SHOWN_MAX = 10;

/** Empty if there is only one project: everything else is about it, too. */
function worstProjectLines(projects: readonly ProjectHealth[]): readonly string[] {
  const incomplete = projects.filter(isIncomplete);
  // A project may have two entries, for usage and for billing.
  const countOf = (entries: readonly ProjectHealth[]) => new Set(entries.map(({ project }) => project)).size;
  if (countOf(projects) < 2 || incomplete.length === 0) return [];
  const worst = worstFirst(incomplete).map((one) => `  ${projectLine(one)}`);
  const rest = 'status --project NAME shows one of them, and "*" stands for any text';
  return [
    `projects: ${countOf(incomplete)} of ${countOf(projects)} have days that are not complete`,
    ...firstOf(worst, WORST_SHOWN_MAX, (more) => `  and ${more} more: ${rest}`),
  ];
}

function isIncomplete({ missing, failed, suspect }: ProjectHealth): boolean {
  return missing + failed + suspect > 0;
}

function projectLine({ project, source, series, freshThrough, ...counts }: ProjectHealth): string {
  const shown = (["missing", "failed", "suspect"] as const).filter((status) => counts[status] > 0);
  const days = [`${counts.complete} complete`, ...shown.map((status) => `${counts[status]} ${status}`)].join(", ");
  const fresh = freshThrough === null ? "no day is due" : `nothing missing through ${freshThrough}`;
  const name = source === "usage" ? project : `${project} (${source})`;
  return `${name}: ${counted(series, "series", "series")}, ${days}; ${fresh}`;
}

const SERIES_SHOWN_MAX = 3;

function gapLines({ gaps, gapsLeftOut }: Gaps): readonly string[] {
  const texts = gaps.map(({ status, series, from, to, error }) => {
    const names = firstOf(series.map(seriesText), SERIES_SHOWN_MAX, (more) => `and ${more} more series`);
    const days = windowText({ start: from, end: to });
    return `  ${status}: ${names.join(", ")}, ${days}${error === null ? "" : `: ${error}`}`;
  });
  return gapsLeftOut > 0 ? [...texts, `  and ${gapsLeftOut} more: see bi.coverage_gaps`] : texts;
}

function undatedText(series: SeriesName): string {
  return `undated: ${seriesText(series)}: the answers carry no date, see bi.usage_snapshot`;
}

function rotationLines({ rotation, projects, apiKeyId, ageDays, keys }: HealthState["rotations"][number]): string[] {
  if (apiKeyId !== null) return [`rotation ${rotation}: key ${apiKeyId}, ${counted(ageDays ?? 0, "day")} old`];
  const count = `${counted(keys.active, "key")} of ${projects} projects`;
  return projects && keys.active > 0
    ? [`rotation ${rotation}: ${count}, ${counted(ageDays ?? 0, "day")} old at most`]
    : [];
}
