// How much later than its moment a job runs, so that jobs of the same minute do not all call at once. Nothing is drawn: every
// replica comes to the same delay.

import { createHash } from "node:crypto";

const BYTES = 6;

/** Milliseconds in [0, jitterSeconds), spread evenly over the moments of a job and over the jobs of a moment. */
export function jitterMs(job: string, occurrence: Date, jitterSeconds: number): number {
  const digest = createHash("sha256").update(`${occurrence.toISOString()} ${job}`).digest();
  const share = digest.readUIntBE(0, BYTES) / 2 ** (8 * BYTES);
  return Math.floor(share * jitterSeconds * 1_000);
}
