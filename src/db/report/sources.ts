// Chooses the series that a report's numbers come from, and counts the days that these series lack. Pure.

import type { Shortfall } from "../../report/report-data.ts";
import type { Day } from "../../usage/days.ts";
import type { UsageGrouping } from "../../usage/series.ts";
import type { SliceStatus } from "../../usage/slice.ts";

export type ReportSeries = {
  readonly seriesId: number;
  readonly projectId: string;
  readonly project: string;
  readonly grouping: UsageGrouping;
  readonly filter: string;
  /** The filter has no conditions. */
  readonly unfiltered: boolean;
  /** Still configured. */
  readonly active: boolean;
  /** One of DAY_LETTERS for each day of the period before. */
  readonly daysBefore: string;
  /** One of DAY_LETTERS for each day of the period. */
  readonly days: string;
};

/** The state of a day of a series is one letter, because a series has hundreds of days. */
export const DAY_LETTERS = {
  complete: "c",
  /** Complete, but read before the day was over. */
  open: "o",
  suspect: "s",
  failed: "f",
  missing: "m",
  /** Neither due nor read. */
  unread: ".",
} as const;

const STATUS_OF_LETTER: Readonly<Record<string, SliceStatus>> = {
  [DAY_LETTERS.complete]: "complete",
  [DAY_LETTERS.open]: "complete",
  [DAY_LETTERS.suspect]: "suspect",
  [DAY_LETTERS.failed]: "failed",
  [DAY_LETTERS.missing]: "missing",
};

export function statusOfLetter(letter: string): SliceStatus | undefined {
  return STATUS_OF_LETTER[letter];
}

function isUnread(letter: string): boolean {
  return letter === DAY_LETTERS.unread;
}

/** The numbers of the day are too low, or may be. */
function isIncomplete(letter: string): boolean {
  return letter !== DAY_LETTERS.complete && letter !== DAY_LETTERS.unread;
}

/** Groupings whose groups add up to all usage, because each request has one value. */
const ADDING_UP: readonly UsageGrouping[] = ["none", "endpoint", "model", "method", "accessor", "deployment"];
/** Groupings whose groups may overlap. */
const OVERLAPPING: readonly UsageGrouping[] = ["feature_set", "tags"];

type Sources = {
  /** For each project one series whose groups add up to all its usage, if there is such a series. */
  readonly totals: readonly ReportSeries[];
  /** The totals, and one series with overlapping groups for each project without a total. */
  readonly restatements: readonly ReportSeries[];
  readonly projectsLeftOut: readonly string[];
};

/** A series that is not configured any more is no source, because it lacks all usage since then. Its project is named as left out. */
export function chooseSources(series: readonly ReportSeries[]): Sources {
  const totals: ReportSeries[] = [];
  const restatements: ReportSeries[] = [];
  const projectsLeftOut: string[] = [];
  for (const ofProject of Map.groupBy(series, ({ projectId }) => projectId).values()) {
    const total = sourceAmong(ofProject, ADDING_UP);
    const restated = total ?? sourceAmong(ofProject, OVERLAPPING);
    if (total) totals.push(total);
    if (restated) restatements.push(restated);
    const inPeriod = ofProject.find(({ days }) => knownIn(days) > 0);
    if (!total && inPeriod) projectsLeftOut.push(inPeriod.project);
  }
  return { totals, restatements, projectsLeftOut };
}

/** The unfiltered, configured series by this grouping that were due or read in the periods; at most one for each project. */
export function seriesBy(series: readonly ReportSeries[], grouping: UsageGrouping): readonly ReportSeries[] {
  return series.filter((one) => one.grouping === grouping && one.unfiltered && one.active && knownDays(one) > 0);
}

/**
 * The series that covers the most days: a series that was added yesterday has no usage of last month. If several
 * cover as many days, it is the one whose grouping comes first.
 */
function sourceAmong(series: readonly ReportSeries[], groupings: readonly UsageGrouping[]): ReportSeries | undefined {
  return groupings.flatMap((grouping) => seriesBy(series, grouping)).sort((a, b) => knownDays(b) - knownDays(a))[0];
}

function knownDays({ daysBefore, days }: ReportSeries): number {
  return knownIn(daysBefore) + knownIn(days);
}

function knownIn(letters: string): number {
  return countDays(letters, (letter) => !isUnread(letter));
}

function countDays(letters: string, test: (letter: string) => boolean): number {
  return [...letters].filter(test).length;
}

/** Counts, over all of these series, the days whose numbers are too low (incomplete) or not there (unread). */
export function countLackingDays(sources: readonly ReportSeries[]): Shortfall {
  const now = sources.map(({ days }) => days).join("");
  const before = sources.map(({ daysBefore }) => daysBefore).join("");
  return {
    incompleteDays: countDays(now, isIncomplete),
    incompleteDaysBefore: countDays(before, isIncomplete),
    unreadDays: countDays(now, isUnread),
    unreadDaysBefore: countDays(before, isUnread),
  };
}

/** The days of the period on which at least one of them is not complete or was not read. */
export function lackingDays(sources: readonly ReportSeries[], days: readonly Day[]): readonly Day[] {
  return days.filter((_, i) => sources.some((one) => one.days.charAt(i) !== DAY_LETTERS.complete));
}

/** The days of the period on which at least one series is not complete, and those on which at least one was not read. */
export function incompleteAndUnreadDays(
  sources: readonly ReportSeries[],
  days: readonly Day[],
): { readonly incompleteDays: readonly Day[]; readonly unreadDays: readonly Day[] } {
  const daysWith = (test: (letter: string) => boolean) =>
    days.filter((_, i) => sources.some((one) => test(one.days.charAt(i))));
  return { incompleteDays: daysWith(isIncomplete), unreadDays: daysWith(isUnread) };
}
