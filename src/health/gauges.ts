// The gauges of the health state, which every replica answers alike: what they are, and their samples. How many samples there are is
// limited, however many projects, jobs and rotations are configured. Pure.

import type { ProjectHealth, SeriesHealth } from "../db/health.ts";
import type { StoredList } from "../db/projects.ts";
import type { BudgetUse } from "../usage/budgets.ts";
import { type Day, startOfDay } from "../usage/days.ts";
import { problemsOf } from "./conditions.ts";
import { type HealthFigures, type JobHealth, type RotationHealth, type SliceCounts, worstProjects } from "./state.ts";

/** One number of the health state. */
export type MetricSample = {
  readonly gauge: keyof typeof GAUGES;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

/** A series of usage has no "source". */
const SERIES_LABELS = ["project", "source", "grouping", "filter"] as const;
const PROJECT_LABELS = ["project", "source"] as const;
/** Not "job": Prometheus uses that label for the target of a scrape. */
const JOB_LABELS = ["kind", "job_name"] as const;

export const GAUGES = {
  condition: {
    help: "1 while the condition is wrong, as `usage-export status` lists it; absent while it is not",
    labelNames: ["name", "subject", "severity"],
  },
  newest_complete_day_timestamp_seconds: {
    help: "Midnight UTC at which the newest day begins up to which nothing of the series is missing",
    labelNames: SERIES_LABELS,
  },
  incomplete_slices: {
    help: "Slices of the series (a day each) that are missing (due and never read), failed or suspect",
    labelNames: [...SERIES_LABELS, "status"],
  },
  series: { help: "How many series are configured", labelNames: [] },
  project_newest_complete_day_timestamp_seconds: {
    help: "Midnight UTC at which the newest day begins up to which nothing of the project's series is missing",
    labelNames: PROJECT_LABELS,
  },
  project_incomplete_slices: {
    help: "Slices of the project's series that are missing, failed or suspect",
    labelNames: [...PROJECT_LABELS, "status"],
  },
  all_newest_complete_day_timestamp_seconds: {
    help: "Midnight UTC at which the newest day begins up to which nothing of any series is missing",
    labelNames: [],
  },
  all_incomplete_slices: { help: "Slices of all series that are missing, failed or suspect", labelNames: ["status"] },
  job_last_success_timestamp_seconds: {
    help: "When the newest run of the job ended in which everything was stored, without backfills",
    labelNames: JOB_LABELS,
  },
  job_failures: {
    help: "Runs of the job that failed or were interrupted since the last that ended well, without backfills",
    labelNames: JOB_LABELS,
  },
  job_next_run_timestamp_seconds: {
    help: "When the job is due next; in the past while no worker has planned a run that is due; absent while it is paused",
    labelNames: JOB_LABELS,
  },
  api_key_age_seconds: {
    help: "How long ago the key in use was requested, or put back by a person",
    labelNames: ["rotation"],
  },
  api_keys: { help: "Keys in the ledger that exist or may exist, by state", labelNames: ["rotation", "state"] },
  api_keys_due_for_removal: { help: "Replaced keys whose grace days are over", labelNames: ["rotation"] },
  rotation_failed_attempts: { help: "Failures of the rotation since its last success", labelNames: ["rotation"] },
  workers: { help: "Workers that ended a tick, which comes every minute, in the last two minutes", labelNames: [] },
  worker_last_seen_timestamp_seconds: { help: "When any worker ended its newest tick", labelNames: [] },
  queue_jobs: {
    help: "Projects of runs, and rotations, in the queue: waiting, retrying (waits for another attempt), active, or dead (given up in the last 24 hours)",
    labelNames: ["queue", "state"],
  },
  budget_used_share: {
    help: "Which share of the budget is used in its current period, of the days that were read; 1 where it is used up",
    labelNames: ["budget"],
  },
  budget_forecast_share: {
    help: "Which share of the budget will probably be used by the end of the current month; absent where no forecast is possible",
    labelNames: ["budget"],
  },
  project_list_projects: { help: "Projects that are read because of the list", labelNames: ["list"] },
  project_list_last_read_timestamp_seconds: {
    help: "When the list of projects was last read; absent if it never was",
    labelNames: ["list"],
  },
} as const satisfies Readonly<Record<string, { readonly help: string; readonly labelNames: readonly string[] }>>;

/** Of more series there are samples of projects alone; of more projects, jobs, rotations, budgets or conditions only of the worst. */
export const LABELS_MAX = 200;
/** Of more projects than LABELS_MAX. */
const WORST_PROJECTS = 10;

/** The gauges of a health state. A number that is not known has no sample. */
export function metricSamples(state: HealthFigures): readonly MetricSample[] {
  const { jobs, rotations, queue, workers, budgets, lists } = state;
  const seen = workers[0]?.lastSeenAt;
  const current = budgets.filter(({ isOver }) => !isOver);
  const conditions = worst(problemsOf(state).shown, ({ severity }) => (severity === "critical" ? 1 : 0));
  return [
    ...conditions.flatMap(({ name, subject, severity }) => sample("condition", { name, subject, severity }, 1)),
    ...coverageSamples(state),
    ...worst(jobs, ({ failures, overdueSince }) => failures + (overdueSince ? 1 : 0)).flatMap(jobSamples),
    ...worst(rotations, troubleOf).flatMap(rotationSamples),
    ...queue.flatMap(({ queue, state, jobs }) => sample("queue_jobs", { queue, state }, jobs)),
    ...worst(current, ({ percent }) => Number(percent)).flatMap(budgetSamples),
    ...worst(lists, ({ error, waiting }) => (error === null ? 0 : 1e9) + waiting).flatMap(listSamples),
    ...sample("workers", {}, workers.filter(({ state }) => state === "live").length),
    ...sample("worker_last_seen_timestamp_seconds", {}, seen && seen.getTime() / 1000),
  ];
}

/** The first LABELS_MAX in the order of how bad they are. */
function worst<T>(all: readonly T[], badness: (one: T) => number): readonly T[] {
  if (all.length <= LABELS_MAX) return all;
  return all.toSorted((a, b) => badness(b) - badness(a)).slice(0, LABELS_MAX);
}

function troubleOf({ failedAttempts, keys, ageSeconds }: RotationHealth): number {
  return (failedAttempts + keys.orphan + keys.dueForRemoval) * 1e9 + (ageSeconds ?? 0);
}

/** Of each series, or of each project, or of all together with the worst projects, so that there are never more than LABELS_MAX. */
function coverageSamples({ series, seriesCount, projects, slices }: HealthFigures): readonly MetricSample[] {
  const count = sample("series", {}, seriesCount);
  if (seriesCount <= LABELS_MAX) {
    return [...count, ...series.filter(({ isActive }) => isActive).flatMap(seriesSamples)];
  }
  const configured = projects.filter((one) => one.series > 0);
  if (configured.length <= LABELS_MAX) return [...count, ...configured.flatMap(projectSamples)];
  const freshThrough = configured.flatMap((one) => one.freshThrough ?? []).sort()[0] ?? null;
  return [
    ...count,
    ...sample("all_newest_complete_day_timestamp_seconds", {}, secondsOf(freshThrough)),
    ...statusSamples("all_incomplete_slices", {}, slices),
    ...worstProjects(configured).slice(0, WORST_PROJECTS).flatMap(projectSamples),
  ];
}

function seriesSamples({ freshThrough, project, source, grouping, filter, ...counts }: SeriesHealth) {
  const labels = { project, ...(source !== "usage" && { source }), grouping, filter };
  return [
    ...sample("newest_complete_day_timestamp_seconds", labels, secondsOf(freshThrough)),
    ...statusSamples("incomplete_slices", labels, counts),
  ];
}

function projectSamples({ freshThrough, project, source, ...counts }: ProjectHealth) {
  const labels = { project, ...(source !== "usage" && { source }) };
  return [
    ...sample("project_newest_complete_day_timestamp_seconds", labels, secondsOf(freshThrough)),
    ...statusSamples("project_incomplete_slices", labels, counts),
  ];
}

function statusSamples(
  gauge: MetricSample["gauge"],
  labels: MetricSample["labels"],
  { missing, failed, suspect }: Omit<SliceCounts, "complete">,
): readonly MetricSample[] {
  return Object.entries({ missing, failed, suspect }).flatMap(([status, slices]) =>
    sample(gauge, { ...labels, status }, slices),
  );
}

function secondsOf(day: Day | null): number | null {
  return day === null ? null : startOfDay(day).getTime() / 1000;
}

function jobSamples({ kind, job, lastSuccess, failures, firstUnplanned }: JobHealth) {
  const labels = { kind, job_name: job };
  return [
    ...sample("job_last_success_timestamp_seconds", labels, lastSuccess),
    ...sample("job_failures", labels, failures),
    ...sample("job_next_run_timestamp_seconds", labels, firstUnplanned && firstUnplanned.getTime() / 1000),
  ];
}

function rotationSamples({ rotation, ageSeconds, failedAttempts, keys }: RotationHealth) {
  const { dueForRemoval, longDue: _, ...byState } = keys;
  return [
    ...sample("api_key_age_seconds", { rotation }, ageSeconds),
    ...Object.entries(byState).flatMap(([state, count]) => sample("api_keys", { rotation, state }, count)),
    ...sample("api_keys_due_for_removal", { rotation }, dueForRemoval),
    ...sample("rotation_failed_attempts", { rotation }, failedAttempts),
  ];
}

/** A metric is a double by its format: these are shares for charts, and bi.budgets has the amounts. */
function budgetSamples({ name, percent, forecastPercent }: BudgetUse) {
  const share = (text: string | null) => (text === null ? null : Number(text) / 100);
  return [
    ...sample("budget_used_share", { budget: name }, share(percent)),
    ...sample("budget_forecast_share", { budget: name }, share(forecastPercent)),
  ];
}

function listSamples({ list, projects, readAt }: StoredList) {
  return [
    ...sample("project_list_projects", { list }, projects),
    ...sample("project_list_last_read_timestamp_seconds", { list }, readAt && readAt.getTime() / 1000),
  ];
}

function sample(
  gauge: MetricSample["gauge"],
  labels: MetricSample["labels"],
  value: number | null | undefined,
): readonly MetricSample[] {
  return value === null || value === undefined ? [] : [{ gauge, labels, value }];
}
