// Asks the service what `check` tells: whether a project's key works, and whether the service honours what is sent.

import { dependsOnDialect, fetchBreakdown, groupingName } from "../api/breakdown.ts";
import { fetchToken } from "../api/keys.ts";
import type { Service } from "../api/service.ts";
import type { RotationConfig } from "../config/config.ts";
import { AppError, errorText } from "../errors.ts";
import { testSink } from "../keys/deliver.ts";
import { holdsScope } from "../keys/scopes.ts";
import { printable } from "../printable.ts";
import type { Secret } from "../secret.ts";
import { addDays, type Day, type Window } from "../usage/day.ts";
import { dayTotals, effectOf } from "../usage/filter-effect.ts";
import { type NormalisedSlice, normalise } from "../usage/normalise.ts";
import { type ExportJob, seriesOf, type UsageRequest } from "../usage/plan.ts";
import type { Filter, Project, Series } from "../usage/series.ts";
import type { SnapshotStep } from "../usage/undated.ts";
import { DEFAULT_DIALECT, type Dialects } from "./dialects.ts";
import { type FeatureCheck, isWrong, type Strictness } from "./feature-check.ts";
import type { GroupingCheck } from "./grouping-check.ts";
import type { KeyRing } from "./keys-in-use.ts";
import { probeUndated } from "./undated-probe.ts";

export type Finding = {
  readonly what: string;
  /** "warn": not wrong, but worth a look. */
  readonly state: "ok" | "warn" | "fail";
  readonly text: string;
};

export type Probe = {
  readonly service: Service;
  readonly project: Project;
  readonly use: <T>(call: (key: Secret) => Promise<T>) => Promise<T>;
  readonly jobs: readonly ExportJob[];
  readonly useToRotate: KeyRing["useToRotate"];
  readonly rotations: readonly RotationConfig[];
  readonly features: FeatureCheck;
  readonly dialects: Dialects;
  readonly groupings: GroupingCheck;
  readonly today: Day;
  /** The changes between stored answers without a date; empty without a database. */
  readonly snapshotSteps: (project: Project) => Promise<readonly SnapshotStep[]>;
  readonly signal: AbortSignal;
};

export async function probeProject(probe: Probe): Promise<Finding[]> {
  const isRead = probe.jobs.some(({ projects }) => projects.some(({ id }) => id === probe.project.id));
  let mayRead = false;
  const key = await finding("key", async () => {
    const { told, scopes } = await probeKey(probe, isRead);
    // If the service does not tell a key's scopes, a usage request shows whether the key may read, except for a key that creates
    // other keys.
    mayRead = scopes ? READING_SCOPES.some((scope) => holdsScope(scopes, scope)) : probe.rotations.length === 0;
    return told;
  });
  // Without a key that works every other answer would be the same refusal.
  if (key.state === "fail") return [key];
  const findings = [key];
  for (const job of probe.rotations) {
    findings.push(await finding(`rotation ${job.name}`, () => probeRotation(probe, job)));
  }
  const series = probe.jobs.flatMap((job) =>
    seriesOf(job, { projects: [probe.project.name] }).map((one) => ({
      series: one,
      windowed: job.window !== undefined,
      strictness: job.checkFeatures,
    })),
  );
  if (!isRead && mayRead) findings.push(await finding("usage", () => probeGrouping(probe, totalOf(probe), false)));
  const apart = series.find((one) => dependsOnDialect(one.series));
  if (apart && probe.service.dialect === "auto") {
    findings.push(await finding("dialect", () => probeDialect(probe, apart.windowed)));
  }
  const filters = new Map(series.map((one) => [one.series.filter.name, one]));
  const groupings = new Map(series.map((one) => [one.series.grouping, one]));
  const named = [...filters.values()].filter(
    ({ series: { filter }, strictness }) => strictness !== "off" && namesOf(filter).length > 0,
  );
  if (named.length > 0) findings.push(await finding("features", () => probeNames(probe, named)));
  for (const { series: one, windowed } of groupings.values()) {
    const unfiltered = { ...one, filter: UNFILTERED };
    findings.push(await finding(`grouping ${one.grouping}`, () => probeGrouping(probe, unfiltered, windowed)));
  }
  const windowless = probe.jobs.filter((job) => !job.window && job.projects.some(({ id }) => id === probe.project.id));
  if (windowless.length > 0) {
    const steps = await probe.snapshotSteps(probe.project);
    findings.push(await finding("dates", () => probeUndated(probe, totalOf(probe), windowless, steps)));
  }
  if (series.some(({ windowed }) => windowed)) findings.push(await finding("window", () => probeWindow(probe)));
  for (const checked of filters.values()) {
    const { series: one } = checked;
    if (isEmpty(one.filter)) continue;
    findings.push(await finding(`filter ${one.filter.name}`, () => probeFilter(probe, checked)));
  }
  return findings;
}

