// Decides which usage requests an export makes. Pure.

import { addDays, DAY_MS, type Day, dayCount, daysOf, HOUR_MS, type Window } from "./days.ts";
import type { Source } from "./dimensions.ts";
import {
  everyValueName,
  type FanOut,
  type Filter,
  type Grouping,
  type Project,
  type Series,
  type SeriesName,
  seriesKey,
} from "./series.ts";
import type { AnswerRules, SliceStatus } from "./slice-decision.ts";

/** The service may answer a longer window in weeks instead of days, and its longest window is not published. */
export const REQUEST_DAYS_MAX = 31;

/** How strictly jobs/filter-check.ts treats a filter with a name that the service does not list. */
export const FEATURE_CHECKS = ["error", "warn", "off"] as const;

export type ExportJob = AnswerRules & {
  readonly name: string;
  readonly source: Source;
  /** A cron expression, in `timezone`. */
  readonly schedule: string;
  readonly timezone: string;
  readonly projects: readonly Project[];
  readonly groupings: readonly Grouping[];
  readonly filters: readonly Filter[];
  readonly fanOuts?: readonly FanOut[];
  /** A filter for each value that a fan-out found in stored usage, by the project's id. Left out until the values are read. */
  readonly seen?: ReadonlyMap<string, readonly Filter[]>;
  readonly leftOut?: readonly LeftOut[];
  /** Without a window no date is sent, and the answer is stored under the days that it names. */
  readonly window?: { readonly days: number; readonly today: boolean };
  readonly checkFeatures: (typeof FEATURE_CHECKS)[number];
};

/** A fan-out that leaves values of a project out because of `atMost`: how many values are read, and how many are left out. */
export type LeftOut = FanOut & { readonly project: string; readonly read: number; readonly leftOut: number };

/** Without a window the service chooses the days. */
export type UsageRequest = { readonly series: Series; readonly window: Window | undefined };

export function describeRequest({ series, window }: UsageRequest): SeriesName & Partial<Window> {
  const { project, source, grouping, filter } = series;
  return { project: project.name, ...(source !== "usage" && { source }), grouping, filter: filter.name, ...window };
}

/** What a person restricts a plan to. */
export type Selection = {
  readonly projects?: readonly string[] | undefined;
  readonly groupings?: readonly Grouping[] | undefined;
  readonly filters?: readonly string[] | undefined;
  /** In place of the job's window. */
  readonly days?: readonly Day[] | undefined;
};

/** The selected series of the job: those of its filters, then those of its fan-outs. */
export function seriesOf(job: ExportJob, selection: Selection = {}): Series[] {
  const projects = job.projects.filter(({ name }) => selection.projects?.includes(name) ?? true);
  const filters = job.filters.filter(({ name }) => selection.filters?.includes(name) ?? true);
  const groupings = job.groupings.filter((grouping) => selection.groupings?.includes(grouping) ?? true);
  const ofFilters = filters.flatMap((filter) =>
    groupings.flatMap((grouping) => projects.map((project) => ({ project, source: job.source, grouping, filter }))),
  );
  const ofFanOuts = projects.flatMap((project) =>
    (job.seen?.get(project.id) ?? []).flatMap((filter) => seenSeries(project, filter, groupings, selection.filters)),
  );
  return [...ofFilters, ...ofFanOuts];
}

/** Leaves out the total and the grouping by the filter's own dimension: the series of all usage by that dimension has a row with the same numbers. */
function seenSeries(project: Project, filter: Filter, groupings: readonly Grouping[], selected: Selection["filters"]) {
  const dimension = filter.seen?.dimension;
  const names = [filter.name, dimension && everyValueName(dimension)];
  if (selected && !selected.some((name) => names.includes(name))) return [];
  const wanted = groupings.filter((grouping) => grouping !== "none" && grouping !== dimension);
  return wanted.map((grouping): Series => ({ project, source: "usage", grouping, filter }));
}

