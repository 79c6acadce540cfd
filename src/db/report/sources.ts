// Chooses the series that a report's numbers come from, and counts the days that these series lack. Pure.

import type { Shortfall } from "../../report/report-data.ts";
import type { Day } from "../../usage/days.ts";
import type { UsageGrouping } from "../../usage/series.ts";
import type { SliceStatus } from "../../usage/slice.ts";

/** A series that numbers come from: unfiltered, and still configured. */
export type ReportSeries = {
  readonly seriesId: number;
  readonly projectId: string;
  readonly project: string;
  readonly grouping: UsageGrouping;
} & DayLetters;

type DayLetters = {
  /** One of DAY_LETTERS for each day of the period before. */
  readonly daysBefore: string;
  /** One of DAY_LETTERS for each day of the period. */
  readonly days: string;
};

/**
 * Series by the same grouping whose days have the same states. With thousands of projects there are tens of thousands of series, and a
 * few of these groups.
 */
export type AlikeSeries = DayLetters & {
  readonly grouping: UsageGrouping;
  /** The filter has no conditions. */
  readonly unfiltered: boolean;
  /** Still configured. */
  readonly active: boolean;
  readonly seriesIds: readonly number[];
  /** The project of each of `seriesIds`. */
  readonly projectIds: readonly string[];
};

/** All series of a report. */
export type SeriesIndex = {
  /** The name of each project by its id, ordered by name. */
  readonly projects: ReadonlyMap<string, string>;
  readonly alike: readonly AlikeSeries[];
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
export function chooseSources(index: SeriesIndex): Sources {
  const totals = sourcesAmong(index, ADDING_UP);
  const overlapping = sourcesAmong(index, OVERLAPPING);
  const ids = [...index.projects.keys()];
  const inPeriod = new Set(index.alike.flatMap(({ days, projectIds }) => (knownIn(days) > 0 ? projectIds : [])));
  return {
    totals: ids.flatMap((id) => totals.get(id) ?? []),
    restatements: ids.flatMap((id) => totals.get(id) ?? overlapping.get(id) ?? []),
    projectsLeftOut: [...index.projects].flatMap(([id, name]) => (inPeriod.has(id) && !totals.has(id) ? name : [])),
  };
}

/** The unfiltered, configured series by this grouping that were due or read in the periods; at most one for each project. */
export function seriesBy(index: SeriesIndex, grouping: UsageGrouping): readonly ReportSeries[] {
  const series = sourcesAmong(index, [grouping]);
  return [...index.projects.keys()].flatMap((id) => series.get(id) ?? []);
}

/**
 * By project, the series that covers the most days: a series that was added yesterday has no usage of last month. If several
 * cover as many days, it is the one whose grouping comes first.
 */
function sourcesAmong(
  { projects, alike }: SeriesIndex,
  groupings: readonly UsageGrouping[],
): ReadonlyMap<string, ReportSeries> {
  const candidates = alike
    .filter(({ grouping, unfiltered, active }) => unfiltered && active && groupings.includes(grouping))
    .map((group) => ({ group, known: knownDays(group), position: groupings.indexOf(group.grouping) }))
    .filter(({ known }) => known > 0)
    .sort((a, b) => b.known - a.known || a.position - b.position);
  const chosen = new Map<string, ReportSeries>();
  for (const { group } of candidates) {
    const { grouping, daysBefore, days, seriesIds } = group;
    for (const [i, projectId] of group.projectIds.entries()) {
      const [seriesId, project] = [seriesIds[i], projects.get(projectId)];
      if (seriesId === undefined || project === undefined || chosen.has(projectId)) continue;
      chosen.set(projectId, { seriesId, projectId, project, grouping, daysBefore, days });
    }
  }
  return chosen;
}

function knownDays({ daysBefore, days }: DayLetters): number {
  return knownIn(daysBefore) + knownIn(days);
}

function knownIn(letters: string): number {
  return countDays([letters], (letter) => !isUnread(letter));
}

/** Nearly all series have the same letters, so each text of letters is read once. */
function countDays(texts: readonly string[], test: (letter: string) => boolean): number {
  const counts = new Map([...new Set(texts)].map((letters) => [letters, [...letters].filter(test).length]));
  return texts.reduce((sum, letters) => sum + (counts.get(letters) ?? 0), 0);
}

/** Counts, over all of these series, the days whose numbers are too low (incomplete) or not there (unread). */
export function countLackingDays(sources: readonly ReportSeries[]): Shortfall {
  const now = sources.map(({ days }) => days);
  const before = sources.map(({ daysBefore }) => daysBefore);
  return {
    incompleteDays: countDays(now, isIncomplete),
    incompleteDaysBefore: countDays(before, isIncomplete),
    unreadDays: countDays(now, isUnread),
    unreadDaysBefore: countDays(before, isUnread),
  };
}

/** The days of the period on which at least one of them is not complete or was not read. */
export function lackingDays(sources: readonly ReportSeries[], days: readonly Day[]): readonly Day[] {
  return daysWith(sources, days, (letter) => letter !== DAY_LETTERS.complete);
}

/** The days of the period on which at least one series is not complete, and those on which at least one was not read. */
export function incompleteAndUnreadDays(
  sources: readonly ReportSeries[],
  days: readonly Day[],
): { readonly incompleteDays: readonly Day[]; readonly unreadDays: readonly Day[] } {
  return { incompleteDays: daysWith(sources, days, isIncomplete), unreadDays: daysWith(sources, days, isUnread) };
}

/** The days on which at least one of the series has such a letter. */
function daysWith(
  sources: readonly ReportSeries[],
  days: readonly Day[],
  test: (letter: string) => boolean,
): readonly Day[] {
  const texts = [...new Set(sources.map((one) => one.days))];
  return days.filter((_, i) => texts.some((letters) => test(letters.charAt(i))));
}
