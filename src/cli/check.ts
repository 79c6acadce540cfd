// The command `check`: checks the configuration, the database, the lists of projects, and for each project its key and its requests.

import type { App } from "../app.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { quoteAll } from "../config/messages.ts";
import type { Database } from "../db/connection/database.ts";
import { queryOn } from "../db/connection/transaction.ts";
import { readerProblem } from "../db/connection/view-creation.ts";
import { AppError, errorText } from "../errors.ts";
import { shortWindows } from "../facts/coverage.ts";
import { openServiceContext } from "../jobs/context.ts";
import { type ListOutcome, readLists, withKnownProjects } from "../jobs/discovery.ts";
import { checkProject, type Finding, type SubjectFindings } from "../jobs/project-check.ts";
import { databaseUrlOf, withDatabase } from "../open-database.ts";
import { nextOccurrences } from "../schedule/schedule.ts";
import { counted, durationText } from "../show/format.ts";
import { firstNames } from "../text.ts";
import { dayOf } from "../usage/days.ts";
import { planRun } from "../usage/export-plan.ts";
import { requireSecrets } from "../worker/monitor-secrets.ts";
import { writeAnswer } from "./output.ts";

type CheckOptions = { readonly offline?: boolean; readonly json?: boolean; readonly confirmProjects?: boolean };

export async function runCheck(app: App, options: CheckOptions): Promise<number> {
  const config = await loadConfig(app.configPath);
  // A wrong DATABASE_URL is an error even with --offline, which does not open the database.
  databaseUrlOf(app.env);
  await requireSecrets(app, config);
  const file: Finding = { what: "file", state: "ok", text: app.configPath };
  const answer = options.offline
    ? [{ subject: "configuration", findings: [file, ...checkRunLengths(config)] }]
    : [{ subject: "configuration", findings: [file] }, ...(await checkOnline(app, config, options))];
  writeAnswer(app, options, answer, (all) => all.map(renderFindings).join(""));
  return answer.every((one) => one.findings.every(({ state }) => state !== "fail")) ? 0 : 1;
}

/** If the database can't be used, that is one finding, and the projects are checked without it. */
async function checkOnline(app: App, config: Config, options: CheckOptions): Promise<SubjectFindings[]> {
  const subject = app.env.DATABASE_URL ? "database at DATABASE_URL" : "embedded database";
  try {
    return await withDatabase(app, async (db) => {
      const findings: Finding[] = [{ what: "schema", state: "ok", text: "up to date" }];
      // The embedded database has no other users.
      const problem = app.env.DATABASE_URL ? await readerProblem(db) : undefined;
      if (problem !== undefined) findings.push(warning("usage_reader", problem));
      findings.push(...(await checkWindows(db)));
      return [{ subject, findings }, ...(await checkService(app, config, db, options))];
    });
  } catch (error) {
    app.signal.throwIfAborted();
    if (error instanceof AppError && error.code === "config") throw error;
    const what = error instanceof AppError && error.details.schema ? "schema" : "connection";
    const failure: Finding = { what, state: "fail", text: errorText(error) };
    return [{ subject, findings: [failure] }, ...(await checkService(app, config, undefined, options))];
  }
}

function warning(what: string, text: string): Finding {
  return { what, state: "warn", text };
}

async function checkWindows(db: Database): Promise<Finding[]> {
  return (await shortWindows(queryOn(db))).map(({ windowDays, days }) => {
    const text = `may be too short: ${days} of the last 70 days still changed at their last reading, so later changes are not seen; lengthen it`;
    return warning(`window of ${counted(windowDays, "day")}`, text);
  });
}

/** How many starts are compared to find the shortest time between two. Between the first two there may be a weekend without runs. */
const STARTS_COMPARED = 15;

