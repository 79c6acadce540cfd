// The health state: jobs, workers, coverage, rotations and queue, read at one moment. Everything that says whether all is well
// is computed from it. Here are its types, the alerts that follow from it, and the groups in which gaps and queue jobs are shown. Pure.

import { counted } from "../report/format.ts";
import type { Day } from "../usage/days.ts";

export type HealthState = {
  /** The moment of reading, by the database's clock. */
  readonly readAt: Date;
  /** When the pause of all calls, which the service asked for, ends. */
  readonly callsPausedUntil: Date | undefined;
  readonly jobs: readonly JobHealth[];
  /** The worker seen last comes first. */
  readonly workers: readonly WorkerHealth[];
  /** Number of slices by status. */
  readonly slices: Readonly<Record<"complete" | "suspect" | "failed" | "missing", number>>;
  /** Why slices are failed; the cause with the most slices comes first. */
  readonly causes: readonly FailureCause[];
  readonly rotations: readonly { readonly rotation: string; readonly warnings: readonly string[] }[];
};

export type JobHealth = {
  readonly kind: string;
  readonly job: string;
  /** A worker should run this job: some worker has registered it, and it is not paused. */
  readonly needsWorker: boolean;
  /** When the job was first due without a worker having taken it up since. */
  readonly overdueSince: Date | undefined;
  /** The newest run that says how the job does, if that run went wrong. */
  readonly failedRun: FailedRun | undefined;
};

export type FailedRun = {
  readonly status: "failed" | "interrupted";
  readonly trigger: string;
  readonly startedAt: Date;
  readonly error: string | null;
  /** The days it read are complete all the same, so no slice reports the failure. */
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
  /** It was seen within the time of two ticks, even if only to report that it stops. */
  readonly recent: boolean;
};

/** A cause that failed slices share. */
export type FailureCause = {
  readonly code: string | undefined;
  readonly project: string | undefined;
  readonly since: Date;
  readonly slices: number;
  /** Slices that still show the numbers of an earlier reading. */
  readonly slicesWithNumbers: number;
  readonly series: number;
  /** Requests that wait for a retry. */
  readonly requests: number;
  /** Undefined if nothing retries by itself. */
  readonly nextTry: Date | undefined;
  readonly error: string;
};

/** A condition that a person should know of. */
export type Alert = {
  readonly text: string;
  /** The section of the dashboard with the details. */
  readonly section: "jobs" | "runs" | "gaps" | "keys";
};

/** Every due slice is complete, no run failed, no rotation warns, and no job waits for a worker. */
export function isWell(state: HealthState): boolean {
  return alertsOf(state).length === 0;
}

export function alertsOf(state: HealthState): readonly Alert[] {
  const { jobs, slices, causes, rotations } = state;
  const { missing, failed, suspect } = slices;
  const noWorker = noWorkerAlert(state);
  const warned = new Set(rotations.flatMap(({ rotation, warnings }) => (warnings.length > 0 ? [rotation] : [])));
  return [
    // Without any worker every job is overdue for the same reason, so one alert covers them all.
    ...(noWorker ? [noWorker] : jobs.flatMap(overdueAlert)),
    // A rotation's own warning already says why its run failed.
    ...jobs.filter(({ kind, job }) => kind !== "rotation" || !warned.has(job)).flatMap(failedRunAlert),
    ...sliceAlert(missing, `${counted(missing, "slice")} missing: due and never read`),
    ...(causes.length > 0
      ? causeAlerts(causes)
      : sliceAlert(failed, `${counted(failed, "slice")} failed: the newest reading went wrong`)),
    ...sliceAlert(suspect, `${counted(suspect, "slice")} suspect: empty where there were numbers, which stay`),
    ...rotations.flatMap(({ rotation, warnings }) =>
      warnings.map((warning) => ({ text: `rotation ${rotation}: ${warning}`, section: "keys" as const })),
    ),
  ];
}

/** If another scheduler runs the exports, no worker ever registered the jobs, so no worker is missing. */
function noWorkerAlert({ jobs, workers }: HealthState): Alert | undefined {
  if (!jobs.some(({ needsWorker }) => needsWorker)) return undefined;
  if (workers.some(({ recent }) => recent)) return undefined;
  const [last] = workers;
  const seen = last
    ? `the last one, ${last.host} pid ${last.pid}, was seen ${minute(last.lastSeenAt)}`
    : "none was seen";
  return { text: `no worker runs, so nothing is done on schedule: ${seen}; run: usage-export start`, section: "jobs" };
}

function overdueAlert({ kind, job, overdueSince }: JobHealth): readonly Alert[] {
  if (!overdueSince) return [];
  return [
    { text: `${kind} ${job} is overdue since ${minute(overdueSince)}: no worker has taken it up`, section: "jobs" },
  ];
}

function failedRunAlert({ kind, job, failedRun }: JobHealth): readonly Alert[] {
  if (!failedRun?.overCompleteDays) return [];
  const { status, trigger, startedAt, error } = failedRun;
  const went = status === "failed" ? "failed" : "was interrupted";
  const reason = error === null ? "" : `: ${error}`;
  return [{ text: `${kind} ${job} ${went} in its run of ${minute(startedAt)} (${trigger})${reason}`, section: "runs" }];
}

function sliceAlert(count: number, text: string): readonly Alert[] {
  return count > 0 ? [{ text, section: "gaps" }] : [];
}

const CAUSES_SHOWN_MAX = 5;

