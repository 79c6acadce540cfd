// Decides which series a report's numbers are from, and what is missing of them. Pure.

import type { Shortfall } from "../../report/report-data.ts";
import type { Day } from "../../usage/days.ts";
import type { Grouping } from "../../usage/series.ts";
import type { ReportSeries } from "./coverage.ts";
import { countDays, isIncomplete, isUnread } from "./day-letters.ts";

/** Groupings whose groups add up to all usage, as each request has one value; the first is the total itself. */
const ADDING_UP: readonly Grouping[] = ["none", "endpoint", "model", "method", "accessor", "deployment"];
/** Groupings in which usage may be counted twice. */
const OVERLAPPING: readonly Grouping[] = ["feature_set", "tags"];

type Sources = {
  /** One of each project. */
  readonly totals: readonly ReportSeries[];
  /** The same, and one of each project that has none of them, as its numbers change too. */
  readonly restatements: readonly ReportSeries[];
  readonly projectsLeftOut: readonly string[];
};

/** What is not configured any more says nothing of usage since then, so only its project is named. */
export function chooseSources(series: readonly ReportSeries[]): Sources {
  const totals: ReportSeries[] = [];
  const restatements: ReportSeries[] = [];
  const projectsLeftOut: string[] = [];
  for (const ofProject of Map.groupBy(series, ({ projectId }) => projectId).values()) {
    const known = ofProject.filter((one) => knownDays(one) > 0);
    const total = sourceAmong(known, ADDING_UP);
    const restated = total ?? sourceAmong(known, OVERLAPPING);
    if (total) totals.push(total);
    if (restated) restatements.push(restated);
    const inPeriod = known.find(({ days }) => knownIn(days) > 0);
    if (!total && inPeriod) projectsLeftOut.push(inPeriod.project);
  }
  return { totals, restatements, projectsLeftOut };
}

/** The unfiltered series by this grouping, one of each project that has it. */
export function seriesBy(series: readonly ReportSeries[], grouping: Grouping): readonly ReportSeries[] {
  return series.filter((one) => one.grouping === grouping && isSource(one) && knownDays(one) > 0);
}

/** The one that reaches over the most days: a series that was added yesterday knows nothing of last month. */
function sourceAmong(series: readonly ReportSeries[], groupings: readonly Grouping[]): ReportSeries | undefined {
  return groupings
    .flatMap((grouping) => series.filter((one) => one.grouping === grouping && isSource(one)))
    .sort((a, b) => knownDays(b) - knownDays(a))[0];
}

function isSource({ unfiltered, active }: ReportSeries): boolean {
  return unfiltered && active;
}

function knownDays({ daysBefore, days }: ReportSeries): number {
  return knownIn(daysBefore) + knownIn(days);
}

function knownIn(letters: string): number {
  return countDays(letters, (letter) => !isUnread(letter));
}

export function shortfallOf(sources: readonly ReportSeries[]): Shortfall {
  const now = sources.map(({ days }) => days).join("");
  const before = sources.map(({ daysBefore }) => daysBefore).join("");
  return {
    incompleteDays: countDays(now, isIncomplete),
    incompleteDaysBefore: countDays(before, isIncomplete),
    unreadDays: countDays(now, isUnread),
    unreadDaysBefore: countDays(before, isUnread),
  };
}

/** The days of the period on which one of the series is not complete, and those on which one is not read. */
export function shortDays(
  sources: readonly ReportSeries[],
  days: readonly Day[],
): { readonly incompleteDays: readonly Day[]; readonly unreadDays: readonly Day[] } {
  const having = (test: (letter: string) => boolean) =>
    days.filter((_, i) => sources.some((one) => test(one.days.charAt(i))));
  return { incompleteDays: having(isIncomplete), unreadDays: having(isUnread) };
}
