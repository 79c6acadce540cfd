// Checks a project by calls to the service: does its key work, and are the exports' windows, groupings and filters applied?

import type { RotationConfig } from "../config/rotations.ts";
import { AppError, errorText } from "../errors.ts";
import { holdsScope } from "../keys/scopes.ts";
import { testSink } from "../keys/sinks.ts";
import { BREAKDOWN_SCOPES, DEFAULT_DIALECT, dependsOnDialect } from "../service/breakdown.ts";
import { fetchKeyInfo } from "../service/keys.ts";
import { toPrintableLine } from "../text.ts";
import { type Day, dayOf, lastDays } from "../usage/days.ts";
import { SOURCES, type Source } from "../usage/dimensions.ts";
import { type ExportJob, REQUEST_DAYS_MAX, seriesOf, type UsageRequest } from "../usage/export-plan.ts";
import { rowCount } from "../usage/normalise.ts";
import { ALL_USAGE, filterKey, NO_CONDITIONS, type Project, type Series } from "../usage/series.ts";
import type { ServiceContext } from "./context.ts";
import { readBreakdown } from "./export.ts";
import { FilterCheck } from "./filter-check.ts";
import { mayRead } from "./key-checks.ts";

export type Finding = {
  readonly what: string;
  /** "warn": a person should look at it; it may be as intended. */
  readonly state: "ok" | "warn" | "fail";
  readonly text: string;
};

export type SubjectFindings = { readonly subject: string; readonly findings: readonly Finding[] };

type Target = ServiceContext & {
  readonly filterChecks: Readonly<Record<"error" | "warn", FilterCheck>>;
  readonly project: Project;
  readonly today: Day;
};

type CheckResult = Omit<Finding, "what">;

const ok = (text: string): CheckResult => ({ state: "ok", text });
const warn = (text: string): CheckResult => ({ state: "warn", text });
const fail = (text: string): CheckResult => ({ state: "fail", text });

/** Runs `find`, and adds its result to the findings. */
type Check = (what: string, find: () => Promise<CheckResult>) => Promise<CheckResult>;

/** If the key does not work, nothing else is checked: the service would refuse every other call, too. */
export async function checkProject(context: ServiceContext, project: Project): Promise<Finding[]> {
  const { app, config, service, keyRing } = context;
  const filterCheck = (checkFeatures: "error" | "warn") => new FilterCheck(context, { checkFeatures });
  const filterChecks = { error: filterCheck("error"), warn: filterCheck("warn") };
  const target = { ...context, filterChecks, project, today: dayOf(new Date()) };
  const jobs = config.exports.filter(({ projects }) => projects.some(({ id }) => id === project.id));
  const sources = SOURCES.filter((source) => jobs.some((job) => job.source === source));
  const findings: Finding[] = [];
  const check: Check = async (what, find) => {
    const result = await find().catch((error: unknown) => {
      if (!(error instanceof AppError) || error.code === "stopped") throw error;
      return fail(errorText(error));
    });
    findings.push({ what, ...result });
    return result;
  };
  const key = await check("key", async () => {
    const info = await keyRing.use(project, (secret) => fetchKeyInfo(service, secret, app.signal));
    return keyResult(project, info?.scopes, sources);
  });
  if (key.state === "fail") return findings;
  for (const rotation of config.rotations.filter((one) => one.project.id === project.id)) {
    await check(`rotation ${rotation.name}`, () => checkSinksAndCreatorKey(target, rotation));
  }
  for (const source of sources) await checkSource(target, check, source, jobs);
  return findings;
}

type CheckedSeries = { readonly series: Series; readonly hasWindow: boolean; readonly filterCheck: FilterCheck };

/** Each grouping and each filter is checked once, even if several exports have it. Fan-outs are left out. */
async function checkSource(target: Target, check: Check, source: Source, jobs: readonly ExportJob[]): Promise<void> {
  const prefix = source === "billing" ? "billing " : "";
  const jobsOfSource = jobs.filter((job) => job.source === source);
  const all = jobsOfSource.flatMap((job) => {
    // With checkFeatures "off", the command `check` warns all the same.
    const filterCheck = target.filterChecks[job.checkFeatures === "error" ? "error" : "warn"];
    return seriesOf({ ...job, seen: new Map() }, { projects: [target.project.name] }).map(
      (series): CheckedSeries => ({ series, hasWindow: job.window !== undefined, filterCheck }),
    );
  });
  const dependent = all.find(({ series }) => dependsOnDialect(series));
  if (dependent && source === "usage" && target.service.dialect === "auto") {
    await check("dialect", () => checkDialect(target, dependent.hasWindow));
  }
  for (const { series, hasWindow } of new Map(all.map((one) => [one.series.grouping, one])).values()) {
    const unfiltered = { ...series, filter: ALL_USAGE };
    await check(`${prefix}grouping ${series.grouping}`, () => checkGrouping(target, unfiltered, hasWindow));
  }
  if (all.some(({ hasWindow }) => hasWindow)) {
    const series = { grouping: "none", filter: ALL_USAGE, project: target.project, source } as const;
    // Reading throws if the answer is for another window.
    const readDay = () => read(target, { series, window: lastDays(target.today, 1) });
    await check(`${prefix}window`, () => readDay().then(() => ok("start and end are honoured")));
  }
  for (const [key, one] of new Map(all.map((one) => [filterKey(one.series.filter), one]))) {
    if (key === NO_CONDITIONS) continue;
    await check(`${prefix}filter ${one.series.filter.name}`, () => checkFilter(target, one));
  }
}

