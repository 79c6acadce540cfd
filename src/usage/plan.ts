// Decides which usage requests an export makes, and whether the configured window is long enough. Pure: the day is a parameter.

import { addDays, type Day, dayCount, type Window } from "./days.ts";
import { type Filter, type Grouping, type Project, type Series, seriesKey } from "./series.ts";
import type { Guards, Undated } from "./slice.ts";

/** The service may answer a longer window in weeks instead of days, and its longest window is not published. */
export const REQUEST_DAYS_MAX = 31;

export const OVERLAPS = ["skip", "queue"] as const;
export type Overlap = (typeof OVERLAPS)[number];

export const FEATURE_CHECKS = ["error", "warn", "off"] as const;

export type ExportJob = Guards & {
  readonly name: string;
  /** A cron expression, in `timezone`. */
  readonly schedule: string;
  readonly timezone: string;
  /** How much later than its moment the job runs at most. */
  readonly jitterSeconds: number;
  /** What becomes of a moment that comes while the run before it is not over. */
  readonly overlap: Overlap;
  readonly projects: readonly Project[];
  readonly groupings: readonly Grouping[];
  readonly filters: readonly Filter[];
  /** Left out, no date is sent and the answer is stored under its own days. */
  readonly window?: { readonly days: number; readonly today: boolean };
  /** What a feature that Get Fields does not know means. */
  readonly checkFeatures: (typeof FEATURE_CHECKS)[number];
  /** How an answer without a date is stored. */
  readonly undated: Undated;
};

/** How the answers to a job's requests are checked and stored. */
export type AnswerPolicy = Pick<ExportJob, "checkFeatures" | "emptyGuard" | "cliffGuard" | "undated">;

/** One breakdown call. Without a window the service chooses the days. */
export type UsageRequest = { readonly series: Series; readonly window: Window | undefined };

/** Narrows a plan; a part that is left out narrows nothing. */
export type Selection = {
  readonly projects?: readonly string[];
  readonly groupings?: readonly Grouping[];
  readonly filters?: readonly string[];
  /** Days to read in place of the job's window. */
  readonly days?: readonly Day[];
};

/**
 * Every grouping under every filter of every project; the projects in turn, as the first call of a key goes alone, and other
 * projects' need not wait for it.
 */
export function seriesOf(job: ExportJob, selection: Selection = {}): Series[] {
  const projects = job.projects.filter(({ name }) => selection.projects?.includes(name) ?? true);
  const filters = job.filters.filter(({ name }) => selection.filters?.includes(name) ?? true);
  const groupings = job.groupings.filter((grouping) => selection.groupings?.includes(grouping) ?? true);
  return filters.flatMap((filter) =>
    groupings.flatMap((grouping) => projects.map((project) => ({ project, grouping, filter }))),
  );
}

export type ConfiguredSeries = {
  readonly series: Series;
  /** How many complete days are read again at each run; undefined where no window is sent. */
  readonly windowDays: number | undefined;
};

/** The series of all jobs, each once: where two jobs read one, the longer window says until when it is read again. */
export function configuredSeries(jobs: readonly ExportJob[]): ConfiguredSeries[] {
  const configured = new Map<string, ConfiguredSeries>();
  for (const job of jobs) {
    for (const series of seriesOf(job)) {
      const other = configured.get(seriesKey(series))?.windowDays ?? 0;
      const windowDays = Math.max(other, job.window?.days ?? 0);
      configured.set(seriesKey(series), { series, windowDays: windowDays > 0 ? windowDays : undefined });
    }
  }
  return [...configured.values()];
}

/**
 * One request a series and stretch of at most 31 days, the newest stretch first, so that what people look at is fresh
 * even when the service stops answering half-way. Without a window it is one request a series.
 */
export function planExport(job: ExportJob, today: Day, selection: Selection = {}): UsageRequest[] {
  const series = seriesOf(job, selection);
  const windows = windowsOf(job, today, selection);
  const stretches = windows ? windows.flatMap(splitWindow) : [undefined];
  return stretches.flatMap((stretch) => series.map((one) => ({ series: one, window: stretch })));
}

/** One series on days of its own: one request a stretch of days that follow one another, the newest first. */
export function requestsOfDays(series: Series, days: readonly Day[]): UsageRequest[] {
  return consecutiveDays(days)
    .flatMap(splitWindow)
    .map((window) => ({ series, window }));
}

export type DueDays = {
  /**
   * Where no day was due before, the first that is. Undefined where a person picked days of the past only: the days
   * between them and the first scheduled night are nobody's promise.
   */
  readonly first: Day | undefined;
  /** The oldest stretch of days without a hole. */
  readonly oldest: Window;
  /** The newest day that is over. */
  readonly through: Day;
};

/** The days a run makes due. Undefined where only the answer tells which they are. */
export function dueDays(job: ExportJob, today: Day, selection: Selection = {}): DueDays | undefined {
  const windows = windowsOf(job, today, selection);
  const newest = windows?.[0];
  const oldest = windows?.at(-1);
  if (newest === undefined || oldest === undefined) return undefined;
  const yesterday = addDays(today, -1);
  return {
    first: selection.days && newest.end < yesterday ? undefined : newest.start,
    oldest,
    through: newest.end < yesterday ? newest.end : yesterday,
  };
}

/** What a run reads, and what is due because of it. */
export type ExportPlan = {
  readonly requests: readonly UsageRequest[];
  /** The day on which the run was planned. */
  readonly runDay: Day;
  readonly due: DueDays | undefined;
};

/** By seriesKey, the days that were read only while they lasted, or whose newest answer is in doubt. */
export type DaysToReread = ReadonlyMap<string, readonly Day[]>;

