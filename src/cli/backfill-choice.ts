// Which jobs and which days a backfill is asked for, and whether they can be read at all.

import type { Config } from "../config/config.ts";
import { AppError } from "../errors.ts";
import { addDays, type Day, dayCount, type Window } from "../usage/day.ts";
import { type BackfillJob, type BackfillMode, seriesOnce } from "../usage/plan-backfill.ts";
import { chooseJobs, type SelectionOptions } from "./selection.ts";

export type BackfillOptions = Omit<SelectionOptions, "day"> & {
  readonly from: Day;
  readonly to: Day;
  readonly only: BackfillMode;
  readonly dryRun?: boolean;
  readonly enqueue?: boolean;
  readonly json?: boolean;
};

export type BackfillChoice = {
  readonly jobs: readonly BackfillJob[];
  /** Names of jobs that send no dates: what they read is not theirs to choose. */
  readonly dateless: readonly string[];
  readonly range: Window;
};

/**
 * Ten years. A range becomes due, which nothing takes back, and what is due and missing is read by the workers and shown as
 * a gap until it is there: 2006 in place of 2026 must not promise twenty years.
 */
const RANGE_DAYS_MAX = 3660;

/** Throws `config` for whatever can't be read: nothing was called then. */
export function chooseBackfill(config: Config, options: BackfillOptions, today: Day): BackfillChoice {
  const range = { start: options.from, end: options.to };
  const fault = rangeFault(range, addDays(today, -1));
  if (fault !== undefined) throw new AppError("config", fault);
  const { jobs, selection } = chooseJobs(config, options, today);
  const dated = jobs.filter(({ window }) => window !== undefined);
  const dateless = jobs.filter(({ window }) => window === undefined).map(({ name }) => name);
  if (dated.length === 0) {
    const names = dateless.map((name) => JSON.stringify(name)).join(", ");
    throw new AppError(
      "config",
      `nothing to backfill: days can be asked for by exports with a "window" only, and ${names} has none`,
    );
  }
  return { jobs: seriesOnce(dated, selection), dateless, range };
}

function rangeFault({ start, end }: Window, newest: Day): string | undefined {
  if (end > newest) return `--to: expected ${newest} or before, the newest day that is over in UTC; got ${end}`;
  if (start > end) return `--from: expected ${end} or before, which is --to; got ${start}`;
  if (dayCount({ start, end }) <= RANGE_DAYS_MAX) return undefined;
  const oldest = addDays(end, 1 - RANGE_DAYS_MAX);
  return `--from: expected ${oldest} or after, as a backfill has at most ${RANGE_DAYS_MAX} days; got ${start}. Read older days with a backfill of their own`;
}
