// The command `check`: checks the configuration, the database, the lists of projects and, per project, the key and what the service does
// with its requests.

import type { App } from "../app.ts";
import { type Config, includes, listOf, loadConfig, withDiscovered } from "../config/config.ts";
import { isPattern } from "../config/patterns.ts";
import { databaseUrlOf, withDatabase } from "../database.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { checkEncryption, checkInstallation } from "../db/connection/installation.ts";
import { isSchemaError } from "../db/connection/views.ts";
import { pendingChanges, unseenBudgets } from "../db/money.ts";
import { storedLists, storedProjects, storeReading } from "../db/projects.ts";
import { AppError, errorText } from "../errors.ts";
import { checkProject, type Finding, type FindingGroup } from "../jobs/check.ts";
import { openServiceContext, putPricesInForce } from "../jobs/context.ts";
import { readLists, withSeenValues } from "../jobs/discovery.ts";
import { FilterCheck } from "../jobs/filters.ts";
import { requireSecrets } from "../jobs/monitor-secrets.ts";
import { proxyOf } from "../proxy.ts";
import { nextOccurrences } from "../schedule/cron.ts";
import { neverSeenText } from "../show/budget-text.ts";
import { counted, durationText, instantText } from "../show/format.ts";
import { firstNames } from "../text.ts";
import type { Budget } from "../usage/budgets.ts";
import { dayOf } from "../usage/days.ts";
import { configuredSeries, planRun } from "../usage/plan.ts";
import { unreadPrices } from "../usage/prices.ts";
import {
  applyChange,
  changeList,
  type KnownProject,
  type ListChange,
  type ListedProject,
} from "../usage/project-list.ts";
import { writeAnswer } from "./output.ts";
import { adviseWindows, renderAdvice } from "./window-advice.ts";

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
  const { receivers, access } = await requireSecrets(app, config);
  const proxy = proxyOf(app.env);
  const ok = (what: string, text: string): Finding => ({ what, state: "ok", text });
  const findings = [
    ok("file", app.configPath),
    ...[receivers.webhook, receivers.deadMan].flatMap((receiver) =>
      receiver ? [ok(receiver.path, "its address can be read; nothing was sent there")] : [],
    ),
    ...(access ? [ok("monitor.access", "its secret can be read")] : []),
    ...(proxy ? [ok("proxy", `https goes through ${proxy.name}, except to the hosts that NO_PROXY names`)] : []),
  ];
  const groups: FindingGroup[] = [
    { of: "configuration", findings: [...findings, ...(config.discovery ? [] : checkExports(config))] },
  ];
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
        ...(await checkWindows(db, config)),
        ...(await checkStoredPrices(app, db, config)),
        ...(await checkStoredBudgets(db, config)),
        ...(config.discovery ? checkExports(config) : []),
      ];
      return [{ of, findings }, ...groups, ...(await checkProjects(app, config, db))];
    });
  } catch (error) {
    app.signal.throwIfAborted();
    if (error instanceof AppError && error.code === "config") throw error;
    const findings: Finding[] = [{ what: whatFailed(error), state: "fail", text: errorText(error) }];
    const { config, groups } = await checkLists(app, written, undefined, confirmed);
    return [{ of, findings }, ...groups, ...(await checkProjects(app, config, undefined))];
  }
}

function whatFailed(error: unknown): string {
  return error instanceof AppError && isSchemaError(error) ? "schema" : "connection";
}

/** If the two clocks differ by more, windows and late usage could be off by a day around midnight. */
const SKEW_MS_MAX = 60_000;

async function checkDatabase(app: App, db: Database): Promise<Finding[]> {
  const skewMs = Math.abs((await databaseNow(db)).getTime() - Date.now());
  const clock: Finding =
    skewMs <= SKEW_MS_MAX
      ? { what: "clock", state: "ok", text: "agrees with this machine's" }
      : { what: "clock", state: "warn", text: `differs from this machine's by ${Math.round(skewMs / 1000)} s` };
  const url = databaseUrlOf(app.env);
  // The embedded database has no other users and no network connection.
  const found =
    url === undefined ? [] : [...(await checkInstallation(db)), ...checkEncryption(new URL(url), app.env.PGSSLMODE)];
  return [{ what: "schema", state: "ok", text: "up to date" }, clock, ...found];
}

/** No finding for a window that is neither too short nor longer than needed, nor if too little is stored to judge the window. */
async function checkWindows(db: Database, { exports }: Config): Promise<Finding[]> {
  const advice = await adviseWindows(db, exports);
  return advice.map((one) => ({ what: `window of ${one.job}`, state: "warn", text: renderAdvice(one) }));
}

