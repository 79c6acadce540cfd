// Checks a project for `check` by calling the service: whether its key works, and whether the service honours what is sent.

import type { RotationConfig } from "../config/config.ts";
import { snapshotSteps } from "../db/usage/undated-snapshots.ts";
import { AppError, errorText } from "../errors.ts";
import { holdsScope } from "../keys/policy.ts";
import { testSink } from "../keys/sinks.ts";
import { fetchToken } from "../service/keys.ts";
import { dependsOnDialect, fetchBreakdown, groupingName } from "../service/usage.ts";
import { toPrintableLine } from "../text.ts";
import type { NormalisedSlice } from "../usage/columns.ts";
import { addDays, type Day, dayOf, type Window } from "../usage/days.ts";
import { dayTotals, effectOf } from "../usage/filter-effect.ts";
import { METRICS } from "../usage/metrics.ts";
import { normalise } from "../usage/normalise.ts";
import { type ExportJob, seriesOf, type UsageRequest } from "../usage/plan.ts";
import { ALL_USAGE, type Filter, filterKey, NO_CONDITIONS, type Project, type Series } from "../usage/series.ts";
import { type ProvenSpan, provenSpan, type Undated } from "../usage/slice.ts";
import { DEFAULT_DIALECT } from "./dialects.ts";
import type { ServiceContext } from "./export-context.ts";
import { type FilterCheck, isRejected, type Strictness } from "./filter-check.ts";

export type Finding = {
  readonly what: string;
  /** "warn": a person should look at it; it may be as intended. */
  readonly state: "ok" | "warn" | "fail";
  readonly text: string;
};

type Probe = ServiceContext & {
  readonly filterCheck: FilterCheck;
  readonly project: Project;
  readonly today: Day;
};

type Check = { readonly what: string; readonly run: () => Promise<CheckResult> };

export async function checkProject(
  context: ServiceContext,
  filterCheck: FilterCheck,
  project: Project,
): Promise<Finding[]> {
  const probe = { ...context, filterCheck, project, today: dayOf(new Date()) };
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
      return keyResult(project, scopes, jobs.length > 0);
    },
  });
  // The service would refuse every other call for the same reason.
  if (key.state === "fail") return [key];
  const checks = [
    ...rotations.map((job) => ({ what: `rotation ${job.name}`, run: () => checkRotation(probe, job) })),
    ...(jobs.length === 0 && mayRead
      ? [{ what: "usage", run: () => checkGrouping(probe, totalOf(probe), false) }]
      : []),
    ...usageChecks(probe, jobs),
  ];
  const findings = [key];
  for (const check of checks) findings.push(await findingOf(check));
  return findings;
}

/** The checks for the export jobs of the project. Each grouping and each filter is checked once, even if several jobs have it. */
function usageChecks(probe: Probe, jobs: readonly ExportJob[]): Check[] {
  const all: CheckedSeries[] = jobs.flatMap((job) =>
    seriesOf(job, { projects: [probe.project.name] }).map((series) => ({
      series,
      windowed: job.window !== undefined,
      strictness: job.checkFeatures,
    })),
  );
  const filters = [...new Map(all.map((one) => [one.series.filter.name, one])).values()];
  const groupings = [...new Map(all.map((one) => [one.series.grouping, one])).values()];
  const named = filters.filter(({ series, strictness }) => strictness !== "off" && namesOf(series.filter).length > 0);
  const windowless = jobs.filter((job) => !job.window);
  const checks: Check[] = [];
  const dependent = all.find(({ series }) => dependsOnDialect(series));
  if (dependent && probe.service.dialect === "auto") {
    checks.push({ what: "dialect", run: () => checkDialect(probe, dependent.windowed) });
  }
  if (named.length > 0) checks.push({ what: "features", run: () => checkNames(probe, named) });
  for (const { series, windowed } of groupings) {
    const unfiltered = { ...series, filter: ALL_USAGE };
    checks.push({ what: `grouping ${series.grouping}`, run: () => checkGrouping(probe, unfiltered, windowed) });
  }
  if (windowless.length > 0) checks.push({ what: "dates", run: () => checkUndated(probe, windowless) });
  if (all.some(({ windowed }) => windowed)) checks.push({ what: "window", run: () => checkWindow(probe) });
  for (const one of filters.filter(({ series }) => filterKey(series.filter) !== NO_CONDITIONS)) {
    checks.push({ what: `filter ${one.series.filter.name}`, run: () => checkFilter(probe, one) });
  }
  return checks;
}

type CheckResult = Omit<Finding, "what">;

const ok = (text: string): CheckResult => ({ state: "ok", text });
const warn = (text: string): CheckResult => ({ state: "warn", text });
const fail = (text: string): CheckResult => ({ state: "fail", text });

/** Longer than all attempts of a call take together, unless the service asks for a pause. */
const FINDING_SECONDS_MAX = 180;

