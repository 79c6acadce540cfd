// What started a run, and the counts of what it did. Pure.

export type RunTrigger = "schedule" | "manual" | "catchup" | "backfill";

export const NO_COUNTS = {
  requests: 0,
  /** Slices that the run was to read. The next five fields count how they ended. */
  planned: 0,
  complete: 0,
  suspect: 0,
  failed: 0,
  /** Slices whose answer names no day: it is stored as a snapshot. */
  undated: 0,
  /** Slices whose answer was dropped: that of a later request is already stored, or held back as doubtful. */
  stale: 0,
  /** Rows that appeared, changed or disappeared. */
  rowsChanged: 0,
};

export type RunCounts = Readonly<typeof NO_COUNTS>;

export function addCounts(a: RunCounts, b: RunCounts): RunCounts {
  const names = Object.keys(NO_COUNTS) as (keyof RunCounts)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as RunCounts;
}

/** Only the counts of an object that may have other fields. */
export function pickCounts(counts: RunCounts): RunCounts {
  return addCounts(NO_COUNTS, counts);
}
