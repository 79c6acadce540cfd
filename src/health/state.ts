// The health state: jobs, workers, coverage, rotations and queue, read at one moment. `status`, the dashboard, /metrics, the
// notifications and the dead man's switch are computed from it. Pure.

import type { JudgedUsage } from "../db/anomalies.ts";
import type { CallPause } from "../db/calling-processes.ts";
import type { Gap, LastOutcome, LastRun, ProjectHealth, SeriesHealth } from "../db/health.ts";
import type { Pause } from "../db/jobs/jobs.ts";
import type { QueueDepth } from "../db/jobs/queue.ts";
import type { ConfigRefusal } from "../db/jobs/workers.ts";
import type { RotationRow } from "../db/keys/status.ts";
import type { StoredList } from "../db/projects.ts";
import type { FailureCause } from "../db/usage/failures.ts";
import type { RotationJob } from "../keys/policy.ts";
import type { BudgetUse } from "../usage/budgets.ts";
import type { JobSeries } from "../usage/plan.ts";
import type { SeriesName } from "../usage/series.ts";
import type { SliceStatus } from "../usage/slice.ts";

export type HealthState = HealthFigures & {
  /** The newest first, at most GAPS_MAX of db/health.ts. */
  readonly gaps: readonly Gap[];
  /** How many older gaps are not in the list. */
  readonly gapsLeftOut: number;
  /** Why slices are failed; the cause with the most slices comes first. */
  readonly causes: readonly FailureCause[];
};

/** The health state without the lists of missing and failed days, which may be very long. */
export type HealthFigures = {
  /** The moment of reading, by the database's clock. */
  readonly readAt: Date;
  /** The pauses that the service asked for. */
  readonly callPauses: readonly CallPause[];
  /** The exports first. */
  readonly jobs: readonly JobHealth[];
  /** The worker seen last comes first. */
  readonly workers: readonly WorkerHealth[];
  /** If there are few series, all of them; otherwise only those that are configured and have a day that is not complete. */
  readonly series: readonly SeriesHealth[];
  /** How many series are configured. */
  readonly seriesCount: number;
  /** One for each project and source. */
  readonly projects: readonly ProjectHealth[];
  readonly slices: SliceCounts;
  /** Rotations that have run at least once. */
  readonly rotations: readonly RotationHealth[];
  readonly queue: readonly QueueDepth[];
  /** The lists of projects that the configuration discovers projects by. */
  readonly lists: readonly StoredList[];
  /** Budgets in the periods that somebody should watch. */
  readonly budgets: readonly BudgetUse[];
  /** The projects and filters of which days are judged, with their unusual days; empty if `anomalies` is off. */
  readonly anomalies: readonly JudgedUsage[];
  /** Which of budgets and anomalies could not be read, by the kind of their alerts. Their lists are empty then; all else was read. */
  readonly notRead: readonly { readonly kind: "budget" | "anomaly"; readonly error: string }[];
};

export type JobHealth = {
  readonly kind: "export" | "rotation";
  readonly job: string;
  /** How many projects a rotation is for, if it is for many: then this is the state of all of them together. */
  readonly projects?: number;
  readonly schedule: string;
  readonly timezone: string;
  /** Undefined while the job is paused. */
  readonly nextRun: Date | undefined;
  /** The scheduled time of the first run that no worker has planned yet. It is in the past while that run waits for a worker. */
  readonly firstUnplanned: Date | undefined;
  readonly paused: Pause | undefined;
  /** A worker should run this job: some worker has registered it, and it is not paused. */
  readonly needsWorker: boolean;
  /** The scheduled time that no worker has planned although a tick should have; undefined if there is none. */
  readonly overdueSince: Date | undefined;
  /** A run of the job is in progress or begins with the next tick. */
  readonly isInProgress: boolean;
  readonly lastRun: LastRun | undefined;
  /**
   * How the newest run ended that tells whether the job works: not, for example, a stopped run or a backfill that failed. The rule is at
   * `lastOutcomes` in db/health.ts. Undefined before the first such run.
   */
  readonly outcome: LastOutcome | undefined;
  /** That run if it failed, or the newest run of all if it was interrupted. */
  readonly failedRun: FailedRun | undefined;
  /** When the newest successful run ended, in seconds since 1970; null if none did. */
  readonly lastSuccess: number | null;
  /** Runs that failed or were interrupted since `lastSuccess`. */
  readonly failures: number;
  /** The series that an export reads. */
  readonly series: JobSeries;
};

