// The command `check`: checks the configuration, the database, the lists of projects and, per project, the key and what the service does
// with its requests.

import type { App } from "../app.ts";
import { type Config, includes, listOf, loadConfig, withDiscovered } from "../config/config.ts";
import { isPattern } from "../config/patterns.ts";
import { databaseUrlOf, withDatabase } from "../database.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { isSchemaError } from "../db/connection/migrate.ts";
import { runOn } from "../db/connection/transaction.ts";
import { readerProblem } from "../db/connection/views.ts";
import { type StoredList, storedLists } from "../db/projects.ts";
import { AppError, errorText } from "../errors.ts";
import { shortWindows } from "../facts/coverage.ts";
import { checkProject, type Finding, type FindingGroup } from "../jobs/check.ts";
import { openServiceContext } from "../jobs/context.ts";
import { type ReadList, readLists, withKnownProjects, withSeenValues } from "../jobs/discovery.ts";
import { FilterCheck } from "../jobs/filters.ts";
import { requireSecrets } from "../jobs/monitor-secrets.ts";
import { proxyOf } from "../proxy.ts";
import { nextOccurrences } from "../schedule/cron.ts";
import { counted, durationText, instantText } from "../show/format.ts";
import { firstNames } from "../text.ts";
import { dayOf } from "../usage/days.ts";
import { planRun } from "../usage/plan.ts";
import type { KnownProject } from "../usage/series.ts";
import { writeAnswer } from "./output.ts";

type CheckOptions = {
  readonly offline?: boolean;
  readonly json?: boolean;
  /** The lists of projects are right, however many projects they lack. */
  readonly confirmProjects?: boolean;
};

export async function runCheck(app: App, options: CheckOptions): Promise<number> {
  const config = await loadConfig(app.configPath);
  // Called for its error: --offline does not open the database.
  databaseUrlOf(app.env);
  await requireSecrets(app, config);
  const proxy = proxyOf(app.env);
  const findings: Finding[] = [
    { what: "file", state: "ok", text: app.configPath },
    ...(proxy ? [{ what: "proxy", state: "ok" as const, text: `https goes through ${proxy.name}` }] : []),
    // The calls of a night can be counted when the projects are known.
    ...(config.discovery ? [] : checkNights(config)),
  ];
  const groups: FindingGroup[] = [{ of: "configuration", findings }];
  if (!options.offline) groups.push(...(await checkOnline(app, config, options)));
  writeAnswer(app, options, groups, (all) => all.map(renderFindings).join(""));
  return groups.every((group) => group.findings.every(({ state }) => state !== "fail")) ? 0 : 1;
}

/** If the database can't be reached, that is one finding, and the projects are checked without it. */
async function checkOnline(app: App, written: Config, options: CheckOptions): Promise<FindingGroup[]> {
  const of = app.env.DATABASE_URL ? "database at DATABASE_URL" : "embedded database";
  const confirmed = options.confirmProjects ?? false;
  try {
    return await withDatabase(app, async (db) => {
      const { config, groups } = await checkLists(app, written, db, confirmed);
      const findings = [
        ...(await checkDatabase(app, db)),
        ...(await checkWindows(db)),
        ...(config.discovery ? checkNights(config) : []),
      ];
      return [{ of, findings }, ...groups, ...(await checkProjects(app, config, db))];
    });
  } catch (error) {
    app.signal.throwIfAborted();
    if (error instanceof AppError && error.code === "config") throw error;
    const what = error instanceof AppError && isSchemaError(error) ? "schema" : "connection";
    const findings: Finding[] = [{ what, state: "fail", text: errorText(error) }];
    const { config, groups } = await checkLists(app, written, undefined, confirmed);
    return [{ of, findings }, ...groups, ...(await checkProjects(app, config, undefined))];
  }
}

/** If the two clocks differ by more, windows and late usage could be off by a day around midnight. */
const SKEW_MS_MAX = 60_000;

async function checkDatabase(app: App, db: Database): Promise<Finding[]> {
  const skewMs = Math.abs((await databaseNow(db)).getTime() - Date.now());
  const clock: Finding =
    skewMs <= SKEW_MS_MAX
      ? { what: "clock", state: "ok", text: "agrees with this machine's" }
      : { what: "clock", state: "warn", text: `differs from this machine's by ${Math.round(skewMs / 1000)} s` };
  // The embedded database has no other users.
  const problem = databaseUrlOf(app.env) === undefined ? undefined : await readerProblem(db);
  const reader: Finding[] = problem === undefined ? [] : [{ what: "usage_reader", state: "warn", text: problem }];
  return [{ what: "schema", state: "ok", text: "up to date" }, clock, ...reader];
}

async function checkWindows(db: Database): Promise<Finding[]> {
  return (await shortWindows(runOn(db))).map(({ windowDays, days }) => ({
    ...{ what: `window of ${counted(windowDays, "day")}`, state: "warn" },
    text: `may be too short: ${days} of the last 70 days still changed when they were read for the last time, and later changes are not seen; consider a longer one`,
  }));
}

/** Of the next runs the two that are closest together: enough of them to see a schedule that rests at weekends. */
const OCCURRENCES = 15;

