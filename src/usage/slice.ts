// Decides what an answer does to a stored slice. Pure.

/** What is stored of a slice. */
export type StoredSlice = {
  /** The fetch whose rows are visible; 0 while there is none. */
  readonly fetchNo: number;
  readonly contentHash: string | undefined;
  readonly rows: number;
  /** The run that first got an empty answer in place of these rows. */
  readonly suspectRun: string | undefined;
};

export type IncomingSlice = {
  readonly fetchNo: number;
  readonly runId: string;
  readonly contentHash: string;
  readonly rows: number;
};

/**
 * - `stale`: a later fetch is already visible; nothing is touched
 * - `suspect`: rows would vanish all at once; they are kept until another run gets the same
 * - `unchanged`: the same numbers; no row is written
 * - `replace`: the rows become those of the answer
 */
export type SliceDecision = "stale" | "suspect" | "unchanged" | "replace";

export function decideSlice(
  stored: StoredSlice,
  incoming: IncomingSlice,
  emptyGuard: "confirm" | "off",
): SliceDecision {
  if (stored.fetchNo > incoming.fetchNo) return "stale";
  if (stored.contentHash === incoming.contentHash) return "unchanged";
  const emptied = stored.rows > 0 && incoming.rows === 0;
  const confirmed = stored.suspectRun !== undefined && stored.suspectRun !== incoming.runId;
  return emptied && emptyGuard === "confirm" && !confirmed ? "suspect" : "replace";
}
