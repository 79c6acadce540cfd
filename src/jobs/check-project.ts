// What `check` finds out by calling the service: whether a project's key works, and whether the service honours what is sent.

import type { RotationConfig } from "../config/config.ts";
import { AppError, errorText } from "../errors.ts";
import { holdsScope } from "../keys/policy.ts";
import { testSink } from "../keys/sinks.ts";
import type { Secret } from "../secret.ts";
import { fetchToken } from "../service/keys.ts";
import type { Service } from "../service/service.ts";
import { dependsOnDialect, fetchBreakdown, groupingName } from "../service/usage.ts";
import { toPrintableLine } from "../text.ts";
import { addDays, type Day, type Window } from "../usage/days.ts";
import { dayTotals, effectOf } from "../usage/filter-effect.ts";
import { METRICS } from "../usage/metrics.ts";
import { type NormalisedSlice, normalise } from "../usage/normalise.ts";
import { type ExportJob, seriesOf, type UsageRequest } from "../usage/plan.ts";
import type { Filter, Project, Series } from "../usage/series.ts";
import { type ProvenSpan, provenSpan, type SnapshotStep, type Undated } from "../usage/slice.ts";
import { DEFAULT_DIALECT } from "./dialects.ts";
import type { Dialects, GroupingCheck, KeyRing } from "./export-context.ts";
import { type FilterCheck, isRejected, type Strictness } from "./filter-check.ts";

export type Finding = {
  readonly what: string;
  /** "warn": not wrong, but worth a look. */
  readonly state: "ok" | "warn" | "fail";
  readonly text: string;
};

export type ProjectCheck = {
  readonly service: Service;
  readonly project: Project;
  readonly use: <T>(call: (key: Secret) => Promise<T>) => Promise<T>;
  readonly jobs: readonly ExportJob[];
  readonly useToRotate: KeyRing["useToRotate"];
  readonly rotations: readonly RotationConfig[];
  readonly features: FilterCheck;
  readonly dialects: Dialects;
  readonly groupings: GroupingCheck;
  readonly today: Day;
  /** The changes between stored answers without a date; empty without a database. */
  readonly snapshotSteps: (project: Project) => Promise<readonly SnapshotStep[]>;
  readonly signal: AbortSignal;
};

export async function checkProject(probe: ProjectCheck): Promise<Finding[]> {
  const isRead = probe.jobs.some(({ projects }) => projects.some(({ id }) => id === probe.project.id));
  let mayRead = false;
  const key = await findingOf("key", async () => {
    const { result, scopes } = await checkKey(probe, isRead);
    // If the service does not tell a key's scopes, a usage request shows whether the key may read, except for a key that creates
    // other keys.
    mayRead = scopes ? READING_SCOPES.some((scope) => holdsScope(scopes, scope)) : probe.rotations.length === 0;
    return result;
  });
  // Without a key that works every other answer would be the same refusal.
  if (key.state === "fail") return [key];
  const findings = [key];
  for (const job of probe.rotations) {
    findings.push(await findingOf(`rotation ${job.name}`, () => checkRotation(probe, job)));
  }
  const series = probe.jobs.flatMap((job) =>
    seriesOf(job, { projects: [probe.project.name] }).map((one) => ({
      series: one,
      windowed: job.window !== undefined,
      strictness: job.checkFeatures,
    })),
  );
  if (!isRead && mayRead) findings.push(await findingOf("usage", () => checkGrouping(probe, totalOf(probe), false)));
  const apart = series.find((one) => dependsOnDialect(one.series));
  if (apart && probe.service.dialect === "auto") {
    findings.push(await findingOf("dialect", () => checkDialect(probe, apart.windowed)));
  }
  const filters = new Map(series.map((one) => [one.series.filter.name, one]));
  const groupings = new Map(series.map((one) => [one.series.grouping, one]));
  const named = [...filters.values()].filter(
    ({ series: { filter }, strictness }) => strictness !== "off" && namesOf(filter).length > 0,
  );
  if (named.length > 0) findings.push(await findingOf("features", () => checkNames(probe, named)));
  for (const { series: one, windowed } of groupings.values()) {
    const unfiltered = { ...one, filter: UNFILTERED };
    findings.push(await findingOf(`grouping ${one.grouping}`, () => checkGrouping(probe, unfiltered, windowed)));
  }
  const windowless = probe.jobs.filter((job) => !job.window && job.projects.some(({ id }) => id === probe.project.id));
  if (windowless.length > 0) {
    const steps = await probe.snapshotSteps(probe.project);
    findings.push(await findingOf("dates", () => checkUndated(probe, totalOf(probe), windowless, steps)));
  }
  if (series.some(({ windowed }) => windowed)) findings.push(await findingOf("window", () => checkWindow(probe)));
  for (const checked of filters.values()) {
    const { series: one } = checked;
    if (hasNoConditions(one.filter)) continue;
    findings.push(await findingOf(`filter ${one.filter.name}`, () => checkFilter(probe, checked)));
  }
  return findings;
}

