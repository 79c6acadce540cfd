// Checks a project for `check` by calling the service: whether its key works, and whether the service applies the windows, groupings
// and filters that the exports send.

import type { RotationConfig } from "../config/rotations.ts";
import { AppError, errorText } from "../errors.ts";
import { holdsScope } from "../keys/policy.ts";
import { testSink } from "../keys/sinks.ts";
import { fetchToken } from "../service/keys.ts";
import { dependsOnDialect, fetchBreakdown, groupingName } from "../service/usage.ts";
import { toPrintableLine } from "../text.ts";
import { addDays, type Day, dayOf, type Window } from "../usage/days.ts";
import { SOURCES, type Source } from "../usage/dimensions.ts";
import { normalise } from "../usage/normalise.ts";
import { type ExportJob, seriesOf, type UsageRequest } from "../usage/plan.ts";
import type { NormalisedSlice } from "../usage/rows.ts";
import { ALL_USAGE, type FanOut, filterKey, NO_CONDITIONS, type Project, type Series } from "../usage/series.ts";
import type { ServiceContext } from "./context.ts";
import { DEFAULT_DIALECT } from "./dialects.ts";
import type { FilterCheck, Strictness } from "./filters.ts";

export type Finding = {
  readonly what: string;
  /** "warn": a person should look at it; it may be as intended. */
  readonly state: "ok" | "warn" | "fail";
  readonly text: string;
};

/** What was found of one subject of the check. */
export type FindingGroup = { readonly of: string; readonly findings: readonly Finding[] };

/** What the checks of one project need. */
type Probe = ServiceContext & {
  readonly filterCheck: FilterCheck;
  readonly source: Source;
  readonly project: Project;
  readonly today: Day;
};

type CheckResult = Omit<Finding, "what">;

const ok = (text: string): CheckResult => ({ state: "ok", text });
const warn = (text: string): CheckResult => ({ state: "warn", text });
const fail = (text: string): CheckResult => ({ state: "fail", text });

type Check = {
  readonly what: string;
  readonly run: () => Promise<CheckResult>;
  /** If it fails, the checks after it would fail for the same reason. */
  readonly isDecisive?: boolean;
};

export async function checkProject(
  context: ServiceContext,
  filterCheck: FilterCheck,
  project: Project,
): Promise<Finding[]> {
  const probe: Probe = { ...context, filterCheck, project, source: "usage", today: dayOf(new Date()) };
  const jobs = context.config.exports.filter(({ projects }) => projects.some(({ id }) => id === project.id));
  const rotations = context.config.rotations.filter((rotation) => rotation.project.id === project.id);
  let mayRead = false;
  const key = await findingOf({
    what: "key",
    run: async () => {
      const { app, service, keys } = context;
      const scopes = (await keys.use(project, (key) => fetchToken(service, key, app.signal)))?.scopes;
      // If the service does not list the key's scopes, a usage request shows whether the key may read usage. That request is not made
      // if the project has a rotation, because the key then creates other keys.
      mayRead = scopes ? readsUsage(scopes) : rotations.length === 0;
      const sources = SOURCES.filter((source) => jobs.some((job) => job.source === source));
      return keyResult(project, scopes, sources);
    },
  });
  // The service would refuse every other call for the same reason.
  if (key.state === "fail") return [key];
  const jobsOf = (source: Source) => jobs.filter((job) => job.source === source);
  const checks: readonly Check[] = [
    ...rotations.map((job) => ({ what: `rotation ${job.name}`, run: () => checkRotation(probe, job) })),
    ...(jobs.length === 0 && mayRead
      ? [{ what: "usage", run: () => checkGrouping(probe, totalOf(probe), false) }]
      : []),
    ...sourceChecks(probe, jobsOf("usage")),
    ...billingChecks({ ...probe, source: "billing" }, jobsOf("billing")),
  ];
  const findings = [key];
  for (const check of checks) {
    const finding = await findingOf(check);
    findings.push(finding);
    if (check.isDecisive && finding.state === "fail") break;
  }
  return findings;
}

/** Whether the service offers billing and the key may read it is checked first, and once. */
function billingChecks(probe: Probe, jobs: readonly ExportJob[]): Check[] {
  if (jobs.length === 0) return [];
  const checks = sourceChecks(probe, jobs).map(({ what, run }) => ({ what: `billing ${what}`, run }));
  return [{ what: "billing", run: () => checkGrouping(probe, totalOf(probe), true), isDecisive: true }, ...checks];
}

