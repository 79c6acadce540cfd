// Decides what an answer is that carries no date at all. Pure.

import { addDays, type Day } from "./day.ts";

/**
 * - `snapshot`: of unknown span, as a running total is; never the usage of a day
 * - `day`: the usage of the day of the run
 * - `day-before`: the usage of the day before it
 */
export const UNDATED = ["snapshot", "day", "day-before"] as const;
export type Undated = (typeof UNDATED)[number];

/** The day that an answer without any date is stored under, where it is that of a day. */
export function dayOfUndated(runDay: Day, undated: Undated): Day {
  return undated === "day-before" ? addDays(runDay, -1) : runDay;
}

/** The newest snapshot of a series. */
export type StoredSnapshot = { readonly fetchNo: number; readonly contentHash: string };

/**
 * - `stale`: a later fetch is stored already; nothing is written
 * - `repeated`: this very fetch is stored already; nothing is written
 * - `unchanged`: the reading is noted, and no row is written
 * - `new`: its rows are written
 */
export type SnapshotDecision = "stale" | "repeated" | "unchanged" | "new";

export function decideSnapshot(newest: StoredSnapshot | undefined, incoming: StoredSnapshot): SnapshotDecision {
  if (newest === undefined) return "new";
  if (newest.fetchNo > incoming.fetchNo) return "stale";
  if (newest.fetchNo === incoming.fetchNo) return "repeated";
  return newest.contentHash === incoming.contentHash ? "unchanged" : "new";
}

/** From one snapshot of a series to the next one. */
export type SnapshotStep = {
  /** Both were taken on one UTC day. */
  readonly sameDay: boolean;
  readonly takenAt: Date;
  readonly previousTakenAt: Date;
  /** Of all groups together. */
  readonly change: "grew" | "same" | "fell";
  /** It fell by more than half. */
  readonly halved: boolean;
};

/**
 * - `running-total`: it grew within a day and never fell
 * - `day`: it counts from each midnight on
 * - `day-before`: it is of a day that is over
 */
export type ProvenSpan = "running-total" | "day" | "day-before";

const HOUR_MS = 60 * 60_000;
/** Less than a week: what is counted anew each week or month falls once in so many days. */
const DAYS_MS_OF_TWO_FALLS = 6.5 * 24 * HOUR_MS;

/**
 * What the snapshots prove, undefined where they prove nothing. What moves over several days hardly falls by half from one
 * to the next, and what is counted anew each week or month does not fall twice within days: a number of a day may do both.
 */
export function provenSpan(steps: readonly SnapshotStep[]): ProvenSpan | undefined {
  const within = steps.filter(({ sameDay }) => sameDay);
  const across = steps.filter(({ sameDay }) => !sameDay);
  const grewWithin = within.some(({ change }) => change === "grew");
  if (steps.every(({ change }) => change !== "fell")) return grewWithin ? "running-total" : undefined;
  if (within.some(({ change }) => change === "fell")) return undefined;
  if (grewWithin) return across.length >= 2 && across.every(({ halved }) => halved) ? "day" : undefined;
  const stayed = within.some((step) => step.takenAt.getTime() - step.previousTakenAt.getTime() >= HOUR_MS);
  return stayed && fellTwice(across) ? "day-before" : undefined;
}

function fellTwice(across: readonly SnapshotStep[]): boolean {
  const falls = across.filter(({ change }) => change === "fell");
  return falls.some(
    (one) =>
      one.halved &&
      falls.some(
        (other) => other !== one && Math.abs(other.takenAt.getTime() - one.takenAt.getTime()) < DAYS_MS_OF_TWO_FALLS,
      ),
  );
}
