// Chooses the jobs, series and days that the command line asks for, before any usage is requested. Pure.

import type { Config } from "../config/config.ts";
import { quoteAll, requireKnown } from "../config/messages.ts";
import { AppError } from "../errors.ts";
import { addDays, DAYS_DEFAULT, type Day, periodError, type Window } from "../usage/days.ts";
import { type BackfillMode, type ExportJob, jobsWithSeries, type Selection, seriesOf } from "../usage/export-plan.ts";
import { everyValueName, type Grouping } from "../usage/series.ts";

export type SelectionOptions = {
  readonly job?: readonly string[];
  readonly project?: readonly string[];
  readonly grouping?: readonly Grouping[];
  readonly filter?: readonly string[];
  readonly day?: readonly Day[];
};

/** Throws `config` for an unknown name, and if nothing is selected: a typo must not look like success. */
export function chooseJobs({ exports, projects: configured }: Config, options: SelectionOptions, today: Day) {
  const { job: names, project: projects, grouping: groupings, filter: filters, day: days } = options;
  if (exports.length === 0) throw new AppError("config", 'there is no export to run: add one under "exports"');
  requireKnown("--job", names, distinctNames(exports));
  requireKnown("--project", projects, distinctNames(configured));
  const fanOuts = exports.flatMap((job) => job.fanOuts ?? []);
  // A fan-out by tags has filters such as `tags=x`, and `tags=*` for all of them. Only the database knows which values exist.
  const checkable = filters?.filter((name) => !fanOuts.some(({ dimension }) => name.startsWith(`${dimension}=`)));
  const everyValues = fanOuts.map(({ dimension }) => ({ name: everyValueName(dimension) }));
  requireKnown("--filter", checkable, distinctNames([...exports.flatMap((job) => job.filters), ...everyValues]));
  const future = days?.find((day) => day > today);
  if (future !== undefined) throw notBegunError(future, today);

  const selection: Selection = { projects, groupings, filters, days };
  const jobs = exports.filter((job) => (names?.includes(job.name) ?? true) && isSelected(job, selection));
  if (jobs.length === 0) throw new AppError("config", "no export has this combination of project, grouping and filter");
  const windowless = days && jobs.find((job) => !job.window);
  if (windowless) {
    throw new AppError("config", `--day: the export "${windowless.name}" has no "window", so it can't ask for a day`);
  }
  return { jobs, selection };
}

function distinctNames(named: readonly { readonly name: string }[]): readonly string[] {
  return [...new Set(named.map(({ name }) => name))];
}

/** Whether the job has selected series, or fan-outs that may get some. With --filter, fan-outs count only until their values are read (`seen`). */
function isSelected(job: ExportJob, selection: Selection): boolean {
  const { projects, filters } = selection;
  const mayFanOut = (job.fanOuts ?? []).length > 0 && !(job.seen && filters);
  const hasProject = job.projects.some(({ name }) => projects?.includes(name) ?? true);
  return seriesOf(job, selection).length > 0 || (mayFanOut && hasProject);
}

export function notBegunError(day: Day, today: Day): AppError {
  return new AppError("config", `--day: ${day} has not begun; today is ${today} in UTC`);
}

export type BackfillOptions = Omit<SelectionOptions, "day"> & {
  readonly from: Day;
  readonly to: Day;
  readonly only: BackfillMode;
  readonly dryRun?: boolean;
  readonly json?: boolean;
};

export type BackfillChoice = ReturnType<typeof chooseBackfill>;

/** Ten years. The days of a range become due for good: a typo such as 2006 must not make twenty years due. */
const RANGE_LIMITS = { daysMax: 3660, newestIs: "the newest day that is over in UTC" };

/** Throws `config` for a selection or range that can't be backfilled. `windowless` names the exports that are left out. */
export function chooseBackfill(config: Config, options: BackfillOptions, today: Day) {
  const range = { start: options.from, end: options.to };
  requirePeriod(range, addDays(today, -1), RANGE_LIMITS);
  const { jobs, selection } = chooseJobs(config, options, today);
  const dated = jobs.filter(({ window }) => window);
  const windowless = jobs.filter(({ window }) => !window).map(({ name }) => name);
  if (dated.length === 0) {
    const message = `nothing to backfill: only exports with a "window" can ask for days; without one: ${quoteAll(windowless)}`;
    throw new AppError("config", message);
  }
  return { jobs: jobsWithSeries(dated, selection), windowless, range };
}

/** The text of `periodError` begins with the option's name, without its dashes. */
function requirePeriod(period: Window, newest: Day, limits?: typeof RANGE_LIMITS): void {
  const fault = periodError(period, newest, limits);
  if (fault !== undefined) throw new AppError("config", `--${fault}`);
}

export type PeriodOptions = { readonly from?: Day | undefined; readonly to?: Day | undefined };

/** Without options, the last `days` complete days. Throws `config` for a period that can't be reported on. */
export function choosePeriod({ from, to }: PeriodOptions, today: Day, days: number = DAYS_DEFAULT): Window {
  const end = to ?? addDays(today, -1);
  const period = { start: from ?? addDays(end, 1 - days), end };
  requirePeriod(period, today);
  return period;
}
