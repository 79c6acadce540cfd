// Reads the health state of jobs, workers, coverage and rotations at one moment, what the dashboard shows besides, and which
// windows should be changed.

import { originOf } from "../app.ts";
import { type Config, jobsOf } from "../config/config.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { BRIEF_SNAPSHOT_SECONDS, readSnapshot, type Tx } from "../db/connection/transaction.ts";
import {
  type CoverageCounts,
  coverageCounts,
  coverageGaps,
  failedSeries,
  type LastRun,
  lastRuns,
  recentRuns,
} from "../db/health.ts";
import { type JobId, type Pause, type StoredJob, storedJobs } from "../db/jobs/jobs.ts";
import { queueDepths } from "../db/jobs/queue.ts";
import { type LastOutcome, lastOutcomes } from "../db/jobs/runs.ts";
import { storedWorkers } from "../db/jobs/workers.ts";
import { type KeyStatus, keyStatuses, type RotationStatus, rotationStatuses } from "../db/keys/status.ts";
import { pausedUntil } from "../db/rate-limit.ts";
import { restatementCurves } from "../db/report/restatements.ts";
import { type FailureCause, failureCauses } from "../db/usage/failures.ts";
import { needsAttention } from "../keys/plan.ts";
import { nextRunAt, overdueSince } from "../schedule/due.ts";
import { adviseWindow, type ExportJob, KNOWN_SHARE_ENOUGH, seriesOf, type WindowAdvice } from "../usage/plan.ts";
import { type Grouping, type Series, seriesKey } from "../usage/series.ts";
import type { DashboardRotation, FailedRun, JobHealth, Operations, WorkerHealth } from "./state.ts";

type JobStatus = JobHealth & {
  readonly schedule: string;
  readonly timezone: string;
  readonly nextRun: Date | undefined;
  readonly lastRun: LastRun | undefined;
  readonly paused: Pause | undefined;
};

export type HealthReading = {
  /** The moment of reading, by the database's clock. */
  readonly readAt: Date;
  readonly callsPausedUntil: Date | undefined;
  readonly jobs: readonly JobStatus[];
  readonly workers: readonly WorkerHealth[];
  readonly slices: CoverageCounts;
  readonly causes: readonly FailureCause[];
  readonly rotations: readonly (RotationStatus & { readonly warnings: readonly string[] })[];
};

export async function readHealthState(db: Database, config: Config): Promise<HealthReading> {
  return readSnapshot(db, (tx) => healthStateAt(tx, config));
}

/** The same as a part of a transaction. */
export async function healthStateAt(tx: Tx, config: Config): Promise<HealthReading> {
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

function scheduledJobs(config: Config, broken: ReadonlySet<string>): readonly ScheduledJob[] {
  return jobsOf(config).map((job) => ({
    ...job,
    whole: job.kind === "rotation" || !seriesOf(job).some((series) => broken.has(seriesKey(series))),
  }));
}

type JobFacts = {
  readonly stored: readonly StoredJob[];
  readonly runs: readonly LastRun[];
  readonly outcome: LastOutcome | undefined;
  readonly now: Date;
};

function statusOf(job: ScheduledJob, { stored, runs, outcome, now }: JobFacts): JobStatus {
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

// Reads what the dashboard says of jobs, runs, gaps and keys: what `status` and `keys` say, and the newest runs.

const RUNS_SHOWN_MAX = 50;

export async function readOperations(db: Database, config: Config): Promise<Operations> {
  const readAll = async (tx: Tx) => {
    const state = await healthStateAt(tx, config);
    return {
      ...state,
      runs: await recentRuns(tx, RUNS_SHOWN_MAX),
      gaps: await coverageGaps(tx),
      rotations: rotationLines(config, state.rotations, await keyStatuses(tx)),
      queue: await queueDepths(tx),
    };
  };
  return readSnapshot(db, readAll, BRIEF_SNAPSHOT_SECONDS);
}

/** The configured ones, and others as long as they have keys or something to say. */
function rotationLines(
  config: Config,
  statuses: HealthReading["rotations"],
  keys: readonly KeyStatus[],
): readonly DashboardRotation[] {
  const names = new Set([...config.rotations.map(({ name }) => name), ...statuses.map(({ rotation }) => rotation)]);
  return [...names].flatMap((rotation) => {
    const configured = config.rotations.find(({ name }) => name === rotation);
    const line = {
      rotation,
      maxAgeDays: configured?.maxAgeDays ?? null,
      warnings: statuses.filter((one) => one.rotation === rotation).flatMap(({ warnings }) => warnings),
      keys: keys.filter((key) => key.rotation === rotation),
    };
    return configured || line.keys.length + line.warnings.length > 0 ? [line] : [];
  });
}

// Compares each export's window with how late the service has changed its numbers.

export type JobAdvice = WindowAdvice & { readonly job: string; readonly windowDays: number };

/** Of the exports whose window should be another. */
export async function adviseWindows(db: Database, exports: readonly ExportJob[]): Promise<readonly JobAdvice[]> {
  const advice: JobAdvice[] = [];
  for (const job of exports) {
    if (!job.window) continue;
    const advised = adviseWindow(job.window.days, await restatementCurves(db, seriesToCompare(job)));
    if (advised) advice.push({ job: job.name, windowDays: job.window.days, ...advised });
  }
  return advice;
}

/** By how few groups they have, as a rule: each has its history to be looked through. */
const FEWEST_GROUPS_FIRST: readonly Grouping[] = ["none", "method", "deployment", "endpoint", "model"];

/** Late usage is late in every grouping, so one of them tells. */
function seriesToCompare(job: ExportJob): Series[] {
  const grouping = FEWEST_GROUPS_FIRST.find((one) => job.groupings.includes(one)) ?? job.groupings[0];
  return grouping ? seriesOf(job, { groupings: [grouping] }) : [];
}

const ENOUGH_TEXT = `${(KNOWN_SHARE_ENOUGH * 100).toFixed(1)} % of the numbers`;

export function renderAdvice({ advice, windowDays, days, knownAfterDays, restsOnDays }: JobAdvice): string {
  const set = `"window": { "days": ${days} }`;
  return advice === "longer"
    ? `${daysText(windowDays)} may be too few: over ${restsOnDays} final days ${ENOUGH_TEXT} was known no sooner than ${daysText(knownAfterDays)} after the day, and what comes later is not read; consider ${set}`
    : `${daysText(windowDays)} is more than needed: over ${restsOnDays} final days ${ENOUGH_TEXT} was known ${daysText(knownAfterDays)} after the day; ${set} would do`;
}

function daysText(days: number): string {
  return days === 1 ? "1 day" : `${days} days`;
}