function checkNights({ exports, service: { requestsPerSecond } }: Config): Finding[] {
  const now = new Date();
  return exports.flatMap((job): Finding[] => {
    const moments = nextOccurrences(job, now, OCCURRENCES).map((moment) => moment.getTime() / 1000);
    const secondsBetween = Math.min(...moments.slice(1).map((moment, i) => moment - (moments[i] ?? 0)));
    // Besides the requests, a run reads each project's list of keys.
    const calls = planRun(job, dayOf(now)).requests.length + job.projects.length;
    const seconds = Math.ceil(calls / requestsPerSecond);
    if (seconds <= secondsBetween) return [];
    const text = `this night has ${counted(calls, "call")}, at ${requestsPerSecond} a second it takes ${durationText(seconds)}, longer than the ${durationText(secondsBetween)} until the next`;
    return [{ what: `export ${job.name}`, state: "warn", text }];
  });
}

/** Of discovered projects, only so many are checked: each takes some calls, and they share a key. */
const DISCOVERED_CHECKED_MAX = 3;

async function checkProjects(app: App, config: Config, db: Database | undefined): Promise<FindingGroup[]> {
  await using context = await openServiceContext(app, db ? await withSeenValues(config, db) : config, db);
  const filterCheck = new FilterCheck(context);
  const groups: FindingGroup[] = [];
  const discovered = config.projects.filter(({ isDiscovered }) => isDiscovered);
  const checked = discovered.slice(0, DISCOVERED_CHECKED_MAX);
  for (const project of [...config.projects.filter(({ isDiscovered }) => !isDiscovered), ...checked]) {
    groups.push({ of: `project ${project.name}`, findings: await checkProject(context, filterCheck, project) });
  }
  if (discovered.length > checked.length) {
    const text = `${checked.length} of ${discovered.length} were checked: a run says which of the others can't be read`;
    groups.push({ of: "other discovered projects", findings: [{ what: "projects", state: "ok", text }] });
  }
  return groups;
}

const NAMES_SHOWN_MAX = 20;

const MARKS = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const;

export function renderFindings({ of, findings }: FindingGroup): string {
  // One cause may affect many checks and is reported once. Request ids differ each time, so the comparison leaves them out.
  const causeOf = ({ state, text }: Finding) =>
    state === "ok" ? Symbol() : `${state} ${text.replaceAll(/\(request id [^)]*\)/g, "")}`;
  const lines = [...Map.groupBy(findings, causeOf).values()].flatMap((same) => {
    const [first] = same;
    return first ? [`  ${MARKS[first.state]} ${same.map(({ what }) => what).join(", ")}: ${first.text}`] : [];
  });
  return [of, ...lines, ""].join("\n");
}

export type CheckedLists = {
  /** The configuration with the projects that are listed now. */
  readonly config: Config;
  readonly groups: readonly FindingGroup[];
};

/** Without a database nothing is known of earlier lists. */
export async function checkLists(
  app: App,
  config: Config,
  db: Database | undefined,
  isConfirmed: boolean,
): Promise<CheckedLists> {
  if (!config.discovery) return { config, groups: [] };
  const lists = await readLists(app, config, db, isConfirmed);
  const expanded = db ? await withKnownProjects(config, db) : withDiscovered(config, lists.flatMap(unstored));
  const stored = db ? await storedLists(db) : [];
  const groups = lists.map((read) => {
    const kept = stored.find(({ list }) => list === read.list);
    return { of: `projects that the key in ${read.list} can see`, findings: listFindings(config, read, kept) };
  });
  const unused = patternFindings(expanded);
  if (unused.length > 0) groups.push({ of: "discovered projects", findings: unused });
  return { config: expanded, groups };
}

function unstored(read: ReadList): readonly KnownProject[] {
  if ("error" in read) return [];
  return read.listed.map((project) => ({ ...project, list: read.list, namedAt: new Date(0), vanishedAt: null }));
}

function listFindings({ discovery }: Config, read: ReadList, stored: StoredList | undefined): Finding[] {
  if ("error" in read) {
    const kept = stored?.readAt
      ? `; ${counted(stored.projects, "project")} of the list of ${instantText(stored.readAt)} stay`
      : "";
    return [{ what: "list", state: "fail", text: `${errorText(read.error)}${kept}` }];
  }
  const { list, listed, change } = read;
  const entries = discovery?.entries.filter((entry) => listOf(entry) === list) ?? [];
  const included = listed.filter((project) => entries.some((entry) => includes(entry, project)));
  const news = change ? `; ${change.added.length} new, ${change.vanished.length} gone` : "";
  const text = `${listed.length} listed, ${included.length} of them included${news}`;
  const findings: Finding[] = [{ what: "list", state: included.length === 0 ? "warn" : "ok", text }];
  const waiting = change?.waiting.map(({ name }) => name) ?? [];
  if (waiting.length === 0) return findings;
  const missing = `${waiting.length} are missing, more than half (${firstNames(waiting, NAMES_SHOWN_MAX)}): they are read as before until a list an hour or more later lacks them, too; if they are gone, run check --confirm-projects`;
  return [...findings, { what: "missing", state: "warn", text: missing }];
}

/** Exports that read nothing, as a pattern of them fits no project. */
function patternFindings({ exports, discovery }: Config): Finding[] {
  return exports.flatMap(({ name, projects }) => {
    const patterns = (discovery?.projectsOf[name] ?? []).filter(isPattern);
    if (patterns.length === 0 || projects.length > 0) return [];
    const text = `no project fits ${patterns.map((pattern) => JSON.stringify(pattern)).join(", ")}: the export reads nothing`;
    return [{ what: `export ${name}`, state: "warn" as const, text }];
  });
}