/** The checks for the export jobs of the project, all of one source. Each grouping and each filter is checked once, even if several jobs have it. */
function sourceChecks(probe: Probe, jobs: readonly ExportJob[]): Check[] {
  const all: CheckedSeries[] = jobs.flatMap((job) =>
    seriesOf({ ...job, seen: new Map() }, { projects: [probe.project.name] }).map((series) => ({
      series,
      windowed: job.window !== undefined,
      strictness: job.checkFeatures,
    })),
  );
  const filters = [...new Map(all.map((one) => [one.series.filter.name, one])).values()];
  const groupings = [...new Map(all.map((one) => [one.series.grouping, one])).values()];
  const checks: Check[] = [];
  const dependent = all.find(({ series }) => dependsOnDialect(series));
  // Billing is asked in the default dialect.
  if (dependent && probe.source === "usage" && probe.service.dialect === "auto") {
    checks.push({ what: "dialect", run: () => checkDialect(probe, dependent.windowed) });
  }
  for (const { series, windowed } of groupings) {
    const unfiltered = { ...series, filter: ALL_USAGE };
    checks.push({ what: `grouping ${series.grouping}`, run: () => checkGrouping(probe, unfiltered, windowed) });
  }
  if (all.some(({ windowed }) => windowed)) checks.push({ what: "window", run: () => checkWindow(probe) });
  for (const one of filters.filter(({ series }) => filterKey(series.filter) !== NO_CONDITIONS)) {
    checks.push({ what: `filter ${one.series.filter.name}`, run: () => checkFilter(probe, one) });
  }
  for (const job of jobs) {
    for (const fanOut of job.fanOuts ?? []) {
      checks.push({ what: `each ${fanOut.dimension}`, run: () => checkFanOut(probe, job, fanOut) });
    }
  }
  return checks;
}

async function findingOf({ what, run }: Check): Promise<Finding> {
  try {
    return { what, ...(await run()) };
  } catch (error) {
    if (!(error instanceof AppError) || error.code === "stopped") throw error;
    return { what, state: "fail", text: errorText(error) };
  }
}

/** `sources` are what the exports read of the project. Of several, the checks of each say what the key may not read. */
function keyResult(project: Project, scopes: readonly string[] | undefined, sources: readonly Source[]): CheckResult {
  if (!scopes) return warn("the service does not say which scopes a key has");
  const list = scopes.map(toPrintableLine).join(", ") || "(none)";
  if (sources.length === 0 && !readsUsage(scopes)) {
    return ok(`scopes ${list}; it can't read usage, and no export reads this project`);
  }
  const mayRead = (source: Source) => (source === "usage" ? readsUsage(scopes) : holdsScope(scopes, "billing:read"));
  if (sources.length === 0 || sources.some(mayRead)) return ok(`scopes ${list}`);
  const needs = { usage: "project:read", billing: "billing:read" };
  const needed = sources.map((source) => `reading ${source} needs ${needs[source]}`).join(", and ");
  return fail(`the key of "${project.name}" has the scopes ${list}; ${needed}`);
}

/** Either scope lets a key read the breakdown; sources differ on which one it needs. */
function readsUsage(scopes: readonly string[]): boolean {
  return holdsScope(scopes, "project:read") || holdsScope(scopes, "usage:read");
}

/** Whether the key that would create new keys may do so, and whether every sink can be written. */
async function checkRotation({ app, service, keys }: Probe, job: RotationConfig): Promise<CheckResult> {
  for (const sink of job.deliver) await testSink(sink);
  const token = await keys.useToRotate(job, (key) => fetchToken(service, key, app.signal));
  const which = job.createWith ? "the key of createWith" : "the key";
  if (!token) return warn(`the service does not say whether ${which} may create keys`);
  if (holdsScope(token.scopes, "keys:write")) {
    return ok(`${which} may create keys, and every sink can be written`);
  }
  const scopes = token.scopes.map(toPrintableLine).join(", ");
  const hint = job.createWith ? "" : '; or name another in createWith, such as { "env": "NAME" }';
  return fail(`${which} may not create keys: it needs keys:write, and has ${scopes}${hint}`);
}

type CheckedSeries = {
  readonly series: Series;
  readonly windowed: boolean;
  readonly strictness: Strictness;
};

/** How many days are requested where numbers are compared: a feature may not be used every day. */
const RECENT_DAYS = 7;