/** Either lets a key read the breakdown; which one it needs is told differently. */
const READING_SCOPES = ["project:read", "usage:read"];

type Told = Omit<Finding, "what">;

/** Longer than all attempts of a call take together, unless the service asks for a pause. */
const FINDING_SECONDS_MAX = 180;

async function finding(what: string, ask: () => Promise<Told>): Promise<Finding> {
  const { promise: late, resolve } = Promise.withResolvers<Told>();
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

function isEmpty({ features, dimensions }: Filter): boolean {
  return Object.keys(features).length + Object.keys(dimensions).length === 0;
}

type KeyTold = { readonly told: Told; readonly scopes: readonly string[] | undefined };

async function probeKey({ service, use, project, signal }: Probe, isRead: boolean): Promise<KeyTold> {
  const token = await use((key) => fetchToken(service, key, signal));
  if (!token) {
    return { told: { state: "warn", text: "the service does not say which scopes a key has" }, scopes: undefined };
  }
  const scopes = token.scopes.map(printable).join(", ") || "(none)";
  const told = (state: Finding["state"], text: string): KeyTold => ({ told: { state, text }, scopes: token.scopes });
  if (READING_SCOPES.some((scope) => holdsScope(token.scopes, scope))) return told("ok", `scopes ${scopes}`);
  return isRead
    ? told("fail", `the key of "${project.name}" has the scopes ${scopes}; reading usage needs project:read`)
    : told("ok", `scopes ${scopes}; it can't read usage, and no export reads this project`);
}

/** Whether the key that would create may, and whether every sink would take what it makes. */
async function probeRotation({ service, useToRotate, signal }: Probe, job: RotationConfig): Promise<Told> {
  for (const sink of job.deliver) await testSink(sink);
  const token = await useToRotate(job, (key) => fetchToken(service, key, signal));
  const which = job.createWith ? "the key of createWith" : "the key";
  if (!token) return { state: "warn", text: `the service does not say whether ${which} may create keys` };
  if (holdsScope(token.scopes, "keys:write")) {
    return { state: "ok", text: `${which} may create keys, and every sink can be written` };
  }
  const has = token.scopes.map(printable).join(", ");
  const mend = job.createWith ? "" : '; or name another in createWith, such as { "env": "NAME" }';
  return { state: "fail", text: `${which} may not create keys: it needs keys:write, and has ${has}${mend}` };
}

type CheckedFilter = {
  readonly series: Series;
  readonly windowed: boolean;
  readonly strictness: Strictness;
};

/** How many days are requested for a check by numbers: a feature may not be used every day. */
const PROOF_DAYS = 7;

/** The names in a filter that the service may not know. */
function namesOf({ features, dimensions: { model, tags } }: Filter): string[] {
  return [...Object.keys(features), model, tags].filter((name) => name !== undefined);
}

function recentDays({ today }: Probe): Window {
  return { start: addDays(today, -PROOF_DAYS), end: addDays(today, -1) };
}

async function probeNames(probe: Probe, filters: readonly CheckedFilter[]): Promise<Told> {
  const { project, features } = probe;
  let warning: string | undefined;
  for (const { series, windowed, strictness } of filters) {
    const { filter } = series;
    for (const found of await features.findings(project, filter, windowed ? recentDays(probe) : undefined)) {
      const text = `filter "${filter.name}": ${found.text}`;
      if (isWrong(found) && strictness === "error") return { state: "fail", text };
      warning ??= text;
    }
  }
  if (warning !== undefined) return { state: "warn", text: warning };
  const names = filters.flatMap(({ series }) => namesOf(series.filter));
  return { state: "ok", text: `known: ${[...new Set(names)].join(", ")}` };
}

async function probeDialect({ dialects, project }: Probe, windowed: boolean): Promise<Told> {
  const dialect = await dialects.find(project, windowed);
  if (dialect !== undefined) return { state: "ok", text: `"${dialect}", as the service's answers show` };
  return {
    state: "warn",
    text: `no usage shows which dialect the service speaks: "${DEFAULT_DIALECT}" is used until some does; set service.dialect if you know it`,
  };
}

async function probeGrouping(probe: Probe, series: Series, windowed: boolean): Promise<Told> {
  const window = windowed ? yesterdayOf(probe) : undefined;
  const request = { series, window };
  const answer = await ask(probe, request);
  await probe.groupings.require(request, answer, (other) => ask(probe, other));
  const rows = rowCount(await slicesOf(probe, request, answer));
  return { state: "ok", text: `${rows} ${rows === 1 ? "row" : "rows"}${windowed ? " yesterday" : ""}` };
}

/** A window of two days and one of the last of them must tell the same of that day, or `end` is not the last day. */
async function probeWindow(probe: Probe): Promise<Told> {
  const yesterday = yesterdayOf(probe);
  const one = await read(probe, totalOf(probe), yesterday);
  const two = await read(probe, totalOf(probe), { start: addDays(yesterday.end, -1), end: yesterday.end });
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
async function probeFilter(probe: Probe, { series, windowed, strictness }: CheckedFilter): Promise<Told> {
  const { features, dialects } = probe;
  const strict = strictness === "off" ? "warn" : strictness;
  const request = {
    series: { ...totalOf(probe), filter: series.filter },
    window: windowed ? recentDays(probe) : undefined,
  };
  // The total is read first, because numbers grow between two readings.
  await features.readTotal(request, strict);
  const all = await read(probe, totalOf(probe), request.window);
  const own = await read(probe, request.series, request.window);
  if (rowCount(all) === 0) return { state: "ok", text: "no usage, so it can't be told whether it narrows anything" };
  const doubt = await features.doubtOf(request, own, await dialects.of(request), strict);
  if (doubt?.kind === "filter-ignored") return { state: strict === "error" ? "fail" : "warn", text: doubt.reason };
  if (rowCount(own) === 0) return { state: "warn", text: "no usage with it on days that have some without it" };
  const isAll = effectOf(dayTotals(all), dayTotals(own)) === "same";
  return { state: "ok", text: isAll ? "all usage fits it" : "narrows the numbers" };
}

function totalOf({ project }: Probe): Series {
  return { project, grouping: "none", filter: UNFILTERED };
}

async function read(probe: Probe, series: Series, window: Window | undefined): Promise<NormalisedSlice[]> {
  const request = { series, window };
  return slicesOf(probe, request, await ask(probe, request));
}

async function slicesOf(probe: Probe, request: UsageRequest, answer: unknown): Promise<NormalisedSlice[]> {
  const dialect = await probe.dialects.of(request);
  return normalise(request, answer, probe.today, groupingName(request.series.grouping, dialect));
}

async function ask(probe: Probe, request: UsageRequest): Promise<unknown> {
  const dialect = await probe.dialects.of(request);
  const sent = await probe.features.asSent(request, dialect);
  return probe.use((key) => fetchBreakdown(probe.service, sent, key, probe.signal, { dialect }));
}

function yesterdayOf({ today }: Probe): Window {
  const yesterday = addDays(today, -1);
  return { start: yesterday, end: yesterday };
}

function rowCount(slices: readonly NormalisedSlice[]): number {
  return slices.reduce((sum, { rows }) => sum + rows.length, 0);
}
