// Decides which days a backfill reads. Pure.

import { type Day, daysOf, type Window } from "./days.ts";
import {
  dueDays,
  type ExportJob,
  type ExportPlan,
  newestFirst,
  requestsOfDays,
  type Selection,
  seriesOf,
} from "./plan.ts";
import { type Series, seriesKey } from "./series.ts";
import type { SliceStatus } from "./slice-decision.ts";

/**
 * - `missing`: days that were never read, or were read only before they ended
 * - `failed`: days whose newest reading failed
 * - `all`: every day, whatever is stored
 */
export const BACKFILL_MODES = ["missing", "failed", "all"] as const;
export type BackfillMode = (typeof BACKFILL_MODES)[number];

/** By seriesKey and day. A slice without an entry was never read, and is missing. */
export type KnownSlices = ReadonlyMap<string, Readonly<Record<Day, SliceStatus>>>;

export type BackfillJob = { readonly job: ExportJob; readonly series: readonly Series[] };

export type BackfillPlan = { readonly job: ExportJob; readonly plan: ExportPlan };

/** The series of each job. A series of several jobs belongs to the first of them. */
export function jobsWithSeries(jobs: readonly ExportJob[], selection: Selection): BackfillJob[] {
  const taken = new Set<string>();
  return jobs.map((job) => {
    const series = seriesOf(job, selection).filter((one) => !taken.has(seriesKey(one)));
    for (const one of series) taken.add(seriesKey(one));
    return { job, series };
  });
}

/** Requests are as long as allowed: a year of 16 series takes 192 requests, not 5,840. */
export function planBackfill(
  jobs: readonly BackfillJob[],
  range: Window,
  only: BackfillMode,
  known: KnownSlices,
  today: Day,
): BackfillPlan[] {
  const days = daysOf(range);
  return jobs.flatMap(({ job, series }) => {
    const requests = series.flatMap((one) => {
      const statuses = known.get(seriesKey(one));
      const wanted = days.filter((day) => only === "all" || only === (statuses?.[day] ?? "missing"));
      return requestsOfDays(one, wanted);
    });
    // Reading failed days again does not extend the due days.
    const due = only === "failed" ? undefined : dueDays(job, today, { days });
    return requests.length > 0 ? [{ job, plan: { requests: requests.sort(newestFirst), runDay: today, due } }] : [];
  });
}

export function countStatuses(jobs: readonly BackfillJob[], range: Window, known: KnownSlices) {
  const days = daysOf(range);
  const counts: Record<SliceStatus, number> = { complete: 0, suspect: 0, failed: 0, missing: 0 };
  for (const series of jobs.flatMap((job) => job.series)) {
    const statuses = known.get(seriesKey(series));
    for (const day of days) counts[statuses?.[day] ?? "missing"]++;
  }
  return counts;
}
