// Spreads the jobs of many projects over time, so that they do not all begin at the same moment. Pure.

import { hash } from "node:crypto";
import { nextOccurrence, type Schedule } from "./cron.ts";

export type Stagger = {
  /** Whose share of the time it is: the project's id. */
  readonly of: string;
  /** Left out: until the next scheduled time. */
  readonly minutes?: number | undefined;
};

const MINUTE_MS = 60_000;
const HASH_DIGITS = 12;

/**
 * How much later than its scheduled time a job of this project starts. The same for every replica and every time, and spread evenly over the
 * projects. Workers look every minute for what is due, and the job may be delayed further by its jitter: the delay is shorter by both, so that no job
 * starts later than the stagger, nor after the next scheduled time.
 */
export function staggerMs(
  job: Schedule & { readonly jitterSeconds: number },
  stagger: Stagger,
  occurrence: Date,
): number {
  const next = nextOccurrence(job, occurrence);
  const untilNextMs = next ? next.getTime() - occurrence.getTime() : Number.POSITIVE_INFINITY;
  const wantedMs = stagger.minutes === undefined ? untilNextMs : stagger.minutes * MINUTE_MS;
  const spanMs = Math.min(wantedMs, untilNextMs) - MINUTE_MS - job.jitterSeconds * 1000;
  return Number.isFinite(spanMs) && spanMs > 0 ? Math.floor(shareOf(stagger.of) * spanMs) : 0;
}

/** From 0 to 1, without 1. */
function shareOf(project: string): number {
  return Number.parseInt(hash("sha256", project).slice(0, HASH_DIGITS), 16) / 16 ** HASH_DIGITS;
}