export type FailedRun = {
  readonly status: "failed" | "interrupted";
  readonly trigger: string;
  readonly startedAt: Date;
  readonly error: string | null;
  /**
   * No alert about slices reports this failure, so the run needs an alert of its own: no slice of the job is failed, and the run failed
   * for another reason than suspect slices.
   */
  readonly overCompleteDays: boolean;
};

export type WorkerHealth = {
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly startedAt: Date;
  readonly lastSeenAt: Date;
  /** "silent": the worker was not told to stop, but is no longer seen. */
  readonly state: "live" | "silent" | "stopped";
  /** It was seen within the time of two ticks. Its report that it stops counts as being seen. */
  readonly recent: boolean;
  /** Why it does not use the newest version of its configuration; undefined if it does. */
  readonly refusal: ConfigRefusal | undefined;
};

export type RotationHealth = RotationRow & {
  /** Undefined if it is not configured any more. */
  readonly configured: Pick<RotationJob, "maxAgeDays" | "retire"> | undefined;
  /** What a person should know of it beside its keys and its failures. */
  readonly warnings: readonly string[];
};

export type SliceCounts = Readonly<Record<SliceStatus, number>>;

/** Slices that are not complete count only if their series is configured: nothing reads the others again. */
export function countSlices(projects: readonly ProjectHealth[]): SliceCounts {
  const sum = (status: SliceStatus) => projects.reduce((total, project) => total + project[status], 0);
  return { complete: sum("complete"), suspect: sum("suspect"), failed: sum("failed"), missing: sum("missing") };
}

/** The projects with the most missing or failed days first. Suspect days count less: their numbers were right once. */
export function worstProjects(projects: readonly ProjectHealth[]): readonly ProjectHealth[] {
  const unread = ({ missing, failed }: ProjectHealth) => missing + failed;
  return projects.toSorted(
    (a, b) => unread(b) - unread(a) || b.suspect - a.suspect || compare(a.freshThrough ?? "~", b.freshThrough ?? "~"),
  );
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

// Groups gaps that have the same days, status and reason: an outage makes the same gap in every series.

export type GapGroup = Pick<Gap, "status" | "from" | "to" | "error"> & { readonly series: readonly SeriesName[] };

/** The parts in which error texts with the same reason differ. */
const REQUEST_DETAILS = / \((?:\d+ attempts|request id [^)]*)\)/g;

export function errorReason(error: string): string {
  return error.replaceAll(REQUEST_DETAILS, "");
}

/** Groups are in the order of their first gap. */
export function groupGaps(gaps: readonly Gap[]): readonly GapGroup[] {
  const groups = Map.groupBy(gaps, ({ status, from, to, error }) =>
    JSON.stringify([status, from, to, error && errorReason(error)]),
  );
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first ? [{ status: first.status, from: first.from, to: first.to, error: first.error, series: group }] : [];
  });
}

// Sums of the jobs in the queue, as text for people.

const QUEUE_STATE_WORDS = {
  waiting: "waiting",
  retrying: "waiting for a retry",
  active: "in progress",
  dead: "given up in the last day",
} as const;

/** The total of each state as "3 waiting", in the order in which a job passes through the states. */
export function queueTotals(queue: readonly QueueDepth[]): readonly { readonly jobs: number; readonly text: string }[] {
  return Object.entries(QUEUE_STATE_WORDS).map(([state, words]) => {
    const counts = queue.filter((one) => one.state === state);
    const jobs = counts.reduce((sum, count) => sum + count.jobs, 0);
    return { jobs, text: `${jobs} ${words}` };
  });
}
