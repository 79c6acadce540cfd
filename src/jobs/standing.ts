// How everything stands: what `status` shows, and the one rule by which all is well.

import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/database.ts";
import { type JobId, type Pause, type StoredJob, storedJobs } from "../db/jobs.ts";
import { type RotationStatus, rotationStatuses } from "../db/key-status.ts";
import { readSnapshot } from "../db/read-snapshot.ts";
import { type CoverageCounts, coverageCounts, type LastRun, lastRuns } from "../db/status.ts";
import type { Tx } from "../db/transaction.ts";
import { needsAttention } from "../keys/plan.ts";
import type { ExportJob } from "../usage/plan.ts";
import { nextRunAt, overdueSince } from "./next-due.ts";

export type JobStatus = {
  readonly kind: string;
  readonly job: string;
  readonly schedule: string;
  readonly timezone: string;
  readonly nextRun: Date | undefined;
  readonly lastRun: LastRun | undefined;
  readonly paused: Pause | undefined;
  /** When it was due, where no worker has taken it up since. */
  readonly overdueSince: Date | undefined;
};

export type Standing = {
  readonly jobs: readonly JobStatus[];
  readonly slices: CoverageCounts;
  readonly rotations: readonly RotationStatus[];
};

export async function readStanding(db: Database, config: Config): Promise<Standing> {
  return readSnapshot(db, (tx) => standingAt(tx, config));
}

/** The same as a part of a transaction. */
export async function standingAt(tx: Tx, config: Config): Promise<Standing> {
  const jobs = scheduledJobs(config);
  const now = await databaseNow(tx);
  const stored = await storedJobs(tx);
  const runs = await lastRuns(tx, jobs);
  return {
    jobs: jobs.map((job) => statusOf(job, stored, runs, now)),
    slices: await coverageCounts(tx),
    rotations: await rotationStatuses(tx),
  };
}

/** Nothing that was due is not complete, no rotation warns, and no job waits for a worker. */
export function isWell({ jobs, slices, rotations }: Standing): boolean {
  const { suspect, failed, missing } = slices;
  const alerts = rotations.flatMap(rotationWarnings);
  const overdue = jobs.filter((job) => job.overdueSince !== undefined);
  return suspect + failed + missing + alerts.length + overdue.length === 0;
}

/** What a person should know of a rotation. */
export function rotationWarnings(rotation: RotationStatus): string[] {
  const { failedAttempts, lastError, fallback, fallbackAt } = rotation;
  return [
    ...(failedAttempts > 0 ? [`${failedAttempts} failed attempts, the last: ${lastError}`] : []),
    ...(needsAttention(failedAttempts) ? ["needs attention: nothing is created until rotate --now"] : []),
    ...(fallback === null ? [] : [`alert (${fallbackAt?.toISOString()}): ${fallback}`]),
  ];
}

type ScheduledJob = JobId & Pick<ExportJob, "schedule" | "timezone" | "jitterSeconds">;

/** Every configured job, the exports first. */
function scheduledJobs({ exports, rotations }: Config): readonly ScheduledJob[] {
  return [
    ...exports.map((job) => ({ ...job, kind: "export" as const })),
    ...rotations.map((job) => ({ ...job, kind: "rotation" as const })),
  ];
}

function statusOf(job: ScheduledJob, stored: readonly StoredJob[], runs: readonly LastRun[], now: Date): JobStatus {
  const { kind, name, schedule, timezone } = job;
  const known = stored.find((one) => one.kind === kind && one.name === name);
  const lastRun = runs.find((run) => run.kind === kind && run.job === name);
  return {
    kind,
    job: name,
    schedule,
    timezone,
    nextRun: nextRunAt(job, now),
    lastRun,
    paused: known?.pause,
    // One that waits for the run before it is not forgotten.
    overdueSince: lastRun?.status === "running" ? undefined : overdueSince(job, known, now),
  };
}