async function findingOf({ what, run }: Check): Promise<Finding> {
  const { promise: late, resolve } = Promise.withResolvers<CheckResult>();
  const text = `no result within ${FINDING_SECONDS_MAX} s; the check continues without it`;
  const timer = setTimeout(() => resolve({ state: "fail", text }), FINDING_SECONDS_MAX * 1000);
  try {
    return { what, ...(await Promise.race([run(), late])) };
  } catch (error) {
    if (!(error instanceof AppError) || error.code === "stopped") throw error;
    return { what, state: "fail", text: errorText(error) };
  } finally {
    clearTimeout(timer);
  }
}

function keyResult(project: Project, scopes: readonly string[] | undefined, isRead: boolean): CheckResult {
  if (!scopes) return warn("the service does not say which scopes a key has");
  const list = scopes.map(toPrintableLine).join(", ") || "(none)";
  if (readsUsage(scopes)) return ok(`scopes ${list}`);
  return isRead
    ? fail(`the key of "${project.name}" has the scopes ${list}; reading usage needs project:read`)
    : ok(`scopes ${list}; it can't read usage, and no export reads this project`);
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

/** The names in a filter that the service may not know. */
function namesOf({ features, dimensions: { model, tags } }: Filter): string[] {
  return [...Object.keys(features), model, tags].filter((name) => name !== undefined);
}

async function checkNames(probe: Probe, filters: readonly CheckedSeries[]): Promise<CheckResult> {
  const { project, filterCheck } = probe;
  let warning: string | undefined;
  for (const { series, windowed, strictness } of filters) {
    const { filter } = series;
    const scope = { project, window: windowed ? lastDays(probe, RECENT_DAYS) : undefined };
    for (const found of await filterCheck.findings(scope, filter)) {
      const text = `filter "${filter.name}": ${found.text}`;
      if (isRejected(found) && strictness === "error") return { state: "fail", text };
      warning ??= text;
    }
  }
  if (warning !== undefined) return warn(warning);
  const names = filters.flatMap(({ series }) => namesOf(series.filter));
  return ok(`known: ${[...new Set(names)].join(", ")}`);
}

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
  await probe.groupings.require(request, answer, (other) => fetchAnswer(probe, other));
  const rows = rowCount(await slicesOf(probe, request, answer));
  return ok(`${rows} ${rows === 1 ? "row" : "rows"}${windowed ? " yesterday" : ""}`);
}

/** If only the day before yesterday has usage, the service may leave out the last day of a window. */
async function checkWindow(probe: Probe): Promise<CheckResult> {
  const day = addDays(probe.today, -1);
  const one = await readSlices(probe, totalOf(probe), lastDays(probe, 1));
  const two = await readSlices(probe, totalOf(probe), lastDays(probe, 2));
  const before = rowCount(two.filter((slice) => slice.day < day));
  if (rowCount(one) > 0) return ok("start and end are honoured, and end is the last day");
  return before > 0
    ? warn(`no usage on ${day}, some the day before: the service may leave out the last day of a window`)
    : ok("start and end are honoured; without usage yesterday it is unknown whether end is the last day");
}

/** Whether the numbers are those of the filter: a service that ignores an unknown name answers with all usage. */
async function checkFilter(probe: Probe, { series, windowed, strictness }: CheckedSeries): Promise<CheckResult> {
  const { filterCheck, dialects } = probe;
  const strict = strictness === "off" ? "warn" : strictness;
  const request = {
    series: { ...totalOf(probe), filter: series.filter },
    window: windowed ? lastDays(probe, RECENT_DAYS) : undefined,
  };
  // The total is read first, because numbers grow between two readings.
  await filterCheck.readTotal(request, strict);
  const all = await readSlices(probe, totalOf(probe), request.window);
  const own = await readSlices(probe, request.series, request.window);
  if (rowCount(all) === 0) return ok("no usage, so it is unknown whether it narrows anything");
  const doubt = await filterCheck.doubtOf(request, own, await dialects.forRequest(request), strict);
  if (doubt?.kind === "filter-ignored") return { state: strict === "error" ? "fail" : "warn", text: doubt.reason };
  if (rowCount(own) === 0) return warn("no usage with it on days that have some without it");
  const isAll = effectOf(dayTotals(all), dayTotals(own)) === "same";
  return ok(isAll ? "all usage fits it" : "narrows the numbers");
}

