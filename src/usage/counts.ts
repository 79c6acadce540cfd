// The counts of what a run did. Pure.

export type RunTrigger = "schedule" | "manual" | "catchup" | "backfill";

export type RunCounts = {
  /** Usage requests made. */
  readonly requests: number;
  /** Slices that the run was to read. The next five fields count how these ended. */
  readonly planned: number;
  readonly complete: number;
  readonly suspect: number;
  readonly failed: number;
  /** Slices of answers without any date, stored as snapshots of unknown span. */
  readonly undated: number;
  /** Slices whose answer was dropped, because the answer of a later request is stored already. */
  readonly stale: number;
  /** Rows that appeared, changed or disappeared. */
  readonly rowsChanged: number;
};

export const NO_COUNTS: RunCounts = {
  requests: 0,
  planned: 0,
  complete: 0,
  suspect: 0,
  failed: 0,
  undated: 0,
  stale: 0,
  rowsChanged: 0,
};

export function addCounts(a: RunCounts, b: RunCounts): RunCounts {
  const names = Object.keys(NO_COUNTS) as (keyof RunCounts)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as RunCounts;
}

/** Copies the counts alone, of an object that may have other fields. */
export function pickCounts(counts: RunCounts): RunCounts {
  return addCounts(NO_COUNTS, counts);
}
