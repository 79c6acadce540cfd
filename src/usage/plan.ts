// Decides which usage requests an export makes. Pure: the day comes in, nothing is read.

import { addDays, type Day, dayCount, type Window } from "./day.ts";
import { type Filter, type Grouping, type Project, type Series } from "./series.ts";

/** The service may answer a longer window in weeks instead of days, and its longest window is not published. */
export const REQUEST_DAYS_MAX = 31;

export type ExportJob = {
  readonly name: string;
  /** A cron expression, in `timezone`. */
  readonly schedule: string;
  readonly timezone: string;
  readonly projects: readonly Project[];
  readonly groupings: readonly Grouping[];
  readonly filters: readonly Filter[];
  /** Left out, no date is sent and the answer is stored under its own days. */
  readonly window?: { readonly days: number; readonly today: boolean };
  /** What a feature that Get Fields does not know means. */
  readonly checkFeatures: "error" | "warn" | "off";
  /** "confirm": a slice that had rows keeps them when an answer has none, until a later run says so again. */
  readonly emptyGuard: "confirm" | "off";
};

/** One breakdown call. Without a window the service chooses the days. */
export type UsageRequest = { readonly series: Series; readonly window: Window | undefined };