function totalOf({ project }: Probe): Series {
  return { project, grouping: "none", filter: ALL_USAGE };
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

/** The last complete days. */
function lastDays({ today }: Probe, count: number): Window {
  return { start: addDays(today, -count), end: addDays(today, -1) };
}

function rowCount(slices: readonly NormalisedSlice[]): number {
  return slices.reduce((sum, slice) => sum + slice.rowCount, 0);
}

// Finds out whether the answers to an export without a window carry dates and, if not, which span of time they provably cover.

type Proof = { readonly span: ProvenSpan; readonly by: string };

/** `jobs` are exports without a window. */
async function checkUndated(probe: Probe, jobs: readonly ExportJob[]): Promise<CheckResult> {
  const declared = jobs.map(({ undated }) => undated).find((undated) => undated !== "snapshot");
  const answer = await readIgnoringDays(probe, undefined);
  if (!answer.some(({ undated }) => undated)) {
    return declared === undefined
      ? ok("the answers name their days")
      : warn(`the answers name their days, so "undated": "${declared}" has no effect`);
  }
  if (rowCount(answer) === 0) {
    return ok("no usage, so it is unknown whether the answers carry dates");
  }
  const proof = (await provenByWindow(probe, answer)) ?? (await provenBySteps(probe));
  return declared === undefined ? undeclaredResult(proof) : declaredResult(declared, proof);
}

const WITHOUT_DATE =
  "the answers carry no date: they are snapshots in bi.usage_snapshot, and in no usage view, total or report";

const HOW_TO_PROVE =
  "of which span they are is not proved yet: let the export run several times a day for some days, and check again";

function undeclaredResult(proof: Proof | undefined): CheckResult {
  if (!proof) return warn(`${WITHOUT_DATE}; ${HOW_TO_PROVE}`);
  if (proof.span === "running-total") return warn(`${WITHOUT_DATE}; ${proof.by}`);
  const may = `the configuration may say ${declaration(proof.span)}`;
  return warn(`${WITHOUT_DATE}; ${proof.by}, so ${may}`);
}

function declaredResult(declared: Undated, proof: Proof | undefined): CheckResult {
  const configured = `"undated": "${declared}" is configured`;
  if (!proof) return fail(`${configured}, and the answers carry no date; ${HOW_TO_PROVE}, without it`);
  if (proof.span === declared) return ok(`the answers carry no date; ${proof.by}, as ${configured}`);
  const instead = proof.span === "running-total" ? "remove it" : `it is ${declaration(proof.span)}`;
  return fail(`${configured}, and ${proof.by}: ${instead}`);
}

function declaration(span: "day" | "day-before"): string {
  return span === "day"
    ? '"undated": "day", which stores them under the day of the run (what is used after it is missing, so run late in the UTC day)'
    : '"undated": "day-before", which stores them under the day before the run ("undated": "day" is the day of the run itself)';
}

const BY_STEPS: Readonly<Record<ProvenSpan, string>> = {
  "running-total": "they grew within a day and never fell, as a running total does, which is no usage of a day",
  day: "they grew within each day and fell by more than half at every midnight (UTC): they count from midnight on",
  "day-before": "they stayed the same within each day, and fell from day to day as only the usage of a day does",
};

/** Proves the span by how the stored answers without a date changed from one to the next. */
async function provenBySteps({ db, project }: Probe): Promise<Proof | undefined> {
  const span = db && provenSpan(await snapshotSteps(db, project.id));
  return span && { span, by: BY_STEPS[span] };
}

/**
 * Proves the span by requests with windows, which a service may honour although its answers carry no date. It honours them if the
 * answers for two single days add up to the answer for both. The answer without a window then covers the day whose answer it equals.
 */
async function provenByWindow(probe: Probe, answer: readonly NormalisedSlice[]): Promise<Proof | undefined> {
  const yesterday = addDays(probe.today, -1);
  const before = addDays(yesterday, -1);
  const of = (start: string, end: string) => readIgnoringDays(probe, { start, end });
  const [one, other, both] = [await of(yesterday, yesterday), await of(before, before), await of(before, yesterday)];
  const [a, b, sum] = [amountOf(one), amountOf(other), amountOf(both)];
  if (a <= 0 || b <= 0 || Math.abs(a + b - sum) > 1e-9 * sum) return undefined;
  const by = (day: string) =>
    `asked for one day and for two, the service honours the window; its answer to none is ${day}`;
  if (isSame(answer, one)) return { span: "day-before", by: by("yesterday's usage") };
  const today = await of(probe.today, probe.today);
  return isSame(answer, today) ? { span: "day", by: by("today's usage up to now") } : undefined;
}

/** Requests all usage, and reads the answer as one without a window, which need not name any day. */
async function readIgnoringDays(probe: Probe, window: Window | undefined): Promise<NormalisedSlice[]> {
  const series = totalOf(probe);
  return slicesOf(probe, { series, window: undefined }, await fetchAnswer(probe, { series, window }));
}

const REQUESTS = METRICS.indexOf("requests");
const HOURS = METRICS.indexOf("hours");

/** A sum of doubles, precise enough for a comparison. */
function amountOf(answer: readonly NormalisedSlice[]): number {
  const amounts = answer.flatMap(({ columns: { groups, metrics } }) =>
    groups.map((_, row) => metrics[REQUESTS]?.[row] ?? metrics[HOURS]?.[row] ?? 0),
  );
  return amounts.reduce<number>((sum, amount) => sum + Number(amount), 0);
}

function isSame(a: readonly NormalisedSlice[], b: readonly NormalisedSlice[]): boolean {
  const numbers = (answer: readonly NormalisedSlice[]) =>
    answer.flatMap(({ rowCount, contentHash }) => (rowCount > 0 ? [contentHash] : [])).join();
  return numbers(a) === numbers(b);
}