/** Either lets a key read the breakdown; which one it needs is told differently. */
const READING_SCOPES = ["project:read", "usage:read"];

type CheckResult = Omit<Finding, "what">;

/** Longer than all attempts of a call take together, unless the service asks for a pause. */
const FINDING_SECONDS_MAX = 180;

async function findingOf(what: string, ask: () => Promise<CheckResult>): Promise<Finding> {
  const { promise: late, resolve } = Promise.withResolvers<CheckResult>();
  const text = `no result within ${FINDING_SECONDS_MAX} s; the check continues without it`;
  const timer = setTimeout(() => resolve({ state: "fail", text }), FINDING_SECONDS_MAX * 1000);
  try {
    return { what, ...(await Promise.race([ask(), late])) };
  } catch (error) {
    if (!(error instanceof AppError) || error.code === "stopped") throw error;
    return { what, state: "fail", text: errorText(error) };
  } finally {
    clearTimeout(timer);
  }
}

const UNFILTERED: Filter = { name: "all", features: {}, dimensions: {} };

function hasNoConditions({ features, dimensions }: Filter): boolean {
  return Object.keys(features).length + Object.keys(dimensions).length === 0;
}

type KeyResult = { readonly result: CheckResult; readonly scopes: readonly string[] | undefined };

async function checkKey({ service, use, project, signal }: ProjectCheck, isRead: boolean): Promise<KeyResult> {
  const token = await use((key) => fetchToken(service, key, signal));
  if (!token) {
    return { result: { state: "warn", text: "the service does not say which scopes a key has" }, scopes: undefined };
  }
  const scopes = token.scopes.map(toPrintableLine).join(", ") || "(none)";
  const told = (state: Finding["state"], text: string): KeyResult => ({
    result: { state, text },
    scopes: token.scopes,
  });
  if (READING_SCOPES.some((scope) => holdsScope(token.scopes, scope))) return told("ok", `scopes ${scopes}`);
  return isRead
    ? told("fail", `the key of "${project.name}" has the scopes ${scopes}; reading usage needs project:read`)
    : told("ok", `scopes ${scopes}; it can't read usage, and no export reads this project`);
}

/** Whether the key that would create may, and whether every sink would take what it makes. */
async function checkRotation(
  { service, useToRotate, signal }: ProjectCheck,
  job: RotationConfig,
): Promise<CheckResult> {
  for (const sink of job.deliver) await testSink(sink);
  const token = await useToRotate(job, (key) => fetchToken(service, key, signal));
  const which = job.createWith ? "the key of createWith" : "the key";
  if (!token) return { state: "warn", text: `the service does not say whether ${which} may create keys` };
  if (holdsScope(token.scopes, "keys:write")) {
    return { state: "ok", text: `${which} may create keys, and every sink can be written` };
  }
  const has = token.scopes.map(toPrintableLine).join(", ");
  const mend = job.createWith ? "" : '; or name another in createWith, such as { "env": "NAME" }';
  return { state: "fail", text: `${which} may not create keys: it needs keys:write, and has ${has}${mend}` };
}

type CheckedFilter = {
  readonly series: Series;
  readonly windowed: boolean;
  readonly strictness: Strictness;
};

/** How many days are requested for a check by numbers: a feature may not be used every day. */
const RECENT_DAYS = 7;

/** The names in a filter that the service may not know. */
function namesOf({ features, dimensions: { model, tags } }: Filter): string[] {
  return [...Object.keys(features), model, tags].filter((name) => name !== undefined);
}

function recentDays({ today }: ProjectCheck): Window {
  return { start: addDays(today, -RECENT_DAYS), end: addDays(today, -1) };
}

async function checkNames(probe: ProjectCheck, filters: readonly CheckedFilter[]): Promise<CheckResult> {
  const { project, features } = probe;
  let warning: string | undefined;
  for (const { series, windowed, strictness } of filters) {
    const { filter } = series;
    for (const found of await features.findings(project, filter, windowed ? recentDays(probe) : undefined)) {
      const text = `filter "${filter.name}": ${found.text}`;
      if (isRejected(found) && strictness === "error") return { state: "fail", text };
      warning ??= text;
    }
  }
  if (warning !== undefined) return { state: "warn", text: warning };
  const names = filters.flatMap(({ series }) => namesOf(series.filter));
  return { state: "ok", text: `known: ${[...new Set(names)].join(", ")}` };
}

