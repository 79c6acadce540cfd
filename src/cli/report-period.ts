// Decides which days a report is of. Pure.

import { AppError } from "../errors.ts";
import { DAY_MIN, DAYS_DEFAULT, DAYS_MAX } from "../report/period-limits.ts";
import { addDays, type Day, dayCount, type Window } from "../usage/day.ts";

export type PeriodOptions = { readonly from?: Day; readonly to?: Day };

/** The last complete days where none are named. Throws `config` for what no report can be of. */
export function choosePeriod({ from, to }: PeriodOptions, today: Day): Window {
  const end = to ?? addDays(today, -1);
  const start = from ?? addDays(end, 1 - DAYS_DEFAULT);
  const fault = periodFault({ start, end }, today);
  if (fault !== undefined) throw new AppError("config", fault);
  return { start, end };
}

function periodFault({ start, end }: Window, today: Day): string | undefined {
  if (end > today) return `--to: expected ${today} or before, which is today in UTC; got ${end}`;
  if (start > end) return `--from: expected ${end} or before, which is the report's last day; got ${start}`;
  if (start < DAY_MIN) return `--from: expected ${DAY_MIN} or after; got ${start}`;
  if (dayCount({ start, end }) <= DAYS_MAX) return undefined;
  return `--from: expected ${addDays(end, 1 - DAYS_MAX)} or after, as a report has at most ${DAYS_MAX} days; got ${start}`;
}