function checkRunLengths({ exports, service: { requestsPerSecond } }: Config): Finding[] {
  const now = new Date();
  return exports.flatMap((job) => {
    const startSeconds = nextOccurrences(job, now, STARTS_COMPARED).map((start) => start.getTime() / 1000);
    const secondsBetween = Math.min(...startSeconds.slice(1).map((start, i) => start - (startSeconds[i] ?? 0)));
    // Besides the requests, a run reads each project's list of keys. The two further calls of a billing export are too few to count.
    const calls = planRun(job, dayOf(now)).requests.length + job.projects.length;
    const seconds = Math.ceil(calls / requestsPerSecond);
    if (seconds <= secondsBetween) return [];
    const text = `a run makes ${counted(calls, "call")} and takes ${durationText(seconds)} at ${requestsPerSecond} a second, longer than the ${durationText(secondsBetween)} until the next run`;
    return [warning(`export ${job.name}`, text)];
  });
}

/** Checking a project takes several calls. A few discovered projects stand for all, as most of them share one key. */
const DISCOVERED_CHECKED_MAX = 3;

async function checkService(app: App, fileConfig: Config, db: Database | undefined, options: CheckOptions) {
  const lists = await readLists(app, fileConfig, db, options.confirmProjects);
  // Without a database, only the projects of the file are known.
  const config = db ? await withKnownProjects(fileConfig, db) : fileConfig;
  const answer = lists.map(listFindings);
  await using context = await openServiceContext(app, config, db);
  const discovered = config.projects.filter(({ isDiscovered }) => isDiscovered).slice(0, DISCOVERED_CHECKED_MAX);
  const checked = config.projects.filter((project) => !project.isDiscovered || discovered.includes(project));
  const exportFindings = [...checkRunLengths(config), ...checkPatterns(config)];
  if (checked.length < config.projects.length) {
    const text = `${checked.length} of ${config.projects.length} are checked: a run reports which of the others can't be read`;
    exportFindings.push({ what: "projects", state: "ok", text });
  }
  if (exportFindings.length > 0) answer.push({ subject: "exports", findings: exportFindings });
  for (const project of checked) {
    answer.push({ subject: `project ${project.name}`, findings: await checkProject(context, project) });
  }
  return answer;
}

const NAMES_SHOWN_MAX = 20;

function listFindings(read: ListOutcome): SubjectFindings {
  const subject = `projects that the key in ${read.keyName} can see`;
  if ("error" in read) {
    const text = `${errorText(read.error)}; projects that were listed before stay`;
    return { subject, findings: [{ what: "list", state: "fail", text }] };
  }
  const { listed, leftOut, change } = read;
  const changes = change ? `; ${change.added.length} new, ${change.vanished.length} gone` : "";
  const state = listed.length === 0 ? "warn" : "ok";
  const findings: Finding[] = [{ what: "list", state, text: `${listed.length} listed${changes}` }];
  if (leftOut.length > 0) findings.push(warning("left out", firstNames(leftOut, NAMES_SHOWN_MAX)));
  const names = change?.waiting.map(({ name }) => name) ?? [];
  if (names.length > 0) {
    const missing = `${names.length} are missing, more than half (${firstNames(names, NAMES_SHOWN_MAX)}): they are still read until a list that is read an hour or more later lacks them, too; if they are really gone, run check --confirm-projects`;
    findings.push(warning("missing", missing));
  }
  return { subject, findings };
}

/** Only with discovery. Without it, loading refuses a configuration with such a pattern. */
function checkPatterns({ exports, discovery, file }: Config): Finding[] {
  return exports.flatMap(({ name, projects }, i) => {
    if (discovery.length === 0 || projects.length > 0) return [];
    const patterns = quoteAll(file.exports[i]?.projects ?? []);
    return [warning(`export ${name}`, `no project matches ${patterns}: the export reads nothing`)];
  });
}

const MARKS = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const;

/** Warnings and failures with the same text, apart from request ids, have one cause and share a line. Each `ok` has a line of its own. */
export function renderFindings({ subject, findings }: SubjectFindings): string {
  const causeOf = ({ state, text }: Finding) =>
    state === "ok" ? Symbol() : `${state} ${text.replaceAll(/\(request id [^)]*\)/g, "")}`;
  const lines = [...Map.groupBy(findings, causeOf).values()].flatMap((same) =>
    same.slice(0, 1).map(({ state, text }) => `  ${MARKS[state]} ${same.map(({ what }) => what).join(", ")}: ${text}`),
  );
  return [subject, ...lines, ""].join("\n");
}