function causeAlerts(causes: readonly FailureCause[]): readonly Alert[] {
  const others = causes.slice(CAUSES_SHOWN_MAX).reduce((sum, { slices }) => sum + slices, 0);
  return [
    ...causes.slice(0, CAUSES_SHOWN_MAX).map((cause) => ({ text: causeText(cause), section: "gaps" as const })),
    ...sliceAlert(others, `${counted(others, "slice")} failed for other reasons`),
  ];
}

/** One line for all failures with the same cause. */
function causeText(cause: FailureCause): string {
  const { since, slices, slicesWithNumbers, series, requests, nextTry } = cause;
  const numbers =
    slicesWithNumbers === 0
      ? "no numbers of these days yet"
      : `last good numbers shown${slicesWithNumbers < slices ? ` for ${slicesWithNumbers} of them` : ""}`;
  return [
    `${headOf(cause)} since ${minute(since)}`,
    `${requests > 0 ? `${counted(requests, "request")}, ` : ""}${counted(slices, "slice")} of ${series} series failed`,
    ...(nextTry ? [`next try ${minute(nextTry)}`] : []),
    numbers,
  ].join("; ");
}

function headOf({ code, project, error }: FailureCause): string {
  const status = /the service answered (\d{3})/.exec(error)?.[1];
  switch (code) {
    case "unavailable":
      return status === undefined ? "service not reachable" : `service not available (${status})`;
    case "rate_limited":
      return `service asks for fewer calls (${status ?? "429"})`;
    case "unauthorized":
      return `key of project ${project} refused${status === undefined ? "" : ` (${status})`}`;
    default:
      return error === "" ? "readings fail" : `"${truncatedError(errorReason(error))}"`;
  }
}

const ERROR_LENGTH_MAX = 200;

function truncatedError(text: string): string {
  const chars = [...text];
  return chars.length > ERROR_LENGTH_MAX ? `${chars.slice(0, ERROR_LENGTH_MAX - 1).join("")}…` : text;
}

function minute(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

// What the dashboard says of jobs, runs, gaps and keys, before it is a page.

export type Operations = Omit<HealthState, "jobs" | "rotations"> & {
  readonly jobs: readonly DashboardJob[];
  /** The newest first. */
  readonly runs: readonly DashboardRun[];
  /** The newest first. */
  readonly gaps: readonly Gap[];
  readonly rotations: readonly DashboardRotation[];
  readonly queue: readonly QueueCount[];
};

export type DashboardJob = JobHealth & {
  readonly schedule: string;
  readonly timezone: string;
  readonly lastRun: Pick<DashboardRun, "status" | "startedAt" | "trigger"> | undefined;
  readonly nextRun: Date | undefined;
  readonly paused: { readonly at: Date; readonly why: string; readonly by: string } | undefined;
};

export type DashboardRun = {
  readonly kind: string;
  readonly job: string;
  readonly trigger: string;
  readonly status: string;
  readonly startedAt: Date;
  readonly finishedAt: Date | null;
  /** Slices. */
  readonly planned: number;
  readonly complete: number;
  readonly suspect: number;
  readonly failed: number;
  readonly undated: number;
  readonly stale: number;
  readonly rowsChanged: number;
  readonly error: string | null;
};

export type DashboardRotation = {
  readonly rotation: string;
  /** Null where it is not configured any more. */
  readonly maxAgeDays: number | null;
  readonly warnings: readonly string[];
  /** The newest first. */
  readonly keys: readonly DashboardKey[];
};

export type DashboardKey = {
  readonly apiKeyId: string | null;
  /** Stands in the comment of a key whose id is not known. */
  readonly intentId: string;
  readonly state: string;
  readonly ageDays: number;
  readonly lastSeenInUse: Day | null;
  readonly dueForRemovalAt: Date | null;
  readonly comment: string;
  readonly note: string | null;
};

export type QueueCount = {
  readonly queue: string;
  readonly state: "waiting" | "retrying" | "active" | "dead";
  readonly jobs: number;
};

// Groups gaps that have the same days, status and reason: an outage makes the same gap in every series. Pure.

export type Gap = {
  readonly project: string;
  readonly grouping: string;
  readonly filter: string;
  readonly status: string;
  readonly from: Day;
  readonly to: Day;
  readonly error: string | null;
};

export type GapGroup = Pick<Gap, "status" | "from" | "to" | "error"> & {
  readonly series: readonly Pick<Gap, "project" | "grouping" | "filter">[];
};

/** The parts in which error texts with the same reason differ. */
const REQUEST_DETAILS = / \((?:\d+ attempts|request id [^)]*)\)/g;

function errorReason(error: string): string {
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

// Adds up the work in the queue, for a person. Pure.

const QUEUE_STATE_WORDS = {
  waiting: "waiting",
  retrying: "to be tried again",
  active: "in hand",
  dead: "given up in the last day",
} as const;

/** What was given up is moved to a queue of its own, where it would count a second time. */
const DEAD_LETTER_QUEUE = "usage_request_dead";

/** Of each state, "3 waiting", in the order of the way through the queue. */
export function queueTotals(queue: readonly QueueCount[]): readonly { readonly jobs: number; readonly text: string }[] {
  return Object.entries(QUEUE_STATE_WORDS).map(([state, words]) => {
    const works = queue.filter((one) => one.state === state && one.queue !== DEAD_LETTER_QUEUE);
    const jobs = works.reduce((sum, { jobs }) => sum + jobs, 0);
    return { jobs, text: `${jobs} ${words}` };
  });
}
