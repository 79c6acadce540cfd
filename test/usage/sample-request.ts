// Complete requests, jobs and answers, in which a test sets only the parts that matter to it.

import type { Window } from "../../src/usage/days.ts";
import type { Source } from "../../src/usage/dimensions.ts";
import type { ExportJob, UsageRequest } from "../../src/usage/export-plan.ts";
import type { Filter, Grouping } from "../../src/usage/series.ts";

export const ALL_USAGE: Filter = { name: "all", features: {}, dimensions: {} };
export const PROJECT = { id: "p1", name: "production" };

export const WINDOW: Window = { start: "2026-03-16", end: "2026-03-17" };
/** The day of the run: the one after the window. */
export const RUN_DAY = "2026-03-18";

export function sampleJob(part: Partial<ExportJob> = {}): ExportJob {
  return {
    ...{ name: "nightly", source: "usage", schedule: "15 2 * * *", timezone: "UTC" },
    ...{ projects: [PROJECT], groupings: ["none"], filters: [ALL_USAGE], window: { days: 7, today: false } },
    ...{ checkFeatures: "error", emptyGuard: "confirm", undated: "snapshot", cliffGuard: "confirm" },
    ...part,
  };
}

export function sampleRequest(
  grouping: Grouping,
  window: Window | undefined = WINDOW,
  source: Source = "usage",
): UsageRequest {
  return { series: { project: PROJECT, source, grouping, filter: ALL_USAGE }, window };
}

/** A request without a window: the service chooses the days. */
export function windowless(grouping: Grouping): UsageRequest {
  return { series: { project: PROJECT, source: "usage", grouping, filter: ALL_USAGE }, window: undefined };
}

/** The service's answer to a request for WINDOW. */
export function sampleAnswer(results: unknown, part: Readonly<Record<string, unknown>> = {}): unknown {
  return { ...WINDOW, resolution: { units: "day", amount: 1 }, results, ...part };
}

/** A row of one day, with its dates and dimensions inside "grouping". */
export function sampleRow(
  day: string,
  dimensions: Readonly<Record<string, unknown>> = {},
  metrics: Readonly<Record<string, unknown>> = { requests: 1 },
): Record<string, unknown> {
  return { ...metrics, grouping: { start: day, end: day, ...dimensions } };
}