/** Fails if the key may read none of the `sources` that exports read. If it may read some of them, the checks of the others fail. */
function keyResult(project: Project, scopes: readonly string[] | undefined, sources: readonly Source[]): CheckResult {
  if (!scopes) return warn("the service does not say which scopes a key has");
  const list = scopes.map(toPrintableLine).join(", ") || "(none)";
  if (sources.length === 0) return ok(`scopes ${list}; no export reads this project`);
  if (sources.some((source) => mayRead(source, scopes))) return ok(`scopes ${list}`);
  const needed = sources.map((source) => `reading ${source} needs ${BREAKDOWN_SCOPES[source][0]}`).join(", and ");
  return fail(`the key of "${project.name}" has the scopes ${list}; ${needed}`);
}

async function checkSinksAndCreatorKey({ app, service, keyRing }: Target, job: RotationConfig): Promise<CheckResult> {
  for (const sink of job.deliver) await testSink(sink);
  const info = await keyRing.useCreatorKey(job, (key) => fetchKeyInfo(service, key, app.signal));
  const which = job.createWith ? "the key of createWith" : "the key";
  if (!info) return warn(`the service does not say whether ${which} may create keys`);
  if (holdsScope(info.scopes, "keys:write")) return ok(`${which} may create keys, and every sink can be written`);
  const scopes = info.scopes.map(toPrintableLine).join(", ") || "(none)";
  const hint = job.createWith ? "" : ', or name a key that has it in createWith, such as { "env": "NAME" }';
  return fail(`${which} may not create keys: it has the scopes ${scopes}; add keys:write${hint}`);
}

async function checkDialect({ dialects, project, today }: Target, hasWindow: boolean): Promise<CheckResult> {
  const dialect = await dialects.probe(project, hasWindow ? lastDays(today, REQUEST_DAYS_MAX) : undefined);
  if (dialect !== undefined) return ok(`"${dialect}", as the service's answers show`);
  const used = `so "${DEFAULT_DIALECT}" is used; set service.dialect if you know it`;
  return warn(`no usage shows yet which dialect the service speaks, ${used}`);
}

async function checkGrouping(target: Target, series: Series, hasWindow: boolean): Promise<CheckResult> {
  const request = { series, window: hasWindow ? lastDays(target.today, 1) : undefined };
  const rows = rowCount((await read(target, request)).slices);
  return ok(`${rows} ${rows === 1 ? "row" : "rows"}${hasWindow ? " yesterday" : ""}`);
}

/** The numbers of several days are compared, because a feature may not be used every day. */
const RECENT_DAYS = 7;

async function checkFilter(target: Target, { series, hasWindow, filterCheck }: CheckedSeries): Promise<CheckResult> {
  const window = hasWindow ? lastDays(target.today, RECENT_DAYS) : undefined;
  const request = { series: { ...series, grouping: "none" }, window } as const;
  const { slices, doubt } = await read(target, request, filterCheck);
  const effect = await filterCheck.effectOf(request, slices);
  if (effect === "no usage") {
    const [unknown] = await filterCheck.unknownNames(request.series);
    const text = "there is no usage, so it is unknown whether the filter narrows the numbers";
    return unknown ? warn(`${text}; ${unknown.text}`) : ok(text);
  }
  if (doubt) return { state: doubt.isConfirmable ? "warn" : "fail", text: doubt.reason };
  return ok(effect === "same" ? "all usage meets the filter" : "the filter narrows the numbers");
}

/** Reads like the first run of an export, when nothing is stored. */
function read(target: Target, request: UsageRequest, check = target.filterChecks.error) {
  const stored = async () => ({ oldest: null, hasRows: false, isNewestEmpty: false });
  return readBreakdown(target, { check, job: { undated: "snapshot" }, runDay: target.today, stored }, request);
}
