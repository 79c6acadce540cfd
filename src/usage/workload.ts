// How many calls a run of an export makes, how long they take at a rate, and what would fit into a given time. Pure.

import { dayCount, type Window } from "./days.ts";
import { type ExportJob, REQUEST_DAYS_MAX, seriesOf } from "./plan.ts";
import { filterKey, type Grouping, NO_CONDITIONS, type Series } from "./series.ts";

export type Workload = {
  /** Breakdowns, of usage or of billing. */
  readonly requests: number;
  /** Calls beside them: each project's list of keys and balances, and the totals that filtered answers are compared with. */
  readonly otherCalls: number;
  readonly slices: number;
};

/** Of a run; with `range`, of a backfill of all its days. Values of fan-outs count as far as they are in `job.seen`. */
export function workloadOf(job: ExportJob, range?: Window, series: readonly Series[] = seriesOf(job)): Workload {
  const days = range ? dayCount(range) : daysOfRun(job);
  const stretches = Math.ceil(days / REQUEST_DAYS_MAX);
  const projects = new Set(series.map(({ project }) => project.id)).size;
  const isCompared = job.checkFeatures !== "off" && series.some(({ filter }) => filterKey(filter) !== NO_CONDITIONS);
  return {
    requests: series.length * stretches,
    otherCalls: projects * ((job.source === "billing" ? 2 : 1) + (isCompared ? stretches : 0)),
    slices: series.length * days,
  };
}

/** Without a window a run asks once, for one day as far as anybody knows. */
function daysOfRun({ window }: Pick<ExportJob, "window">): number {
  return window ? window.days + (window.today ? 1 : 0) : 1;
}

export function callsOf({ requests, otherCalls }: Workload): number {
  return requests + otherCalls;
}

/** At the least: a service that answers slowly takes longer. */
export function secondsFor(workload: Workload, requestsPerSecond: number): number {
  return Math.ceil(callsOf(workload) / requestsPerSecond);
}

/** What would make a run end in time; each by itself is enough. */
export type Fit = {
  readonly requestsPerSecond: number;
  /** The longest shorter window that fits. Only what is above 31 days costs further requests. */
  readonly windowDays?: number;
  /** As many of the job's groupings as fit, the most useful ones first. */
  readonly groupings?: readonly Grouping[];
};

const MOST_USEFUL: readonly Grouping[] = ["none", "model"];

export function fitInto(job: ExportJob, seconds: number, requestsPerSecond: number): Fit {
  const fits = (part: Partial<ExportJob>) => secondsFor(workloadOf({ ...job, ...part }), requestsPerSecond) <= seconds;
  const { window } = job;
  const today = window?.today ? 1 : 0;
  const stretches = window ? Math.ceil(daysOfRun(job) / REQUEST_DAYS_MAX) : 1;
  const shorter = Array.from({ length: stretches - 1 }, (_, i) => (stretches - 1 - i) * REQUEST_DAYS_MAX - today);
  const windowDays = window && shorter.find((days) => fits({ window: { ...window, days } }));
  const ranked = [
    ...MOST_USEFUL.filter((one) => job.groupings.includes(one)),
    ...job.groupings.filter((one) => !MOST_USEFUL.includes(one)),
  ];
  const fewer = ranked.map((_, i) => ranked.slice(0, ranked.length - 1 - i)).filter(({ length }) => length > 0);
  const groupings = fewer.find((some) => fits({ groupings: some }));
  return {
    requestsPerSecond: Math.ceil((callsOf(workloadOf(job)) / seconds) * 10) / 10,
    ...(windowDays !== undefined && { windowDays }),
    ...(groupings && { groupings }),
  };
}
