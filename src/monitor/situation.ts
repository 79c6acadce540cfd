// What is the case now, as far as people are told of it.

import type { Retire } from "../keys/policy.ts";
import type { Day } from "../usage/day.ts";

export type Situation = {
  readonly jobs: readonly JobOutcome[];
  /** Of each export. */
  readonly gaps: readonly GapsOfJob[];
  readonly rotations: readonly RotationState[];
};

export type JobOutcome = {
  readonly kind: "export" | "rotation";
  readonly name: string;
  /** Of the newest of its runs that ended well or failed, but backfills; undefined before the first. */
  readonly last: Outcome | undefined;
};

export type Outcome = {
  readonly status: "ok" | "failed";
  readonly trigger: string;
  readonly startedAt: Date;
  /** Slices. */
  readonly planned: number;
  readonly suspect: number;
  readonly failed: number;
  /** What went wrong first. */
  readonly error: string | null;
};

export type GapsOfJob = {
  readonly job: string;
  /** Undefined while it can't be told: a run reads them now or is about to, or a person paused the job. */
  readonly slices: readonly GapSlice[] | undefined;
};

/** A slice that is due and was not read. */
export type GapSlice = { readonly series: string; readonly day: Day; readonly status: "missing" | "failed" };

export type RotationState = {
  readonly rotation: string;
  readonly maxAgeDays: number;
  readonly retire: Retire;
  /** Too many attempts failed: nothing is created any more. */
  readonly needsAttention: boolean;
  readonly failedAttempts: number;
  readonly lastError: string | null;
  /** Keys. */
  readonly orphans: number;
  readonly dueForRemoval: number;
  /** Keys that have been due for removal for an hour. A run deletes a key at once when it finds it due, so these were kept. */
  readonly longDueForRemoval: number;
  /** The key in use was refused, and the one before it used. */
  readonly fallback: boolean;
  /** Of the key in use; null while there is none. */
  readonly ageDays: number | null;
};
