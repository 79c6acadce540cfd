// Decides which due slices are read again outside of a job's window. Pure.

import type { Day } from "./day.ts";

/** A due slice that is not complete, was not read since its day was over, or was still in doubt when it left the window. */
export type DueSlice = {
  readonly seriesId: number;
  readonly day: Day;
  /**
   * `suspect` only if the slice has had no good reading since its day was over, or is older than the window. The window's next
   * run reads other suspect slices again.
   */
  readonly status: "missing" | "failed" | "suspect";
  /** How many runs failed to read it, one after the other. */
  readonly failures: number;
  readonly attemptedAt: Date | undefined;
  /** When the first answer of the present doubt came. */
  readonly doubtedAt?: Date | undefined;
};

const REST_MS_FIRST = 60 * 60_000;
const REST_MS_MAX = 24 * 60 * 60_000;
const CLOCK_STEP_MS_MIN = 60_000;

export function isRested({ status, failures, attemptedAt, doubtedAt }: DueSlice, now: Date): boolean {
  if (status === "missing" || attemptedAt === undefined) return true;
  const rest = status === "suspect" && doubtedAt ? restOfDoubtMs(doubtedAt, attemptedAt) : restMs(failures);
  const restedMs = now.getTime() - attemptedAt.getTime();
  // An attempt that lies well in the future was recorded by a clock that has been set back since.
  return restedMs >= rest || restedMs < -CLOCK_STEP_MS_MIN;
}

/** A failed slice rests, longer after each failure: what is refused today is mostly refused an hour later, too. */
export function restMs(failures: number): number {
  return Math.min(REST_MS_FIRST * 2 ** Math.max(failures - 1, 0), REST_MS_MAX);
}

/** An hour confirms most doubts. A filter that the service ignores is never confirmed: its slices rest for as long as they are in doubt. */
function restOfDoubtMs(doubtedAt: Date, attemptedAt: Date): number {
  return Math.min(Math.max(attemptedAt.getTime() - doubtedAt.getTime(), REST_MS_FIRST), REST_MS_MAX);
}
