// The data of a report, and the limits of its period. Amounts are exact decimal texts, as Postgres returns them; null if the
// service sent none. Pure.

import type { BudgetUse } from "../usage/budget-use.ts";
import { addDays, type Day, dayCount, type Window } from "../usage/days.ts";
import type { SeriesName, Source, UsageGrouping } from "../usage/series.ts";
import type { SliceStatus } from "../usage/slice.ts";
import type { CostChange } from "./cost-change.ts";
import type { UsageChange } from "./usage-change.ts";

/** Everything of a report. A page of the dashboard shows a part of it, and only that part is read. */
export type ReportData = UsageData &
  ChangeData &
  QualityData & {
    readonly madeAt: Date;
    /** In the periods with a day of the report's period. */
    readonly budgets: readonly BudgetUse[];
  };

export type UsageData = {
  readonly period: Window;
  /** The period that the amounts are compared with; undefined if with none. */
  readonly before: Window | undefined;
  readonly totals: Totals;
  readonly coverage: CoverageSummary;
  /** Of the current month; empty if the period ends in another one, or where too little is known; left out of too many projects for a page. */
  readonly forecast: readonly MetricForecast[] | "left out";
  /** By model and by endpoint, in this order; only groupings that are read for at least one project. */
  readonly breakdowns: readonly Breakdown[];
  /** In the order in which they were asked for; only groupings that are read for at least one project. */
  readonly rankings: readonly Ranking[];
};

export type ChangeData = {
  /** Of hours if there are any, else of requests; split by one grouping. */
  readonly change: UsageChange;
  /** If `change` is left out because comparing so many projects takes long, how many there are; else 0. */
  readonly changeProjectsLeftOut: number;
  /** What the service charges, in the same periods, in projects whose billing is read; without metrics if there are none. */
  readonly billed: UsageChange;
  /** The estimate of the other projects, one for each currency; empty without prices. */
  readonly costs: readonly CostChange[];
  /** If `costs` is left out because its calculation takes long, the rows of usage that it is of; else 0. */
  readonly costRowsLeftOut: number;
};

export type QualityData = {
  readonly period: Window;
  readonly coverage: Coverage;
  readonly restatements: Restatements;
};

/** How many slices of the period have a finality, and on which days. */
export type FinalityCount = Window & {
  readonly finality: string;
  readonly days: number;
  readonly slices: number;
};

/** A day on which the sum over a grouping differs from the total. */
export type Difference = {
  readonly source: Source;
  readonly project: string;
  readonly grouping: string;
  readonly day: Day;
  readonly metric: string;
  readonly total: string;
  readonly sumOfGroups: string;
  readonly difference: string;
};

/** What the service's own numbers say of each other, and which may still change. */
export type TrustData = {
  /** The newest first, at most 50. */
  readonly differences: readonly Difference[];
  readonly differencesLeftOut: number;
  readonly finality: readonly FinalityCount[];
};

/**
 * What the amounts lack, in the period and in the period before. Counted in slices (one series, one day) over all series that the
 * amounts come from.
 */
export type Shortfall = {
  /** Due and not complete, or last read before the day was over. */
  readonly incompleteDays: number;
  readonly incompleteDaysBefore: number;
  /** Neither due nor read: the day is before the series began, or so new that its first export is still to come. */
  readonly unreadDays: number;
  readonly unreadDaysBefore: number;
};

/** All usage of all projects, taken from one unfiltered series of each project. */
export type Totals = Shortfall & {
  /**
   * For each project, of the series whose groups add up to its total, the one that covers the most days (`chooseSources`). If several
   * cover as many days, the one by `none` is preferred.
   */
  readonly sources: readonly SourceSeries[];
  /** Projects without a series that adds up to a total and is still read. The amounts do not include them. */
  readonly projectsLeftOut: readonly string[];
  /** Days of the period on which a source is not complete or was not read. */
  readonly lackingDays: readonly Day[];
  readonly metrics: readonly MetricTotal[];
};

type SourceSeries = { readonly project: string; readonly grouping: UsageGrouping };

/** An estimate of a whole month; the texts are rounded decimals, and no amounts. */
export type MetricForecast = Pick<MetricTotal, "metric"> & {
  /** The first day of the month. */
  readonly month: Day;
  readonly forecast: string;
  readonly low: string;
  readonly high: string;
};

export type MetricTotal = {
  /** The name of the column in bi.usage_total. */
  readonly metric: "hours" | "tokens_in" | "tokens_out" | "tts_characters" | "requests";
  readonly amount: string | null;
  readonly before: string | null;
  /** One for each day of the period; null on a day without such a number, which may also be a day that was read and had no usage. */
  readonly byDay: readonly (string | null)[];
};