export type ConfiguredSeries = {
  readonly series: Series;
  /** How many complete days are read again at each run; undefined where no window is sent. */
  readonly windowDays: number | undefined;
};

/** The series of all jobs, each once, with the longest window in which a job reads it. */
export function configuredSeries(jobs: readonly ExportJob[]): ConfiguredSeries[] {
  const configured = new Map<string, ConfiguredSeries>();
  for (const job of jobs) {
    for (const series of seriesOf(job)) {
      const key = seriesKey(series);
      const other = configured.get(key);
      const windowDays = Math.max(other?.windowDays ?? 0, job.window?.days ?? 0);
      // A filter that a fan-out made has days to make due. They are kept if another job has the same filter without them.
      const hasDays = other?.series.filter.seen?.dueDays !== undefined;
      configured.set(key, { series: hasDays ? other.series : series, windowDays: windowDays || undefined });
    }
  }
  return [...configured.values()];
}

/** One request for each stretch of consecutive days, the newest first. A stretch that is too long for one request is split. */
export function requestsOfDays(series: Series, days: readonly Day[]): UsageRequest[] {
  return stretchesOf(days, REQUEST_DAYS_MAX).map((window) => ({ series, window }));
}

export type DueDays = {
  /** The first due day of a series without any. Undefined if it gets none: the picked days end before yesterday, or the service chooses the days. */
  readonly first?: Day | undefined;
  /** The run's oldest stretch of days. It becomes due if it adjoins the due days of the series. Left out if the service chooses the days. */
  readonly oldestWindow?: Window;
  /** The newest day of the run that is over. The due days of a series reach at least to this day. */
  readonly through: Day;
};

export function dueDays(job: ExportJob, today: Day, selection: Selection = {}): DueDays {
  const windows = windowsOf(job, today, selection) ?? [];
  const [newest, oldestWindow] = [windows[0], windows.at(-1)];
  const yesterday = addDays(today, -1);
  if (!newest || !oldestWindow) return { through: yesterday };
  // Only picked days can end before yesterday.
  if (newest.end < yesterday) return { first: undefined, oldestWindow, through: newest.end };
  return { first: newest.start, oldestWindow, through: yesterday };
}

export type ExportPlan = {
  readonly requests: readonly UsageRequest[];
  readonly runDay: Day;
  /** Undefined if the run makes no day due. */
  readonly due: DueDays | undefined;
};

/**
 * A due slice that needs another reading: it has no good numbers of its whole day, or its newest reading failed, or it is suspect. A suspect
 * slice needs none if its day is in the window, so that a scheduled run reads it anyway, or if no reading can confirm it.
 */
export type DueSlice = {
  readonly seriesId: number;
  readonly day: Day;
  readonly status: "missing" | "failed" | "suspect";
  readonly attemptedAt: Date | null;
  /** When it began to fail, or when the first doubtful answer was requested. */
  readonly since: Date | null;
  readonly code?: string | null;
};

/** The codes of failures that may be over in a minute. After any other failure, another attempt soon would have the same result. */
export const RETRIED_CODES: readonly string[] = ["unavailable", "rate_limited"];

/** After an attempt in this run, a failed or suspect slice is due only if its failure may be over. Any other is due if it was when the run began. */
export function isDueInRun(slice: DueSlice, startedAt: Date): boolean {
  const { status, attemptedAt, code } = slice;
  if (status !== "missing" && attemptedAt && attemptedAt >= startedAt) return RETRIED_CODES.includes(code ?? "");
  return isDueForRetry(slice, startedAt);
}

/** The next attempt waits as long as the failures have lasted, an hour to a day: what is refused now is often still refused in an hour. */
export function isDueForRetry({ status, attemptedAt, since }: DueSlice, now: Date): boolean {
  if (status === "missing" || attemptedAt === null) return true;
  const lastedMs = attemptedAt.getTime() - (since ?? attemptedAt).getTime();
  const delayMs = Math.min(Math.max(lastedMs, HOUR_MS), DAY_MS);
  return now.getTime() - attemptedAt.getTime() >= delayMs;
}

