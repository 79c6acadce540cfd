// When the runs of exports begin and end at the configured rate, and whether each ends before its next one begins. Pure: the time is a
// parameter.

import { DAY_SECONDS } from "../usage/days.ts";
import type { ExportJob } from "../usage/plan.ts";
import { callsOf, type Fit, fitInto, secondsFor, type Workload, workloadOf } from "../usage/workload.ts";
import { nextOccurrences } from "./cron.ts";
import { nextRunAt } from "./due.ts";

/** The next run of an export, as if it had the rate for itself. Without times if its schedule does not occur again. */
export type Night = Workload & {
  readonly job: string;
  readonly seconds: number;
  readonly startsAt?: Date;
  readonly endsAt?: Date;
  /** The shortest time between two of the next runs. */
  readonly secondsBetween?: number;
  /** What would make the run end before the next one begins; left out if it does. */
  readonly fit?: Fit;
};

export type NightPlan = {
  readonly requestsPerSecond: number;
  readonly exports: readonly Night[];
  /** How many calls all exports make on an average day, and how long they take. */
  readonly callsPerDay: number;
  readonly secondsPerDay: number;
};

/** Enough to see a schedule that rests at weekends. */
const OCCURRENCES = 15;

export function planNights(exports: readonly ExportJob[], requestsPerSecond: number, now: Date): NightPlan {
  const nights = exports.map((job) => nightOf(job, requestsPerSecond, now));
  const perDay = nights.map(({ calls, runsPerDay }) => calls * runsPerDay);
  const callsPerDay = Math.ceil(perDay.reduce((sum, calls) => sum + calls, 0));
  return {
    requestsPerSecond,
    exports: nights.map(({ night }) => night),
    callsPerDay,
    secondsPerDay: Math.ceil(callsPerDay / requestsPerSecond),
  };
}

function nightOf(job: ExportJob, requestsPerSecond: number, now: Date) {
  const workload = workloadOf(job);
  const seconds = secondsFor(workload, requestsPerSecond);
  const moments = nextOccurrences(job, now, OCCURRENCES).map((moment) => moment.getTime() / 1000);
  const gaps = moments.slice(1).map((moment, i) => moment - (moments[i] ?? 0));
  const secondsBetween = gaps.length > 0 ? Math.min(...gaps) : undefined;
  const averageGap = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const startsAt = nextRunAt(job, now);
  const night: Night = {
    job: job.name,
    ...workload,
    seconds,
    ...(startsAt && { startsAt, endsAt: new Date(startsAt.getTime() + seconds * 1000) }),
    ...(secondsBetween !== undefined && { secondsBetween }),
    ...(secondsBetween !== undefined &&
      seconds > secondsBetween && { fit: fitInto(job, secondsBetween, requestsPerSecond) }),
  };
  return { night, calls: callsOf(workload), runsPerDay: gaps.length > 0 ? DAY_SECONDS / averageGap : 0 };
}
