// Decides what a job does at a tick. Pure: the schedule's newest moment, what the database knows of the job, and its clock
// come in.

import type { Overlap } from "../usage/plan.ts";

export type JobState = {
  /** The newest moment of its schedule that was taken up, by a run or as skipped. */
  readonly scheduledThrough: Date | undefined;
  readonly paused: boolean;
  /** A run that its schedule or a gap began is not over. */
  readonly running: boolean;
};

/**
 * - `none`: nothing is due, or what is due waits until the run before it is over
 * - `wait`: due, and not before `until`
 * - `skip`: due, and not run, as the run before it is not over
 * - `run`: due now; "catchup" where its moment is long over
 */
export type TickDecision =
  | { readonly kind: "none" }
  | { readonly kind: "wait"; readonly until: Date }
  | { readonly kind: "skip"; readonly scheduledFor: Date }
  | { readonly kind: "run"; readonly scheduledFor: Date; readonly trigger: "schedule" | "catchup" };

export type Moment = {
  /** The newest moment of the schedule that is not in the future; undefined where there is none. */
  readonly latest: Date | undefined;
  /** How much later than its moment the job runs. */
  readonly jitterMs: number;
  /** What becomes of a moment that comes while the run before it is not over. */
  readonly overlap: Overlap;
};

/** A tick comes every minute, and a worker that starts anew takes some seconds: what is later than this was missed. */
const LATE_MS = 5 * 60_000;

/**
 * However many moments were missed, only the newest is run: its plan holds everything that is due. A job that was never
 * taken up begins with the newest moment there was, so that a new installation has numbers at once and not after a night.
 */
export function planTick({ latest, jitterMs, overlap }: Moment, state: JobState, now: Date): TickDecision {
  if (state.paused || latest === undefined) return { kind: "none" };
  if (state.scheduledThrough !== undefined && latest <= state.scheduledThrough) return { kind: "none" };
  const until = new Date(latest.getTime() + jitterMs);
  if (now < until) return { kind: "wait", until };
  if (state.running) return overlap === "queue" ? { kind: "none" } : { kind: "skip", scheduledFor: latest };
  const trigger = now.getTime() - until.getTime() > LATE_MS ? "catchup" : "schedule";
  return { kind: "run", scheduledFor: latest, trigger };
}