async function checkDialect({ dialects, project }: ProjectCheck, windowed: boolean): Promise<CheckResult> {
  const dialect = await dialects.probe(project, windowed);
  if (dialect !== undefined) return { state: "ok", text: `"${dialect}", as the service's answers show` };
  return {
    state: "warn",
    text: `no usage shows which dialect the service speaks: "${DEFAULT_DIALECT}" is used until some does; set service.dialect if you know it`,
  };
}

async function checkGrouping(probe: ProjectCheck, series: Series, windowed: boolean): Promise<CheckResult> {
  const window = windowed ? yesterdayOf(probe) : undefined;
  const request = { series, window };
  const answer = await fetchAnswer(probe, request);
  await probe.groupings.require(request, answer, (other) => fetchAnswer(probe, other));
  const rows = rowCount(await slicesOf(probe, request, answer));
  return { state: "ok", text: `${rows} ${rows === 1 ? "row" : "rows"}${windowed ? " yesterday" : ""}` };
}

/** A window of two days and one of the last of them must tell the same of that day, or `end` is not the last day. */
async function checkWindow(probe: ProjectCheck): Promise<CheckResult> {
  const yesterday = yesterdayOf(probe);
  const one = await readSlices(probe, totalOf(probe), yesterday);
  const two = await readSlices(probe, totalOf(probe), { start: addDays(yesterday.end, -1), end: yesterday.end });
  const before = two.find(({ day }) => day < yesterday.end)?.rows.length ?? 0;
  if (rowCount(one) > 0) return { state: "ok", text: "start and end are honoured, and end is the last day" };
  return before > 0
    ? {
        state: "warn",
        text: `no usage on ${yesterday.end}, some the day before: the service may leave out the last day of a window`,
      }
    : {
        state: "ok",
        text: "start and end are honoured; without usage yesterday it can't be told whether end is the last day",
      };
}

/** Whether the numbers are those of the filter: a service that does not know a name answers all the same. */
async function checkFilter(probe: ProjectCheck, { series, windowed, strictness }: CheckedFilter): Promise<CheckResult> {
  const { features, dialects } = probe;
  const strict = strictness === "off" ? "warn" : strictness;
  const request = {
    series: { ...totalOf(probe), filter: series.filter },
    window: windowed ? recentDays(probe) : undefined,
  };
  // The total is read first, because numbers grow between two readings.
  await features.readTotal(request, strict);
  const all = await readSlices(probe, totalOf(probe), request.window);
  const own = await readSlices(probe, request.series, request.window);
  if (rowCount(all) === 0) return { state: "ok", text: "no usage, so it can't be told whether it narrows anything" };
  const doubt = await features.doubtOf(request, own, await dialects.forRequest(request), strict);
  if (doubt?.kind === "filter-ignored") return { state: strict === "error" ? "fail" : "warn", text: doubt.reason };
  if (rowCount(own) === 0) return { state: "warn", text: "no usage with it on days that have some without it" };
  const isAll = effectOf(dayTotals(all), dayTotals(own)) === "same";
  return { state: "ok", text: isAll ? "all usage fits it" : "narrows the numbers" };
}

function totalOf({ project }: ProjectCheck): Series {
  return { project, grouping: "none", filter: UNFILTERED };
}

async function readSlices(probe: ProjectCheck, series: Series, window: Window | undefined): Promise<NormalisedSlice[]> {
  const request = { series, window };
  return slicesOf(probe, request, await fetchAnswer(probe, request));
}

async function slicesOf(probe: ProjectCheck, request: UsageRequest, answer: unknown): Promise<NormalisedSlice[]> {
  const dialect = await probe.dialects.forRequest(request);
  return normalise(request, answer, probe.today, groupingName(request.series.grouping, dialect));
}

async function fetchAnswer(probe: ProjectCheck, request: UsageRequest): Promise<unknown> {
  const dialect = await probe.dialects.forRequest(request);
  const sent = await probe.features.asSent(request, dialect);
  return probe.use((key) => fetchBreakdown(probe.service, sent, key, probe.signal, { dialect }));
}

function yesterdayOf({ today }: ProjectCheck): Window {
  const yesterday = addDays(today, -1);
  return { start: yesterday, end: yesterday };
}

function rowCount(slices: readonly NormalisedSlice[]): number {
  return slices.reduce((sum, { rows }) => sum + rows.length, 0);
}

// Finds out whether the answers to an export without a window carry dates and, if not, what can be proved about their span.

type UndatedResult = Omit<Finding, "what">;

type Proof = { readonly span: ProvenSpan; readonly by: string };

