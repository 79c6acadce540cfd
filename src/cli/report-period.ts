// Decides which days a report is of. Pure.

import { AppError } from "../errors.ts";
import { type BrokenLimit, brokenLimit, DAY_MIN, DAYS_DEFAULT, DAYS_MAX } from "../report/period-limits.ts";
import { addDays, type Day, type Window } from "../usage/day.ts";

export type PeriodOptions = { readonly from?: Day; readonly to?: Day };

/** The last complete days where none are named. Throws `config` for what no report can be of. */
export function choosePeriod({ from, to }: PeriodOptions, today: Day): Window {
  const end = to ?? addDays(today, -1);
  const start = from ?? addDays(end, 1 - DAYS_DEFAULT);
  const broken = brokenLimit({ start, end }, today);
  if (broken !== undefined) throw new AppError("config", faultText(broken, { start, end }, today));
  return { start, end };
}

function faultText(broken: BrokenLimit, { start, end }: Window, today: Day): string {
  switch (broken) {
    case "ends after today":
      return `--to: expected ${today} or before, which is today in UTC; got ${end}`;
    case "begins after its end":
      return `--from: expected ${end} or before, which is the report's last day; got ${start}`;
    case "begins too early":
      return `--from: expected ${DAY_MIN} or after; got ${start}`;
    case "has too many days":
      return `--from: expected ${addDays(end, 1 - DAYS_MAX)} or after, as a report has at most ${DAYS_MAX} days; got ${start}`;
  }
}
