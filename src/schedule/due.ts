// When a job runs next, since when it is overdue, and by how much jitter delays it.

import { createHash } from "node:crypto";
import type { StoredJob } from "../db/jobs/jobs.ts";
import { type NextDue, type SeriesIds, seriesIdOf } from "../db/usage/series.ts";
import { type ExportJob, seriesOf } from "../usage/plan.ts";
import { type Series, seriesKey } from "../usage/series.ts";
import { latestOccurrence, nextOccurrence } from "./cron.ts";

export function nextDueOf(
  series: readonly Series[],
  ids: SeriesIds,
  jobs: readonly ExportJob[],
  now: Date,
): readonly NextDue[] {
  const moments = jobs.map((job) => ({ at: nextRunAt(job, now), reads: new Set(seriesOf(job).map(seriesKey)) }));
  return series.map((one) => {
    const ats = moments.flatMap(({ at, reads }) =>
      at !== undefined && reads.has(seriesKey(one)) ? [at.getTime()] : [],
    );
    return { seriesId: seriesIdOf(ids, one), at: ats.length > 0 ? new Date(Math.min(...ats)) : undefined };
  });
}

type ScheduledJob = Pick<ExportJob, "name" | "schedule" | "timezone" | "jitterSeconds">;

/** When a job runs next. Undefined where its schedule names no moment any more. */
export function nextRunAt(job: ScheduledJob, now: Date): Date | undefined {
  const moment = nextOccurrence(job, now);
  return moment && new Date(moment.getTime() + jitterMs(job.name, moment, job.jitterSeconds));
}

/** A tick comes every minute: what is due for longer has no worker, or one that is stuck. */
const OVERDUE_MS = 3 * 60_000;

/** When a job was due that no worker has taken up. Undefined where all is well, and where no worker ever knew the job. */
export function overdueSince(job: ScheduledJob, known: StoredJob | undefined, now: Date): Date | undefined {
  const dueAt = waitingSince(job, known, now);
  return dueAt && now.getTime() - dueAt.getTime() > OVERDUE_MS ? dueAt : undefined;
}

/**
 * Since when a job has waited for a worker, even if the next tick is still to come. Of several moments that no worker took up,
 * the first counts: if the newest counted, a job that runs every minute would never be late.
 */
export function waitingSince(job: ScheduledJob, known: StoredJob | undefined, now: Date): Date | undefined {
  if (!known || known.pause) return undefined;
  const dueAt = firstMissedMoment(job, known);
  // A moment that came during a pause is late from the end of the pause on.
  const since = new Date(Math.max(Number(dueAt), Number(known.resumedAt ?? 0)));
  return dueAt && since <= now ? since : undefined;
}

/** A job that was never taken up starts with the newest moment before it was registered. */
function firstMissedMoment(job: ScheduledJob, { scheduledThrough, createdAt }: StoredJob): Date | undefined {
  if (scheduledThrough) return nextRunAt(job, scheduledThrough);
  const moment = latestOccurrence(job, createdAt);
  if (!moment) return nextRunAt(job, createdAt);
  const dueMs = moment.getTime() + jitterMs(job.name, moment, job.jitterSeconds);
  return new Date(Math.max(dueMs, createdAt.getTime()));
}

// How much later than its moment a job runs, so that jobs of the same minute do not all call at once. Nothing is drawn: every
// replica comes to the same delay.

const JITTER_BYTES = 6;

/** Milliseconds in [0, jitterSeconds), spread evenly over the moments of a job and over the jobs of a moment. */
export function jitterMs(job: string, occurrence: Date, jitterSeconds: number): number {
  const digest = createHash("sha256").update(`${occurrence.toISOString()} ${job}`).digest();
  const share = digest.readUIntBE(0, JITTER_BYTES) / 2 ** (8 * JITTER_BYTES);
  return Math.floor(share * jitterSeconds * 1_000);
}
