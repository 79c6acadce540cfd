// When a job runs next, since when it is overdue, and by how much jitter delays it.

import { createHash } from "node:crypto";
import type { StoredJob } from "../db/jobs/jobs.ts";
import { latestOccurrence, nextOccurrence, type Schedule } from "./cron.ts";

export type ScheduledJob = Schedule & { readonly name: string; readonly jitterSeconds: number };

/** When a job runs next. Undefined if its schedule does not occur again. */
export function nextRunAt(job: ScheduledJob, now: Date): Date | undefined {
  return runAfter(job, now);
}

/** When the run of the first scheduled time after `moment` starts. */
export function runAfter(job: ScheduledJob, moment: Date): Date | undefined {
  return withDelay(job, nextOccurrence(job, moment));
}

/** A tick comes every minute. A job that is due for longer than this has no worker, or one that hangs. */
const OVERDUE_MS = 3 * 60_000;

/** Since when an overdue job has been due: no worker has started it for too long. Undefined if it is not overdue, or not registered. */
export function overdueSince(job: ScheduledJob, stored: StoredJob | undefined, now: Date): Date | undefined {
  const dueAt = waitingSince(job, stored, now);
  return dueAt && now.getTime() - dueAt.getTime() > OVERDUE_MS ? dueAt : undefined;
}

/**
 * Since when a due job has waited for a worker, even if only for the next tick. If no worker handled several scheduled times, the
 * first counts: if the newest counted, a job that runs every minute would never be late.
 */
export function waitingSince(job: ScheduledJob, stored: StoredJob | undefined, now: Date): Date | undefined {
  if (!stored || stored.pause) return undefined;
  const dueAt = firstUnhandled(job, stored);
  // A scheduled time during a pause counts as due from the end of the pause on.
  const since = new Date(Math.max(Number(dueAt), Number(stored.resumedAt ?? 0)));
  return dueAt && since <= now ? since : undefined;
}

/** The first scheduled time that no worker handled. A job that never ran starts with the newest one before it was registered. */
function firstUnhandled(job: ScheduledJob, { scheduledThrough, createdAt }: StoredJob): Date | undefined {
  if (scheduledThrough) return runAfter(job, scheduledThrough);
  const dueAt = withDelay(job, latestOccurrence(job, createdAt));
  return dueAt ? new Date(Math.max(Number(dueAt), Number(createdAt))) : nextRunAt(job, createdAt);
}

function withDelay(job: ScheduledJob, moment: Date | undefined): Date | undefined {
  return moment && new Date(moment.getTime() + startDelayMs(job, moment));
}

/** How much later than its scheduled time a job starts. */
export function startDelayMs({ name, jitterSeconds }: ScheduledJob, moment: Date): number {
  return jitterMs(name, moment, jitterSeconds);
}

const JITTER_BYTES = 6;

/**
 * How much later than its scheduled time a job runs, so that jobs of the same minute do not all call at once. The delays are in
 * [0, jitterSeconds), spread evenly over the scheduled times of a job and over the jobs of a scheduled time. They are hashes and not
 * random, so that every replica computes the same delay.
 */
export function jitterMs(job: string, occurrence: Date, jitterSeconds: number): number {
  const digest = createHash("sha256").update(`${occurrence.toISOString()} ${job}`).digest();
  const share = digest.readUIntBE(0, JITTER_BYTES) / 2 ** (8 * JITTER_BYTES);
  return Math.floor(share * jitterSeconds * 1_000);
}
