// The data of a report, and the limits of its period. Amounts are exact decimal texts, as Postgres returns them; null where the
// service sent none. Pure.

import { type Day, dayCount, type Window } from "../usage/days.ts";
import type { Grouping, SeriesName } from "../usage/series.ts";

export type ReportData = {
  readonly period: Window;
  /** As many days, right before it. */
  readonly before: Window;
  readonly madeAt: Date;
  readonly totals: Totals;
  /** By model and by endpoint, in this order, as far as some project is read by them. */
  readonly breakdowns: readonly Breakdown[];
  /** By accessor and by tags, in this order, as far as some project is read by them. */
  readonly rankings: readonly Ranking[];
  readonly coverage: Coverage;
  /** Of the days of the period. */
  readonly restatements: Restatements;
};

/** How many slices are missing from amounts, of all series they are from, in the period and in the period before. */
export type Shortfall = {
  /** Due and not complete, or last read while the day was not over. */
  readonly incompleteDays: number;
  readonly incompleteDaysBefore: number;
  /** Neither due nor read: before the series began, or before the night that reads the newest day. */
  readonly unreadDays: number;
  readonly unreadDaysBefore: number;
};

/** All usage of all projects: of each project from one of its unfiltered series. */
export type Totals = Shortfall & {
  readonly sources: readonly TotalsSource[];
  /** Projects that are read by no grouping that adds up to a total, or are not read any more. They are not in the amounts. */
  readonly projectsLeftOut: readonly string[];
  readonly metrics: readonly MetricTotal[];
};

/**
 * `none` where a project has it, else the first dimension of which each request has one value. One that began later than
 * another does not count while it reaches over fewer of the days.
 */
type TotalsSource = { readonly project: string; readonly grouping: Grouping };

export type MetricTotal = {
  /** By the name of its column in bi.usage_total. */
  readonly metric: "hours" | "tokens_in" | "tokens_out" | "tts_characters" | "requests";
  readonly amount: string | null;
  readonly before: string | null;
};

/** Usage by day and group, of all projects that are read by this grouping. */
export type Breakdown = {
  readonly grouping: "model" | "endpoint";
  readonly projects: readonly string[];
  readonly days: readonly Day[];
  /** Days on which a slice that is due is not complete, or was not over when it was read: what is shown is too low, or 0 where there was usage. */
  readonly incompleteDays: readonly Day[];
  /** Days on which a project was neither due nor read: what is shown is without it. */
  readonly unreadDays: readonly Day[];
  /** The largest first, at most 8. */
  readonly groups: readonly BreakdownGroup[];
  /** What the groups left out add up to; undefined where none was left out. */
  readonly rest: (DayAmounts & { readonly groupCount: number }) | undefined;
};

/** One amount a day; "0" where a complete day has no row. */
export type DayAmounts = { readonly hours: readonly string[]; readonly requests: readonly string[] };

/** `group` is null for no value. */
export type BreakdownGroup = DayAmounts & { readonly group: string | null };

export type Ranking = Shortfall & {
  readonly grouping: "accessor" | "tags";
  readonly projects: readonly string[];
  /** Of the period, by hours and then requests, the largest first, at most 10. */
  readonly groups: readonly RankedGroup[];
  /** How many groups there are. */
  readonly groupCount: number;
  /** Of all groups. Not for tags: a request with two tags counts for both. */
  readonly hours: string | null;
  readonly requests: string | null;
};

export type RankedGroup = {
  readonly project: string;
  /** For an accessor that a rotation made: the rotation, whichever of its keys was used. Null for no value. */
  readonly group: string | null;
  /** The API key's comment, where it is known. */
  readonly comment: string | null;
  readonly hours: string | null;
  readonly requests: string | null;
  readonly hoursBefore: string | null;
  readonly requestsBefore: string | null;
};

export type SliceStatus = "complete" | "suspect" | "failed" | "missing";

export type Coverage = {
  readonly days: readonly Day[];
  /** The worst first, then by name; at most 60. */
  readonly series: readonly SeriesCoverage[];
  /** How many more series there are. All of them are complete where those shown are. */
  readonly seriesLeftOut: number;
  /** Slices, of all series in the period. */
  readonly counts: Readonly<Record<SliceStatus, number>>;
  /** Days of the period that some series has not complete. */
  readonly lackingDays: readonly Day[];
  /** The newest day of the period by which every series that is read today was due; undefined where none was. */
  readonly dueThrough: Day | undefined;
  /** What is not complete in the period, in stretches, the newest first; at most 50. */
  readonly gaps: readonly CoverageGap[];
  readonly gapsLeftOut: number;
  /** Series whose answers carry no date: no report contains their numbers. */
  readonly undated: readonly SeriesName[];
};

export type SeriesCoverage = SeriesName & {
  /** A day each; undefined where it was neither due nor read. */
  readonly statuses: readonly (SliceStatus | undefined)[];
  /** The newest day up to which nothing is missing; null while there is none. Of all time, not of the period. */
  readonly freshThrough: Day | null;
  /** The newest day that is due. */
  readonly dueThrough: Day | null;
  /** When an answer was stored last. */
  readonly fetchedAt: Date | null;
};

export type CoverageGap = SeriesName &
  Window & { readonly status: Exclude<SliceStatus, "complete">; readonly error: string | null };

export type Restatements = {
  /** The series in which changes are counted: the totals, and one series of each project without a total. */
  readonly sources: readonly TotalsSource[];
  /** The metrics whose changes are counted. */
  readonly metrics: readonly MetricTotal["metric"][];
  /** How many numbers changed, by how many days after the day of the number; ascending. */
  readonly byDaysLate: readonly { readonly daysLate: number; readonly numbers: number }[];
  /** The largest changes of a total, or of a group where there is no total; at most 20. */
  readonly largest: readonly Restatement[];
};

export type Restatement = SeriesName & {
  readonly day: Day;
  /** Null for no value. */
  readonly group: string | null;
  readonly metric: string;
  /** Null where the row was not there, or had no such number. */
  readonly old: string | null;
  readonly new: string | null;
  readonly seenAt: Date;
};

// Which periods can be shown. Pure.

export const DAYS_DEFAULT = 30;
/** A leap year. More days than that can't be told apart in a chart. */
export const DAYS_MAX = 366;
/** No usage is older, and a database has no year 0. */
export const DAY_MIN: Day = "2000-01-01";

export type PeriodViolation = "ends after today" | "begins after its end" | "begins too early" | "has too many days";

/** The first rule that a period breaks. Who asked for it is told in the words of the place where it was asked for. */
export function periodViolation({ start, end }: Window, today: Day): PeriodViolation | undefined {
  if (end > today) return "ends after today";
  if (start > end) return "begins after its end";
  if (start < DAY_MIN) return "begins too early";
  return dayCount({ start, end }) > DAYS_MAX ? "has too many days" : undefined;
}
