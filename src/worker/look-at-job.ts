// Looks at a job under a lock on its row, which holds until the transaction ends: nobody else decides about it meanwhile.

import { randomUUID } from "node:crypto";
import { type JobId, lockJob, markScheduled } from "../db/jobs.ts";
import { insertRun, type RunningRun, runningRuns } from "../db/shared-runs.ts";
import type { Tx } from "../db/transaction.ts";
import { jitterMs } from "../schedule/jitter.ts";
import { latestOccurrence, type Schedule } from "../schedule/occurrences.ts";
import { planTick, type TickDecision } from "../schedule/plan-tick.ts";

export type JobTick = {
  /** Whether there is new work in the queue. */
  readonly began: boolean;
  /**
   * Time left until the jitter of a job that is already due is over. It is measured by the database's clock, which may differ
   * from this machine's.
   */
  readonly wakeInMs?: number;
  readonly skipped?: boolean;
};

export const NOTHING: JobTick = { began: false };

export const STILL_RUNNING = "the run before it was still running";

export type Scheduled = JobId & Schedule & { readonly jitterSeconds: number; readonly overlap: "skip" | "queue" };

export type Look = {
  readonly decision: TickDecision;
  readonly paused: boolean;
  readonly runs: readonly RunningRun[];
};

/** Undefined where the job is not registered. */
export async function lookAtJob(tx: Tx, job: Scheduled, now: Date): Promise<Look | undefined> {
  const stored = await lockJob(tx, job);
  if (!stored) return undefined;
  const runs = await runningRuns(tx, job.kind, job.name);
  const latest = latestOccurrence(job, now);
  const { overlap } = job;
  const moment = { latest, jitterMs: latest ? jitterMs(job.name, latest, job.jitterSeconds) : 0, overlap };
  const state = {
    scheduledThrough: stored.scheduledThrough,
    paused: stored.pause !== undefined,
    // A person's export or backfill is no reason to leave a night out.
    running: runs.some(({ trigger }) => trigger === "schedule" || trigger === "catchup"),
  };
  return { decision: planTick(moment, state, now), paused: state.paused, runs };
}

/** Notes a run that should have been. */
export async function skipRun(tx: Tx, id: JobId, scheduledFor: Date): Promise<JobTick> {
  const run = { runId: randomUUID(), kind: id.kind, job: id.name, trigger: "schedule", scheduledFor } as const;
  await insertRun(tx, { ...run, status: "skipped", error: STILL_RUNNING });
  await markScheduled(tx, id, scheduledFor);
  return { began: false, skipped: true };
}
