// What the checks of a project have in common: their results, and the usage requests that they make.

import { fetchBreakdown, groupingName } from "../service/usage.ts";
import type { NormalisedSlice } from "../usage/columns.ts";
import type { Day, Window } from "../usage/days.ts";
import { normalise } from "../usage/normalise.ts";
import type { UsageRequest } from "../usage/plan.ts";
import { ALL_USAGE, type Project, type Series, type Source } from "../usage/series.ts";
import type { ServiceContext } from "./export-context.ts";
import type { FilterCheck } from "./filter-check.ts";

export type Finding = {
  readonly what: string;
  /** "warn": a person should look at it; it may be as intended. */
  readonly state: "ok" | "warn" | "fail";
  readonly text: string;
};

/** What was found of one subject of the check. */
export type FindingGroup = { readonly of: string; readonly findings: readonly Finding[] };

/** What the checks of one project need. */
export type Probe = ServiceContext & {
  readonly filterCheck: FilterCheck;
  readonly source: Source;
  readonly project: Project;
  readonly today: Day;
};

export type CheckResult = Omit<Finding, "what">;

export const ok = (text: string): CheckResult => ({ state: "ok", text });
export const warn = (text: string): CheckResult => ({ state: "warn", text });
export const fail = (text: string): CheckResult => ({ state: "fail", text });

/** All usage of the project, or all that it costs. */
export function totalOf({ project, source }: Probe): Series {
  return { project, source, grouping: "none", filter: ALL_USAGE };
}

export async function readSlices(probe: Probe, series: Series, window: Window | undefined): Promise<NormalisedSlice[]> {
  const request = { series, window };
  return slicesOf(probe, request, await fetchAnswer(probe, request));
}

export async function slicesOf(probe: Probe, request: UsageRequest, answer: unknown): Promise<NormalisedSlice[]> {
  const dialect = await probe.dialects.forRequest(request);
  return normalise(request, answer, probe.today, groupingName(request.series.grouping, dialect));
}

export async function fetchAnswer(probe: Probe, request: UsageRequest): Promise<unknown> {
  const { app, service, keys, dialects, filterCheck, project } = probe;
  const dialect = await dialects.forRequest(request);
  const sent = await filterCheck.asSent(request, dialect);
  return keys.use(project, (key) => fetchBreakdown(service, sent, key, app.signal, { dialect }));
}

export function rowCount(slices: readonly NormalisedSlice[]): number {
  return slices.reduce((sum, slice) => sum + slice.rowCount, 0);
}
