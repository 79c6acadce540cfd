// What a job does at a tick, and since when it waits for one.

import type { StoredJob } from "../db/jobs/jobs.ts";
import { latestOccurrence, nextOccurrence, type Schedule } from "./cron.ts";

/** A tick comes every 10 s. If a job is due for longer than this, no worker runs, or one hangs. */
const OVERDUE_MS = 3 * 60_000;

/** Since when an overdue job has been due: no worker has started it for too long. Undefined if it is not overdue, or not registered. */
export function overdueSince(job: Schedule, stored: StoredJob | undefined, now: Date): Date | undefined {
  const dueAt = waitingSince(job, stored, now);
  return dueAt && now.getTime() - dueAt.getTime() > OVERDUE_MS ? dueAt : undefined;
}

/** Since when a due job has waited for a worker. The first missed time counts: if the newest did, a job of every minute would never be overdue. */
export function waitingSince(job: Schedule, stored: StoredJob | undefined, now: Date): Date | undefined {
  if (!stored || stored.pause) return undefined;
  const dueAt = firstUnhandled(job, stored);
  // A scheduled time during a pause counts as due from the end of the pause on.
  const since = new Date(Math.max(Number(dueAt), Number(stored.resumedAt ?? 0)));
  return dueAt && since <= now ? since : undefined;
}

/**
 * The first scheduled time that no worker handled. A job that never ran is due from its registration on, if it had a scheduled time
 * before that.
 */
function firstUnhandled(job: Schedule, { scheduledThrough, createdAt }: StoredJob): Date | undefined {
  if (scheduledThrough) return nextOccurrence(job, scheduledThrough);
  return latestOccurrence(job, createdAt) ? createdAt : nextOccurrence(job, createdAt);
}

/** "catchup" if the scheduled time was missed. */
export type DueRun = { readonly scheduledFor: Date; readonly trigger: "schedule" | "catchup" };

/** A tick comes every 10 s, and a worker takes some seconds to start. A scheduled time that is longer ago than this was missed. */
const LATE_MS = 5 * 60_000;

/**
 * The run to start now; undefined if the job is paused or running, or nothing is due. For several missed times there is one run, which reads
 * every day that is due. A job that never ran gets a run at once, so that a new installation has numbers before the first night.
 */
export function planTick(
  job: Schedule,
  { scheduledThrough, pause }: StoredJob,
  isRunning: boolean,
  now: Date,
): DueRun | undefined {
  const latest = latestOccurrence(job, now);
  if (pause || isRunning || latest === undefined) return undefined;
  if (scheduledThrough !== undefined && latest <= scheduledThrough) return undefined;
  const trigger = now.getTime() - latest.getTime() > LATE_MS ? "catchup" : "schedule";
  return { scheduledFor: latest, trigger };
}
