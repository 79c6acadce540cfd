// Decides what a job does at a tick. Pure: the newest scheduled time, the stored state of the job and the database's time are arguments.

export type JobState = {
  /** The newest scheduled time for which a run was started. */
  readonly scheduledThrough: Date | undefined;
  readonly paused: boolean;
  /** Whether a run that the schedule or missing days started has not ended. */
  readonly running: boolean;
};

/** "catchup" if the scheduled time was missed. */
export type DueRun = { readonly scheduledFor: Date; readonly trigger: "schedule" | "catchup" };

/** A tick comes every minute, and a worker takes some seconds to start. A scheduled time that is longer ago than this was missed. */
const LATE_MS = 5 * 60_000;

/**
 * The run to start now; undefined if the job is paused, nothing is due, or the previous run has not ended. However many scheduled times were
 * missed, only the newest is run: its plan contains every day that is due. A job that never ran starts with the newest scheduled time before
 * now, so that a new installation has numbers at once and not after a night.
 */
export function planTick(
  latest: Date | undefined,
  { scheduledThrough, paused, running }: JobState,
  now: Date,
): DueRun | undefined {
  if (paused || running || latest === undefined) return undefined;
  if (scheduledThrough !== undefined && latest <= scheduledThrough) return undefined;
  const trigger = now.getTime() - latest.getTime() > LATE_MS ? "catchup" : "schedule";
  return { scheduledFor: latest, trigger };
}