/** Unless days were picked, a run also reads the days before the window that need another reading. */
export function planRun(
  job: ExportJob,
  today: Day,
  selection: Selection = {},
  unsettled: DaysToReread = new Map(),
): ExportPlan {
  const due = dueDays(job, today, selection);
  const before = due && !selection.days ? seriesOf(job, selection) : [];
  const again = before.flatMap((series) => {
    const days = unsettled.get(seriesKey(series)) ?? [];
    return requestsOfDays(
      series,
      days.filter((day) => due !== undefined && day < due.oldest.start),
    );
  });
  return { requests: [...planExport(job, today, selection), ...again], runDay: today, due };
}

/**
 * Whether all that was due when the run was planned is read by it, or due because of it: only then may the next alarm be the
 * one to wait for. Old days alone say nothing of a night that was missed.
 */
export function isUpToDate({ requests, runDay, due }: ExportPlan): boolean {
  return due ? due.through >= addDays(runDay, -1) : requests.some(({ window }) => window === undefined);
}

/** Newest first. A job reads its last complete days, and today where it asks for it. */
function windowsOf(job: ExportJob, today: Day, selection: Selection): Window[] | undefined {
  if (!job.window) return undefined;
  if (selection.days) return consecutiveDays(selection.days);
  return [{ start: addDays(today, -job.window.days), end: job.window.today ? today : addDays(today, -1) }];
}

/** Days that follow one another are one window. */
function consecutiveDays(days: readonly Day[]): Window[] {
  const windows: Window[] = [];
  for (const day of [...new Set(days)].sort().reverse()) {
    const last = windows.at(-1);
    if (last && addDays(day, 1) === last.start) windows[windows.length - 1] = { start: day, end: last.end };
    else windows.push({ start: day, end: day });
  }
  return windows;
}

/** Splits a window into windows that one call may ask for, the newest first. */
export function splitWindow(window: Window): Window[] {
  const stretches: Window[] = [];
  for (let end = window.end; end >= window.start; end = addDays(end, -REQUEST_DAYS_MAX)) {
    const start = addDays(end, 1 - REQUEST_DAYS_MAX);
    stretches.push({ start: start < window.start ? window.start : start, end });
  }
  return stretches;
}

/** How many slices a request reads; 1 where only the answer tells. */
export function sliceCount(request: UsageRequest): number {
  return request.window ? dayCount(request.window) : 1;
}

export function totalSliceCount(requests: readonly UsageRequest[]): number {
  return requests.reduce((sum, request) => sum + sliceCount(request), 0);
}

// Decides whether the window that is read again fits how late the service changes its numbers. Pure.

/** Of one series and metric, how much of the final amount was known so many days after the day. */
export type CurvePoint = {
  readonly daysAfter: number;
  /** 0 to 1. */
  readonly knownShare: number;
  /** How many final days it rests on. */
  readonly days: number;
};

export type WindowAdvice = {
  readonly advice: "longer" | "shorter";
  /** The window to set in place of the configured one. */
  readonly days: number;
  /** After how many days enough was known. */
  readonly knownAfterDays: number;
  /** How many final days it rests on. */
  readonly restsOnDays: number;
};

/** So much of the final amount is enough. */
export const KNOWN_SHARE_ENOUGH = 0.999;

/** Fewer days may be an exception. */
const ADVICE_DAYS_MIN = 7;
/** A longer window costs little, so only one that is a multiple, and a week, too long is worth a word. */
const MUCH_LONGER_FACTOR = 3;
const MUCH_LONGER_DAYS = 7;

/**
 * A window of N days reads a day for the last time N days after it. What still moved at that last reading may go on moving
 * unseen, so the window is long enough only where its last reading changed nothing any more. Of several curves the slowest
 * counts. Undefined where the window fits, or too few days are known.
 */
export function adviseWindow(windowDays: number, curves: readonly (readonly CurvePoint[])[]): WindowAdvice | undefined {
  const known = curves.flatMap((curve) => knownAfter(curve) ?? []);
  const [slowest] = known.sort((a, b) => b.knownAfterDays - a.knownAfterDays || b.restsOnDays - a.restsOnDays);
  if (!slowest) return undefined;
  const { knownAfterDays } = slowest;
  if (knownAfterDays > windowDays) return { advice: "longer", days: knownAfterDays + 1, ...slowest };
  // It moved to the end of what was looked at, and nobody knows how far it would have gone.
  if (knownAfterDays === windowDays) return { advice: "longer", days: windowDays * 2, ...slowest };
  const enough = knownAfterDays + 1;
  const isMuchLonger = windowDays >= enough * MUCH_LONGER_FACTOR && windowDays - enough >= MUCH_LONGER_DAYS;
  return isMuchLonger ? { advice: "shorter", days: enough, ...slowest } : undefined;
}

type KnownAfter = Pick<WindowAdvice, "knownAfterDays" | "restsOnDays">;

/** From when on it stays enough: a number may be right, wrong and right again. */
function knownAfter(curve: readonly CurvePoint[]): KnownAfter | undefined {
  // Before the day after, only a part of the day was there.
  const points = curve.filter(({ daysAfter }) => daysAfter > 0).sort((a, b) => a.daysAfter - b.daysAfter);
  const last = points.at(-1);
  if (!last || last.days < ADVICE_DAYS_MIN) return undefined;
  const notYet = points.findLast(({ knownShare }) => knownShare < KNOWN_SHARE_ENOUGH);
  return { knownAfterDays: (notYet?.daysAfter ?? 0) + 1, restsOnDays: last.days };
}
