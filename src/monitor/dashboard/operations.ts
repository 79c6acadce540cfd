// What the dashboard says of jobs, runs, gaps and keys, before it is a page.

import type { Day } from "../../usage/day.ts";
import type { Gap } from "../gap-groups.ts";
import type { HealthState, JobHealth } from "../health-state.ts";

export type Operations = Omit<HealthState, "jobs" | "rotations"> & {
  readonly jobs: readonly JobLine[];
  /** The newest first. */
  readonly runs: readonly RunLine[];
  /** The newest first. */
  readonly gaps: readonly Gap[];
  readonly rotations: readonly RotationLine[];
  readonly queue: readonly QueueLine[];
};

export type JobLine = JobHealth & {
  readonly schedule: string;
  readonly timezone: string;
  readonly lastRun: Pick<RunLine, "status" | "startedAt" | "trigger"> | undefined;
  readonly nextRun: Date | undefined;
  readonly paused: { readonly at: Date; readonly why: string; readonly by: string } | undefined;
};

export type RunLine = {
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

export type RotationLine = {
  readonly rotation: string;
  /** Null where it is not configured any more. */
  readonly maxAgeDays: number | null;
  readonly warnings: readonly string[];
  /** The newest first. */
  readonly keys: readonly KeyLine[];
};

export type KeyLine = {
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

export type QueueLine = {
  readonly queue: string;
  readonly state: "waiting" | "retrying" | "active" | "dead";
  readonly jobs: number;
};
