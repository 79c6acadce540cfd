// The command `check`: checks the configuration, the database and, per project, the key and what the service does with its requests.

import type { App } from "../app.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { databaseUrlOf, withDatabase } from "../database.ts";
import { pendingChanges, unseenBudgets } from "../db/budgets.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { checkEncryption, checkInstallation } from "../db/connection/installation.ts";
import { isSchemaError } from "../db/connection/views.ts";
import { AppError, errorText } from "../errors.ts";
import { checkProject, type Finding, type FindingGroup } from "../jobs/check-project.ts";
import { FilterCheck } from "../jobs/filter-check.ts";
import { requireSecrets } from "../jobs/monitor-secrets.ts";
import { openServiceContext, putPricesInForce } from "../jobs/open-context.ts";
import { withSeenValues } from "../jobs/seen-values.ts";
import { proxyOf } from "../proxy.ts";
import { nextOccurrences } from "../schedule/cron.ts";
import { neverSeenText } from "../show/budget-text.ts";
import { counted, durationText } from "../show/format.ts";
import { firstNames } from "../text.ts";
import type { Budget } from "../usage/budgets.ts";
import { dayOf } from "../usage/days.ts";
import { configuredSeries, planExport } from "../usage/plan.ts";
import { unreadPrices } from "../usage/prices.ts";
import { checkLists } from "./check-lists.ts";
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
    const calls = planExport(job, dayOf(now)).length + job.projects.length;
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
