// Which jobs and which part of them the command line asks for.

import type { Config } from "../config/config.ts";
import { didYouMean } from "../config/near-miss.ts";
import { AppError } from "../errors.ts";
import type { Day } from "../usage/day.ts";
import { type ExportJob, type Selection, seriesOf } from "../usage/plan.ts";
import type { Grouping } from "../usage/series.ts";

export type SelectionOptions = {
  readonly job?: readonly string[];
  readonly project?: readonly string[];
  readonly grouping?: readonly Grouping[];
  readonly filter?: readonly string[];
  readonly day?: readonly Day[];
};

export type Chosen = { readonly jobs: readonly ExportJob[]; readonly selection: Selection };

/** Throws `config` for a name that is not configured, and where nothing is left to do: a typo must not look like success. */
export function chooseJobs(config: Config, options: SelectionOptions, today: Day): Chosen {
  const { exports } = config;
  if (exports.length === 0) throw new AppError("config", 'there is no export to run: add one under "exports"');
  const names = (values: readonly string[]) => [...new Set(values)];
  requireKnown("--job", options.job, names(exports.map(({ name }) => name)));
  requireKnown("--project", options.project, names(config.projects.map(({ name }) => name)));
  requireKnown("--filter", options.filter, names(exports.flatMap(({ filters }) => filters.map(({ name }) => name))));
  const late = options.day?.find((day) => day > today);
  if (late !== undefined) throw new AppError("config", `--day: ${late} has not begun; today is ${today} in UTC`);

  const selection = {
    ...(options.project && { projects: options.project }),
    ...(options.grouping && { groupings: options.grouping }),
    ...(options.filter && { filters: options.filter }),
    ...(options.day && { days: options.day }),
  };
  const jobs = exports.filter(
    (job) => (options.job?.includes(job.name) ?? true) && seriesOf(job, selection).length > 0,
  );
  if (jobs.length === 0) throw new AppError("config", "no export has this combination of project, grouping and filter");
  const dateless = options.day && jobs.find((job) => !job.window);
  if (dateless) {
    throw new AppError("config", `--day: the export "${dateless.name}" has no "window", so it can't ask for a day`);
  }
  return { jobs, selection };
}

function requireKnown(option: string, given: readonly string[] | undefined, known: readonly string[]): void {
  for (const name of given ?? []) {
    if (known.includes(name)) continue;
    const list = known.map((one) => JSON.stringify(one)).join(", ") || "none";
    throw new AppError(
      "config",
      `${option}: ${JSON.stringify(name)} is not configured (there is ${list})${didYouMean(name, known)}`,
    );
  }
}