/** Whether the exports read what is priced, and end before they begin again. Both need to know the projects. */
function checkExports(config: Config): Finding[] {
  return [...checkPrices(config), ...checkNights(config)];
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

/** Usage is priced by the series that are read by model: a price whose series no export reads prices nothing. */
function checkPrices({ prices, exports }: Config): Finding[] {
  return unreadPrices(prices, configuredSeries(exports)).map(({ index, conditions, projects }) => {
    const isNarrowed = Object.keys(conditions).length > 0;
    const filter = isNarrowed
      ? `the filter { "dimensions": ${JSON.stringify(conditions)} } alone`
      : "a filter without conditions";
    const text = `prices nothing in ${firstNames(projects, NAMES_SHOWN_MAX)}: no export reads its usage; add the grouping "model" with ${filter} to an export`;
    return { what: `prices[${index}]`, state: "warn", text };
  });
}

const NAMES_SHOWN_MAX = 20;

/** Stores them, as an export does. */
async function checkStoredPrices(app: App, db: Database, config: Config): Promise<Finding[]> {
  if (config.prices.length === 0) return [];
  const { added, replaced } = await putPricesInForce(app, config, db);
  const isChanged = added.length + replaced.length > 0;
  const text = isChanged
    ? `${counted(added.length, "version")} added, ${replaced.length} replaced`
    : "stored as configured";
  return [{ what: "prices", state: "ok", text }];
}

/** Does not store them: `check` is also for a configuration that nobody uses yet. */
async function checkStoredBudgets(db: Database, config: Config): Promise<Finding[]> {
  if (config.budgets.length === 0) return [];
  const { length } = await pendingChanges(db, config.budgets);
  const text =
    length > 0 ? `${counted(length, "budget")} to change when an export or a worker starts` : "stored as configured";
  const unseen = await unseenBudgets(db, config.budgets);
  return [
    { what: "budgets", state: "ok", text },
    ...config.budgets
      .filter(({ name }) => unseen.has(name))
      .map((budget): Finding => ({ what: `budget ${budget.name}`, state: "warn", text: unseenText(budget) })),
  ];
}

function unseenText({ scope, scopeValue }: Budget): string {
  return `${neverSeenText({ scope, scopeValue: scopeValue ?? null })}: correct the ${scope} if it is misspelt`;
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

/** Stores nothing, unless a person confirms the lists. Without a database nothing is known of earlier lists. */
export async function checkLists(
  app: App,
  config: Config,
  db: Database | undefined,
  isConfirmed: boolean,
): Promise<CheckedLists> {
  if (!config.discovery) return { config, groups: [] };
  const stored = db ? await storedProjects(db) : [];
  const lists = db ? await storedLists(db) : [];
  const now = db ? await databaseNow(db) : new Date();
  const after: KnownProject[] = [];
  const groups: FindingGroup[] = [];
  for (const read of await readLists(app, config, db)) {
    const { list } = read;
    const known = stored.filter((one) => one.list === list);
    const of = `projects that the key in ${list} can see`;
    if ("error" in read) {
      const readAt = lists.find((one) => one.list === list)?.readAt;
      const kept = readAt ? `; ${counted(known.length, "project")} of the list of ${instantText(readAt)} stay` : "";
      const text = `${errorText(read.error)}${kept}`;
      groups.push({ of, findings: [{ what: "list", state: "fail", text }] });
      after.push(...known);
      continue;
    }
    const { listed, leftOut } = read;
    const change = changeList(listed, known, now, isConfirmed);
    if (db && isConfirmed) await storeReading(db, { list, listed, readAt: now, isConfirmed });
    after.push(...applyChange(list, known, change, now));
    const changed = known.length > 0 ? changeFindings(change, known, isConfirmed) : [];
    groups.push({ of, findings: [listFinding(config, list, listed), ...leftOutFindings(leftOut), ...changed] });
  }
  const expanded = withDiscovered(config, after);
  const unused = patternFindings(expanded);
  if (unused.length > 0) groups.push({ of: "discovered projects", findings: unused });
  return { config: expanded, groups };
}

function listFinding({ projects, discovery }: Config, list: string, listed: readonly ListedProject[]): Finding {
  const entries = discovery?.entries.filter((entry) => listOf(entry) === list) ?? [];
  const written = new Set(projects.filter(({ isDiscovered }) => !isDiscovered).map(({ id }) => id));
  const included = listed.filter((project) => entries.some((entry) => includes(entry, project)));
  const inFile = included.filter(({ id }) => written.has(id)).length;
  const counts = [
    `${counted(included.length - inFile, "project")} discovered`,
    ...(included.length < listed.length ? [`${listed.length - included.length} not included or excluded`] : []),
    ...(inFile > 0 ? [`${inFile} with an entry in the file`] : []),
  ];
  const text = `${listed.length} listed: ${counts.join(", ")}`;
  return { what: "list", state: included.length === 0 ? "warn" : "ok", text };
}

function leftOutFindings(leftOut: readonly string[]): Finding[] {
  if (leftOut.length === 0) return [];
  return [{ what: "left out", state: "warn", text: firstNames(leftOut, NAMES_SHOWN_MAX) }];
}

function changeFindings(
  { added, returned, renamed, vanished, waiting }: ListChange,
  known: readonly KnownProject[],
  isConfirmed: boolean,
): Finding[] {
  const changes = Object.entries({ new: added, "back again": returned, renamed, gone: vanished }).flatMap(
    ([what, projects]) => (projects.length > 0 ? [`${projects.length} ${what} (${namesOf(projects)})`] : []),
  );
  const when = isConfirmed ? "taken up" : "the next run takes them up";
  const current = known.filter(({ vanishedAt }) => vanishedAt === undefined).length;
  const doubt = `${waiting.length} of ${current} are missing, more than half (${namesOf(waiting)}): they are read as before until a list an hour or more later lacks them, too; if they are gone, run check --confirm-projects`;
  return [
    ...(changes.length > 0
      ? [{ what: "changes", state: "ok" as const, text: `since the last run ${changes.join(", ")}; ${when}` }]
      : []),
    ...(waiting.length > 0 ? [{ what: "missing", state: "warn" as const, text: doubt }] : []),
  ];
}

const CHANGED_SHOWN_MAX = 3;

function namesOf(projects: readonly ListedProject[]): string {
  return firstNames(
    projects.map(({ name }) => name),
    CHANGED_SHOWN_MAX,
  );
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
