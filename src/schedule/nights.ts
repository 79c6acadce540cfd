// When the runs of exports begin and end at the configured rates, and whether each ends before its next one begins. Pure: the time is a
// parameter.

import { DAY_SECONDS } from "../usage/days.ts";
import type { ExportJob } from "../usage/plan.ts";
import {
  type CappedKey,
  type Duration,
  durationOf,
  type Fit,
  fitInto,
  loadOf,
  type Pace,
  type SlowKey,
  sumOfLoads,
  tightest,
  tightestCap,
  type Workload,
  workloadOf,
} from "../usage/workload.ts";
import { nextOccurrences } from "./cron.ts";
import { nextRunAt } from "./due.ts";

/** The next run of an export, as if it had the rates for itself. Without times if its schedule does not occur again. */
export type Night = Workload &
  Duration & {
    readonly job: string;
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
  /** The key that makes a day of all exports so long; left out if the installation's rate does. */
  readonly slowestKeyPerDay?: SlowKey;
  /** Of the keys with a cap of calls at once, the one whose answers must be the quickest for these times to hold. */
  readonly tightestCap?: CappedKey;
};

/** Enough to see a schedule that rests at weekends. */
const OCCURRENCES = 15;

export function planNights(exports: readonly ExportJob[], pace: Pace, now: Date): NightPlan {
  const nights = exports.map((job) => nightOf(job, pace, now));
  const perDay = sumOfLoads(nights.map(({ load, runsPerDay }) => ({ load, times: runsPerDay })));
  const { seconds: secondsPerDay, slowestKey } = durationOf(perDay, pace);
  const caps = [
    ...nights.map(({ night, load }) => tightestCap(load, night.seconds)),
    tightestCap(perDay, secondsPerDay),
  ].filter((one) => one !== undefined);
  const cap = tightest(caps);
  return {
    requestsPerSecond: pace.requestsPerSecond,
    exports: nights.map(({ night }) => night),
    callsPerDay: perDay.calls,
    secondsPerDay,
    ...(slowestKey && { slowestKeyPerDay: slowestKey }),
    ...(cap && { tightestCap: cap }),
  };
}

function nightOf(job: ExportJob, pace: Pace, now: Date) {
  const workload = workloadOf(job);
  const load = loadOf(job, pace);
  const duration = durationOf(load, pace);
  const { seconds } = duration;
  const moments = nextOccurrences(job, now, OCCURRENCES).map((moment) => moment.getTime() / 1000);
  const gaps = moments.slice(1).map((moment, i) => moment - (moments[i] ?? 0));
  const secondsBetween = gaps.length > 0 ? Math.min(...gaps) : undefined;
  const averageGap = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const startsAt = nextRunAt(job, now);
  const night: Night = {
    job: job.name,
    ...workload,
    ...duration,
    ...(startsAt && { startsAt, endsAt: new Date(startsAt.getTime() + seconds * 1000) }),
    ...(secondsBetween !== undefined && { secondsBetween }),
    ...(secondsBetween !== undefined && seconds > secondsBetween && { fit: fitInto(job, secondsBetween, pace) }),
  };
  return { night, load, runsPerDay: gaps.length > 0 ? DAY_SECONDS / averageGap : 0 };
}