/** Usage by day and group, of all projects that are read by this grouping. */
export type Breakdown = {
  readonly grouping: "model" | "endpoint";
  readonly projects: readonly string[];
  readonly days: readonly Day[];
  /** Days on which a slice is due and not complete, or was read before the day was over: the amounts are too low. */
  readonly incompleteDays: readonly Day[];
  /** Days on which a project was neither due nor read: the amounts do not include it. */
  readonly unreadDays: readonly Day[];
  /** The largest first, at most 8. */
  readonly groups: readonly BreakdownGroup[];
  /** The sum of all other groups; undefined if there are none. */
  readonly rest: (DayAmounts & { readonly groupCount: number }) | undefined;
};

/** One amount a day; "0" if a complete day has no row. */
export type DayAmounts = { readonly hours: readonly string[]; readonly requests: readonly string[] };

/** `group` is null for no value. */
export type BreakdownGroup = DayAmounts & { readonly group: string | null };

export type Ranking = Shortfall & {
  readonly grouping: "model" | "accessor" | "tags";
  readonly projects: readonly string[];
  /** The groups with usage in the period, ordered by hours and then requests, the largest first; at most 10. */
  readonly groups: readonly RankedGroup[];
  /** The number of all groups, including those that are not in `groups`. */
  readonly groupCount: number;
  /** The sum over all groups. Null for tags: a request with two tags counts for both. */
  readonly hours: string | null;
  readonly requests: string | null;
};

export type RankedGroup = {
  readonly project: string;
  readonly projectId: string;
  /** For a key of a rotation: the rotation, so that all its keys are one group. Null for no value. */
  readonly group: string | null;
  /** The API key's comment, if it is known. */
  readonly comment: string | null;
  readonly hours: string | null;
  readonly requests: string | null;
  readonly hoursBefore: string | null;
  readonly requestsBefore: string | null;
};

/** How complete the period is, over all its series. */
export type CoverageSummary = {
  readonly days: readonly Day[];
  readonly seriesCount: number;
  /** Slices of the period, of all series. */
  readonly counts: Readonly<Record<SliceStatus, number>>;
  /** Days of the period on which some series is not complete. */
  readonly incompleteDays: readonly Day[];
  /** Every configured series is due up to this day of the period; undefined if nothing is due in the period. */
  readonly dueThrough: Day | undefined;
};

export type Coverage = CoverageSummary & {
  /** The worst first, then by name; at most 60. */
  readonly series: readonly SeriesCoverage[];
  /** What is not complete in the period, as ranges of days, the newest first; at most 50. */
  readonly gaps: readonly CoverageGap[];
  readonly gapsLeftOut: number;
  /** Series whose answers carry no date: no report contains their numbers. */
  readonly undated: readonly SeriesName[];
};

export type SeriesCoverage = SeriesName & {
  readonly projectId: string;
  /** One for each day; undefined if it was neither due nor read. */
  readonly statuses: readonly (SliceStatus | undefined)[];
  /** The newest day, of all time, up to which nothing is missing; null if there is none. */
  readonly freshThrough: Day | null;
  readonly dueThrough: Day | null;
  readonly fetchedAt: Date | null;
};

export type CoverageGap = SeriesName &
  Window & {
    readonly projectId: string;
    readonly status: Exclude<SliceStatus, "complete">;
    readonly error: string | null;
  };

export type Restatements = {
  /** The series in which changes are counted: the totals, and one series of each project without a total. */
  readonly sources: readonly SourceSeries[];
  /** The metrics whose changes are counted. */
  readonly metrics: readonly MetricTotal["metric"][];
  /** Counts the changed numbers by their delay, the days from the usage day to the change; the shortest delay first. */
  readonly byDaysLate: readonly { readonly daysLate: number; readonly numbers: number }[];
  /** The largest changes of a total, or of a group if there is no total; at most 20. */
  readonly largest: readonly Restatement[];
};

export type Restatement = SeriesName & {
  readonly day: Day;
  /** Null for no value. */
  readonly group: string | null;
  readonly metric: string;
  /** Null if there was no row, or no such number in it. */
  readonly old: string | null;
  readonly new: string | null;
  readonly seenAt: Date;
};

export const DAYS_DEFAULT = 30;
/** A leap year. A chart can't show more days. */
export const DAYS_MAX = 366;
/** No usage is older, and Postgres has no year 0. */
const DAY_MIN: Day = "2000-01-01";

/** The first rule that the period breaks. `from` and `to` name the options or form fields of its first and last day, for the message. */
export function periodError(
  { start, end }: Window,
  today: Day,
  { from, to }: { readonly from: string; readonly to: string },
): string | undefined {
  if (end > today) return `${to}: expected ${today} or before, which is today in UTC; got ${end}`;
  if (start > end) return `${from}: expected ${end} or before, which is the last day; got ${start}`;
  if (start < DAY_MIN) return `${from}: expected ${DAY_MIN} or after; got ${start}`;
  if (dayCount({ start, end }) <= DAYS_MAX) return undefined;
  return `${from}: expected ${addDays(end, 1 - DAYS_MAX)} or after, as there are at most ${DAYS_MAX} days; got ${start}`;
}
