// Reads the health state of jobs, workers, coverage and rotations at one moment.

import { originOf } from "../app.ts";
import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/database.ts";
import { type FailureCause, failureCauses } from "../db/failure-causes.ts";
import { type JobId, type Pause, type StoredJob, storedJobs } from "../db/jobs.ts";
import { type RotationStatus, rotationStatuses } from "../db/key-status.ts";
import { type LastOutcome, lastOutcomes } from "../db/last-outcomes.ts";
import { readSnapshot } from "../db/read-snapshot.ts";
import { pausedUntil } from "../db/service-pace.ts";
import { type CoverageCounts, coverageCounts, failedSeries, type LastRun, lastRuns } from "../db/status.ts";
import type { Tx } from "../db/transaction.ts";
import { storedWorkers } from "../db/workers.ts";
import { needsAttention } from "../keys/plan.ts";
import type { FailedRun, JobHealth, WorkerHealth } from "../monitor/health-state.ts";
import { type ExportJob, seriesOf } from "../usage/plan.ts";
import { seriesKey } from "../usage/series.ts";
import { nextRunAt, overdueSince } from "./next-due.ts";

export type JobStatus = JobHealth & {
  readonly schedule: string;
  readonly timezone: string;
  readonly nextRun: Date | undefined;
  readonly lastRun: LastRun | undefined;
  readonly paused: Pause | undefined;
};

export type Standing = {
  /** The moment of reading, by the database's clock. */
  readonly readAt: Date;
  readonly callsPausedUntil: Date | undefined;
  readonly jobs: readonly JobStatus[];
  readonly workers: readonly WorkerHealth[];
  readonly slices: CoverageCounts;
  readonly causes: readonly FailureCause[];
  readonly rotations: readonly (RotationStatus & { readonly warnings: readonly string[] })[];
};

export async function readStanding(db: Database, config: Config): Promise<Standing> {
  return readSnapshot(db, (tx) => standingAt(tx, config));
}

/** The same as a part of a transaction. */
export async function standingAt(tx: Tx, config: Config): Promise<Standing> {
  const now = await databaseNow(tx);
  const stored = await storedJobs(tx);
  const broken = await failedSeries(tx);
  const jobs = scheduledJobs(config, broken);
  const runs = await lastRuns(tx, jobs);
  const outcomes = await lastOutcomes(tx, jobs);
  const workers = await storedWorkers(tx);
  const rotations = await rotationStatuses(tx);
  const causes = await failureCauses(tx, now);
  return {
    readAt: now,
    callsPausedUntil: await pausedUntil(tx, originOf(config)),
    jobs: jobs.map((job, i) => statusOf(job, { stored, runs, outcome: outcomes[i]?.last, now })),
    workers: workers.map(({ host, pid, version, startedAt, lastSeenAt, stoppedAt, recent }) => ({
      ...{ host, pid, version, startedAt, lastSeenAt, recent },
      state: stoppedAt ? "stopped" : recent ? "live" : "silent",
    })),
    slices: await coverageCounts(tx),
    // If no worker runs, nothing is retried.
    causes: causes.map((cause) => (workers.some(({ recent }) => recent) ? cause : { ...cause, nextTry: undefined })),
    rotations: rotations.map((rotation) => ({ ...rotation, warnings: rotationWarnings(rotation) })),
  };
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

type ScheduledJob = JobId &
  Pick<ExportJob, "schedule" | "timezone" | "jitterSeconds"> & {
    /** None of the job's slices is failed. */
    readonly whole: boolean;
  };

/** Every configured job, the exports first. */
function scheduledJobs({ exports, rotations }: Config, broken: ReadonlySet<string>): readonly ScheduledJob[] {
  return [
    ...exports.map((job) => ({
      ...{ ...job, kind: "export" as const },
      whole: !seriesOf(job).some((series) => broken.has(seriesKey(series))),
    })),
    ...rotations.map((job) => ({ ...job, kind: "rotation" as const, whole: true })),
  ];
}

type Known = {
  readonly stored: readonly StoredJob[];
  readonly runs: readonly LastRun[];
  readonly outcome: LastOutcome | undefined;
  readonly now: Date;
};

function statusOf(job: ScheduledJob, { stored, runs, outcome, now }: Known): JobStatus {
  const { kind, name, schedule, timezone } = job;
  const known = stored.find((one) => one.kind === kind && one.name === name);
  const lastRun = runs.find((run) => run.kind === kind && run.job === name);
  return {
    kind,
    job: name,
    schedule,
    timezone,
    // Workers do not run a paused job until it is resumed.
    nextRun: known?.pause ? undefined : nextRunAt(job, now),
    lastRun,
    failedRun: failedRunOf(job, lastRun, outcome),
    paused: known?.pause,
    needsWorker: known !== undefined && !known.pause,
    // One that waits for the run before it is not forgotten.
    overdueSince: lastRun?.status === "running" ? undefined : overdueSince(job, known, now),
  };
}

/** An interrupted backfill says nothing about the job: a person chose its days and can run it again. */
function failedRunOf(
  { whole }: ScheduledJob,
  lastRun: LastRun | undefined,
  outcome: LastOutcome | undefined,
): FailedRun | undefined {
  if (lastRun?.status === "interrupted" && lastRun.trigger !== "backfill") {
    const { trigger, startedAt, error } = lastRun;
    return { status: "interrupted", trigger, startedAt, error, overCompleteDays: whole };
  }
  if (outcome?.status !== "failed") return undefined;
  const { trigger, startedAt, error, suspect } = outcome;
  // If a run met only doubtful answers, its slices are suspect for as long as the doubt lasts, and already report it.
  return { status: "failed", trigger, startedAt, error, overCompleteDays: whole && !(suspect > 0 && error === null) };
}