/** `jobs` are exports without a window; `total` is the project's series of all usage. */
async function checkUndated(
  probe: ProjectCheck,
  total: Series,
  jobs: readonly ExportJob[],
  steps: readonly SnapshotStep[],
): Promise<UndatedResult> {
  const declared = jobs.map(({ undated }) => undated).find((undated) => undated !== "snapshot");
  const answer = await readIgnoringDays(probe, total, undefined);
  if (!answer.some(({ undated }) => undated)) {
    return declared === undefined
      ? { state: "ok", text: "the answers name their days" }
      : { state: "warn", text: `the answers name their days, so "undated": "${declared}" has no effect` };
  }
  if (rowsOf(answer) === 0)
    return { state: "ok", text: "no usage, so it can't be told whether the answers carry dates" };
  const proof = (await provenByWindow(probe, total, answer)) ?? provenBySteps(steps);
  return declared === undefined ? undeclaredResult(proof) : declaredResult(declared, proof);
}

const WITHOUT_DATE =
  "the answers carry no date: they are snapshots in bi.usage_snapshot, and in no usage view, total or report";

const HOW_TO_PROVE =
  "of which span they are is not proved yet: let the export run several times a day for some days, and check again";

function undeclaredResult(proof: Proof | undefined): UndatedResult {
  if (!proof) return { state: "warn", text: `${WITHOUT_DATE}; ${HOW_TO_PROVE}` };
  if (proof.span === "running-total") return { state: "warn", text: `${WITHOUT_DATE}; ${proof.by}` };
  const may = `the configuration may say ${declaration(proof.span)}`;
  return { state: "warn", text: `${WITHOUT_DATE}; ${proof.by}, so ${may}` };
}

function declaredResult(declared: Undated, proof: Proof | undefined): UndatedResult {
  const said = `"undated": "${declared}" is configured`;
  if (!proof) return { state: "fail", text: `${said}, and the answers carry no date; ${HOW_TO_PROVE}, without it` };
  if (proof.span === declared) return { state: "ok", text: `the answers carry no date; ${proof.by}, as ${said}` };
  const instead = proof.span === "running-total" ? "remove it" : `it is ${declaration(proof.span)}`;
  return { state: "fail", text: `${said}, and ${proof.by}: ${instead}` };
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

function provenBySteps(steps: readonly SnapshotStep[]): Proof | undefined {
  const span = provenSpan(steps);
  return span && { span, by: BY_STEPS[span] };
}

/**
 * A service may honour a window without naming it. Then the answer without a window equals the answer for one day, and differs
 * from that for a longer window.
 */
async function provenByWindow(
  probe: ProjectCheck,
  total: Series,
  answer: readonly NormalisedSlice[],
): Promise<Proof | undefined> {
  const yesterday = addDays(probe.today, -1);
  const before = addDays(yesterday, -1);
  const of = (start: string, end: string) => readIgnoringDays(probe, total, { start, end });
  const [one, other, both] = [await of(yesterday, yesterday), await of(before, before), await of(before, yesterday)];
  const [a, b, sum] = [amountOf(one), amountOf(other), amountOf(both)];
  if (a <= 0 || b <= 0 || Math.abs(a + b - sum) > 1e-9 * sum) return undefined;
  const by = (day: string) =>
    `asked for one day and for two, the service honours the window; its answer to none is ${day}`;
  if (isSame(answer, one)) return { span: "day-before", by: by("yesterday's usage") };
  const today = await of(probe.today, probe.today);
  return isSame(answer, today) ? { span: "day", by: by("today's usage up to now") } : undefined;
}

/** The days of the answer are ignored. */
async function readIgnoringDays(
  probe: ProjectCheck,
  series: Series,
  window: Window | undefined,
): Promise<NormalisedSlice[]> {
  const { service, today, signal } = probe;
  const dialect = await probe.dialects.forRequest({ series, window });
  const answer = await probe.use((key) => fetchBreakdown(service, { series, window }, key, signal, { dialect }));
  return normalise({ series, window: undefined }, answer, today);
}

function rowsOf(answer: readonly NormalisedSlice[]): number {
  return answer.reduce((sum, { rows }) => sum + rows.length, 0);
}

const REQUESTS = METRICS.indexOf("requests");
const HOURS = METRICS.indexOf("hours");

/** A sum of doubles, precise enough for a comparison. */
function amountOf(answer: readonly NormalisedSlice[]): number {
  const rows = answer.flatMap((slice) => slice.rows);
  return rows.reduce((sum, { metrics: { values } }) => sum + Number(values[REQUESTS] ?? values[HOURS] ?? 0), 0);
}

function isSame(a: readonly NormalisedSlice[], b: readonly NormalisedSlice[]): boolean {
  const numbers = (answer: readonly NormalisedSlice[]) =>
    JSON.stringify(answer.flatMap(({ rows }) => rows.map(({ metrics }) => metrics)));
  return numbers(a) === numbers(b);
}
