// The health state: jobs, workers, coverage and rotations, read at one moment, and the alerts that follow from it. Whatever
// says that all is well, or not, asks here. Pure.

import { counted } from "../report/figures.ts";

export type HealthState = {
  /** By the database's clock. */
  readonly readAt: Date;
  /** The service asked for a pause of all calls: until when. */
  readonly callsPausedUntil: Date | undefined;
  readonly jobs: readonly JobHealth[];
  /** The one that was heard of last comes first. */
  readonly workers: readonly WorkerHealth[];
  /** Slices by status. */
  readonly slices: Readonly<Record<"complete" | "suspect" | "failed" | "missing", number>>;
  readonly rotations: readonly { readonly rotation: string; readonly warnings: readonly string[] }[];
};

export type JobHealth = {
  readonly kind: string;
  readonly job: string;
  /** A worker is to run it: one knows it, and nobody paused it. */
  readonly needsWorker: boolean;
  /** When it was due first, where no worker has taken it up since. */
  readonly overdueSince: Date | undefined;
  /** Its newest run that says how the job does, where that went wrong. */
  readonly failedRun: FailedRun | undefined;
};

export type FailedRun = {
  readonly status: "failed" | "interrupted";
  readonly trigger: string;
  readonly startedAt: Date;
  readonly error: string | null;
  /** The days it read are complete all the same, so that no slice tells of the failure. */
  readonly overCompleteDays: boolean;
};

export type WorkerHealth = {
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly startedAt: Date;
  readonly lastSeenAt: Date;
  /** "silent": it was not told to stop, and yet it is not heard of. */
  readonly state: "live" | "silent" | "stopped";
  /** It was heard of within the time of two ticks, if only to say that it stops. */
  readonly recent: boolean;
};

/** Something that a person should look at. */
export type Alert = {
  readonly text: string;
  /** The section of the dashboard that says more. */
  readonly section: "jobs" | "runs" | "gaps" | "keys";
};

/** Nothing that was due is not complete, no run failed, no rotation warns, and no job waits for a worker. */
export function isWell(state: HealthState): boolean {
  return alertsOf(state).length === 0;
}

export function alertsOf(state: HealthState): readonly Alert[] {
  const { jobs, slices, rotations } = state;
  const { missing, failed, suspect } = slices;
  const noWorker = noWorkerAlert(state);
  return [
    // Without any worker every job is overdue, for one reason.
    ...(noWorker ? [noWorker] : jobs.flatMap(overdueAlert)),
    ...jobs.flatMap(failedRunAlert),
    ...sliceAlert(missing, `${counted(missing, "slice")} missing: due and never read`),
    ...sliceAlert(failed, `${counted(failed, "slice")} failed: the newest reading went wrong`),
    ...sliceAlert(suspect, `${counted(suspect, "slice")} suspect: empty where there were numbers, which stay`),
    ...rotations.flatMap(({ rotation, warnings }) =>
      warnings.map((warning) => ({ text: `rotation ${rotation}: ${warning}`, section: "keys" as const })),
    ),
  ];
}

/** Where exports are run by another scheduler no worker ever named its jobs, and none is missed. */
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

function minute(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