async function checkDialect({ dialects, project }: Probe, windowed: boolean): Promise<CheckResult> {
  const dialect = await dialects.probe(project, windowed);
  if (dialect !== undefined) return ok(`"${dialect}", as the service's answers show`);
  return warn(
    `no usage shows which dialect the service speaks: "${DEFAULT_DIALECT}" is used until some does; set service.dialect if you know it`,
  );
}

async function checkGrouping(probe: Probe, series: Series, windowed: boolean): Promise<CheckResult> {
  const window = windowed ? lastDays(probe, 1) : undefined;
  const request = { series, window };
  const answer = await fetchAnswer(probe, request);
  await probe.filterCheck.requireThatServiceGroups(request, answer);
  const rows = rowCount(await slicesOf(probe, request, answer));
  return ok(`${rows} ${rows === 1 ? "row" : "rows"}${windowed ? " yesterday" : ""}`);
}

/** An answer for another window is refused as it is read. */
async function checkWindow(probe: Probe): Promise<CheckResult> {
  await readSlices(probe, totalOf(probe), lastDays(probe, 1));
  return ok("start and end are honoured");
}

/** Whether the numbers are those of the filter: a service that ignores an unknown name answers with all usage. */
async function checkFilter(probe: Probe, { series, windowed, strictness }: CheckedSeries): Promise<CheckResult> {
  const { filterCheck, dialects } = probe;
  const strict = strictness === "off" ? "warn" : strictness;
  const request = {
    series: { ...totalOf(probe), filter: series.filter },
    window: windowed ? lastDays(probe, RECENT_DAYS) : undefined,
  };
  await filterCheck.prefetchTotal(request, strict);
  const own = await readSlices(probe, request.series, request.window);
  const effect = await filterCheck.effectOf(request, own);
  if (effect === "no usage") {
    const text = "there is no usage, so it is unknown whether the filter narrows the numbers";
    const [unknown] = await filterCheck.unknownNames(request.series);
    return unknown ? warn(`${text}; ${unknown.text}`) : ok(text);
  }
  const dialect = await dialects.forRequest(request);
  const stored = async () => ({ hasRows: false, isNewestEmpty: false });
  const doubt = await filterCheck.doubtOf(request, own, dialect, strict, stored);
  if (doubt) return { state: doubt.isConfirmable ? "warn" : "fail", text: doubt.reason };
  return ok(effect === "same" ? "all usage meets the filter" : "the filter narrows the numbers");
}

/** Of the values only one is requested: the service knows the filters of all of them, or of none. */
async function checkFanOut(probe: Probe, job: ExportJob, { dimension, atMost }: FanOut): Promise<CheckResult> {
  const found = job.seen?.get(probe.project.id)?.find((one) => one.dimension === dimension);
  const [first] = found?.values ?? [];
  if (!found || !first) return ok(`no usage by ${dimension} is stored yet; its values are read when there is some`);
  const series = { ...totalOf(probe), filter: first.filter };
  const checked = await checkFilter(probe, { series, windowed: true, strictness: job.checkFeatures });
  if (checked.state === "fail") return checked;
  const { values, leftOut } = found;
  const text = `${values.length} of ${values.length + leftOut} values are read ("atMost" is ${atMost}); by the first of them, ${checked.text}`;
  return leftOut === 0 ? { ...checked, text } : warn(text);
}

/** The last complete days. */
function lastDays({ today }: Probe, count: number): Window {
  return { start: addDays(today, -count), end: addDays(today, -1) };
}

// The usage requests of the checks.

/** All usage of the project, or all that it costs. */
function totalOf({ project, source }: Probe): Series {
  return { project, source, grouping: "none", filter: ALL_USAGE };
}

async function readSlices(probe: Probe, series: Series, window: Window | undefined): Promise<NormalisedSlice[]> {
  const request = { series, window };
  return slicesOf(probe, request, await fetchAnswer(probe, request));
}

async function slicesOf(probe: Probe, request: UsageRequest, answer: unknown): Promise<NormalisedSlice[]> {
  const dialect = await probe.dialects.forRequest(request);
  return normalise(request, answer, probe.today, groupingName(request.series.grouping, dialect));
}

async function fetchAnswer(probe: Probe, request: UsageRequest): Promise<unknown> {
  const { app, service, keys, dialects, filterCheck, project } = probe;
  const dialect = await dialects.forRequest(request);
  const sent = await filterCheck.asSent(request, dialect);
  return keys.use(project, (key) => fetchBreakdown(service, sent, key, app.signal, { dialect }));
}

function rowCount(slices: readonly NormalisedSlice[]): number {
  return slices.reduce((sum, slice) => sum + slice.rowCount, 0);
}
