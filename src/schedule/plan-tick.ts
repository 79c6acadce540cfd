// Decides what a job does at a tick. Pure: the newest scheduled time, the stored state of the job and the database's time are arguments.

import type { Overlap } from "../usage/plan.ts";

export type JobState = {
  /** The newest scheduled time for which a run was started or skipped. */
  readonly scheduledThrough: Date | undefined;
  readonly paused: boolean;
  /** Whether a run that the schedule or missing days started has not ended. */
  readonly running: boolean;
};

/**
 * - `none`: the job is paused, nothing is due, or the job waits for the end of its previous run
 * - `wait`: due, but not before `until`
 * - `skip`: due, but not run, because the previous run has not ended
 * - `run`: due now; "catchup" if the scheduled time was missed
 */
export type TickDecision =
  | { readonly kind: "none" }
  | { readonly kind: "wait"; readonly until: Date }
  | { readonly kind: "skip"; readonly scheduledFor: Date }
  | { readonly kind: "run"; readonly scheduledFor: Date; readonly trigger: "schedule" | "catchup" };

export type JobTiming = {
  /** The newest scheduled time that is not in the future; undefined if there is none. */
  readonly latest: Date | undefined;
  /** How much later than its scheduled time the job runs. */
  readonly delayMs: number;
  /** What to do if the scheduled time comes before the previous run has ended. */
  readonly overlap: Overlap;
};

/** A tick comes every minute, and a worker takes some seconds to start. A scheduled time that is longer ago than this was missed. */
const LATE_MS = 5 * 60_000;

/**
 * However many scheduled times were missed, only the newest is run: its plan contains every day that is due. A job that never ran starts
 * with the newest scheduled time before now, so that a new installation has numbers at once and not after a night.
 */
export function planTick({ latest, delayMs, overlap }: JobTiming, state: JobState, now: Date): TickDecision {
  if (state.paused || latest === undefined) return { kind: "none" };
  if (state.scheduledThrough !== undefined && latest <= state.scheduledThrough) return { kind: "none" };
  const until = new Date(latest.getTime() + delayMs);
  if (now < until) return { kind: "wait", until };
  if (state.running) return overlap === "queue" ? { kind: "none" } : { kind: "skip", scheduledFor: latest };
  const trigger = now.getTime() - until.getTime() > LATE_MS ? "catchup" : "schedule";
  return { kind: "run", scheduledFor: latest, trigger };
}