/** By seriesKey, the due days that need another reading, as DueSlice says. */
export type DaysToReread = ReadonlyMap<string, readonly { readonly day: Day }[]>;

type StoredState = {
  readonly toReread?: DaysToReread;
  /** Whether the slice (without a window: the series) was read since the run began, or failed for good, so that the run need not read it. */
  readonly isSettled?: (series: Series, day: Day | undefined) => boolean;
  /** False if the run only reads days of `toReread`. */
  readonly readsWindow?: boolean;
};

/** Plans the picked days, or else the window and the earlier days of `toReread`. Settled slices are left out. The newest come first. */
export function planRun(
  job: ExportJob,
  today: Day,
  selection: Selection = {},
  { toReread = new Map(), isSettled, readsWindow = true }: StoredState = {},
): ExportPlan {
  const windowDays = windowsOf(job, today, selection)?.flatMap(daysOf);
  const requests = seriesOf(job, selection).flatMap((series): UsageRequest[] => {
    if (!windowDays) return readsWindow && !isSettled?.(series, undefined) ? [{ series, window: undefined }] : [];
    const unsettled = readsWindow ? windowDays.filter((day) => !isSettled?.(series, day)) : [];
    const incomplete = selection.days ? [] : (toReread.get(seriesKey(series)) ?? []).map(({ day }) => day);
    const again = incomplete.filter((day) => !readsWindow || day < (windowDays[0] ?? today));
    return requestsOfDays(series, [...unsettled, ...again]);
  });
  return { requests: requests.sort(newestFirst), runDay: today, due: dueDays(job, today, selection) };
}

/** Compares code units: the first localeCompare of a process takes 8 ms, as it loads the rules of languages. */
function newestFirst(a: UsageRequest, b: UsageRequest): number {
  const [endA, endB] = [a.window?.end ?? "", b.window?.end ?? ""];
  if (endA === endB) return 0;
  return endA < endB ? 1 : -1;
}

/** The days that a scheduled run reads: the last complete ones, and today if configured. Undefined if the service chooses them. */
export function windowOf({ window }: ExportJob, runDay: Day): Window | undefined {
  return window && { start: addDays(runDay, -window.days), end: window.today ? runDay : addDays(runDay, -1) };
}

/** The window of the job, or the stretches of the picked days, the newest first. Undefined if the service chooses the days. */
function windowsOf(job: ExportJob, today: Day, { days }: Selection): readonly Window[] | undefined {
  const window = windowOf(job, today);
  return window && (days ? stretchesOf(days) : [window]);
}

/** The stretches of consecutive days, the newest first. A stretch longer than `lengthMax` is split from its end. */
function stretchesOf(days: readonly Day[], lengthMax = Number.POSITIVE_INFINITY): Window[] {
  const windows: Window[] = [];
  for (const day of [...new Set(days)].sort().reverse()) {
    const last = windows.at(-1);
    const isNext = last && addDays(day, 1) === last.start && dayCount(last) < lengthMax;
    if (isNext) windows[windows.length - 1] = { start: day, end: last.end };
    else windows.push({ start: day, end: day });
  }
  return windows;
}

/** How many requests a project makes at once: two for each slot if it is the only one, so that no slot is idle. Else it leaves a slot for others. */
export function requestsAtOnce(maxConcurrent: number, projects: number): number {
  return projects === 1 ? 2 * maxConcurrent : Math.max(1, maxConcurrent - 1);
}

/** How many slices a request reads; 1 if only the answer shows it. */
export function sliceCount(request: Pick<UsageRequest, "window">): number {
  return request.window ? dayCount(request.window) : 1;
}

export function totalSliceCount(requests: readonly UsageRequest[]): number {
  return requests.reduce((sum, request) => sum + sliceCount(request), 0);
}

// Backfills: days that a person picks, whatever the window.

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
