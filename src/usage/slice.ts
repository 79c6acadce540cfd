// Decides what an answer does to a stored slice. Pure.

import { METRICS } from "./metrics.ts";

/**
 * Why an answer is not believed until another one says the same: it has no rows, or far less than is stored; or its numbers
 * may not be those of its filter.
 */
export type DoubtKind = "empty" | "fall" | FilterDoubt["kind"];

/** An answer that was not believed, whose rows were not stored. */
export type Doubt = {
  readonly kind: DoubtKind;
  /** The run that got the first such answer, and when. */
  readonly runId: string;
  readonly since: Date;
  /** The newest fetch with such an answer. */
  readonly fetchNo: number;
};

/** By METRICS, the sum over the rows of a slice; undefined where no row has the metric. */
export type Totals = readonly (number | undefined)[];

/** What is stored of a slice. */
export type StoredSlice = {
  /** The fetch whose rows are visible; 0 while there is none. */
  readonly fetchNo: number;
  readonly contentHash: string | undefined;
  readonly rows: number;
  readonly doubt: Doubt | undefined;
  /** Of the visible rows. Needed only where the content of the answer is another. */
  readonly totals?: Totals | undefined;
};

export type IncomingSlice = {
  readonly fetchNo: number;
  readonly runId: string;
  readonly contentHash: string;
  readonly rows: number;
  readonly totals: Totals;
  /** When the service was asked. */
  readonly askedAt: Date;
  /** Of the whole answer. */
  readonly filterDoubt?: FilterDoubt | undefined;
};

/** Why the numbers of a filtered answer may not be those of the filter, whatever is stored. */
export type FilterDoubt = {
  /** No usage on any of several days that have some without the filter; or the service seems to ignore a condition. */
  readonly kind: "filter-empty" | "filter-ignored";
  readonly reason: string;
  /** Whether a later run that gets the same confirms it. */
  readonly isConfirmable: boolean;
};

export type Guards = { readonly emptyGuard: "confirm" | "off"; readonly cliffGuard: "confirm" | "off" };

/**
 * - `stale`: a later fetch is stored or in doubt already; nothing is touched
 * - `suspect`: all rows or nearly all of the numbers would vanish at once, or the numbers may not be those of the filter; what
 *   is stored is kept until a later run confirms it
 * - `unchanged`: the same numbers; no row is written
 * - `replace`: the rows become those of the answer
 */
export type SliceDecision = "stale" | "suspect" | "unchanged" | "replace";

/** What is wrong with the service for a moment is the same for every run of that moment. */
const CONFIRM_AFTER_MS = 60 * 60_000;

export function decideSlice(stored: StoredSlice, incoming: IncomingSlice, guards: Guards): SliceDecision {
  const kept = keptBy(stored, incoming);
  if (kept) return kept;
  const kind = doubtKind(stored, incoming, guards);
  return kind === undefined || isConfirmed(stored.doubt, kind, incoming) ? "replace" : "suspect";
}

/** Why an answer leaves the rows as they are, whatever is in it; undefined where it may change them. */
export function keptBy(
  stored: StoredSlice,
  { fetchNo, contentHash, filterDoubt }: Pick<IncomingSlice, "fetchNo" | "contentHash" | "filterDoubt">,
): "stale" | "unchanged" | undefined {
  if (newestFetchNo(stored) > fetchNo) return "stale";
  // The same may have been stored before anybody looked at it.
  if (filterDoubt && !filterDoubt.isConfirmable) return undefined;
  return stored.contentHash === contentHash ? "unchanged" : undefined;
}

/** The newest fetch that anything is known of: an older one neither replaces its rows nor settles its doubt. */
export function newestFetchNo({ fetchNo, doubt }: Pick<StoredSlice, "fetchNo" | "doubt">): number {
  return Math.max(fetchNo, doubt?.fetchNo ?? 0);
}

/** The doubt that a suspect slice has from now on. Another kind than before is a first one. */
export function doubtAfter(
  stored: StoredSlice,
  incoming: IncomingSlice,
  guards: Guards,
): (Doubt & { readonly reason: string }) | undefined {
  const kind = doubtKind(stored, incoming, guards);
  if (kind === undefined) return undefined;
  const { runId, fetchNo, askedAt } = incoming;
  const before = stored.doubt?.kind === kind ? stored.doubt : undefined;
  // A clock that was set back must not put the confirmation off by as much.
  const since = before && before.since < askedAt ? before.since : askedAt;
  return { kind, runId: before?.runId ?? runId, since, fetchNo, reason: reasonOf(kind, stored, incoming) };
}

function reasonOf(kind: DoubtKind, stored: StoredSlice, incoming: IncomingSlice): string {
  if (incoming.filterDoubt) return incoming.filterDoubt.reason;
  const fall = fallOf(stored, incoming);
  return kind === "fall" && fall
    ? `the answer has ${fall.after} ${fall.metric} for this day, which had ${fall.before}: over 90 % less; its rows are kept until a run at least an hour later gets as little`
    : "the answer has no rows for this day, which had some; they are kept until a run at least an hour later gets the same";
}

function isConfirmed(
  doubt: Doubt | undefined,
  kind: DoubtKind,
  { runId, askedAt, filterDoubt }: IncomingSlice,
): boolean {
  if (doubt?.kind !== kind || doubt.runId === runId || filterDoubt?.isConfirmable === false) return false;
  return askedAt.getTime() - doubt.since.getTime() >= CONFIRM_AFTER_MS;
}

function doubtKind(stored: StoredSlice, incoming: IncomingSlice, guards: Guards): DoubtKind | undefined {
  if (incoming.filterDoubt) return incoming.filterDoubt.kind;
  if (stored.rows === 0) return undefined;
  if (incoming.rows === 0) return guards.emptyGuard === "confirm" ? "empty" : undefined;
  return guards.cliffGuard === "confirm" && fallOf(stored, incoming) ? "fall" : undefined;
}

type Metric = (typeof METRICS)[number];

/** Less than this may well be restated to a tenth of it: a test that ran for an hour under the wrong tag. */
const GUARDED_FROM: Readonly<Record<Metric, number>> = {
  requests: 100,
  hours: 10,
  total_hours: 10,
  agent_hours: 10,
  tokens_in: 10_000,
  tokens_out: 10_000,
  tts_characters: 10_000,
};

const KEPT_SHARE_MIN = 0.1;

type Fall = { readonly metric: Metric; readonly before: number; readonly after: number };

/** By requests, or where one of both has none by the first metric that both have. Doubles do: it is about a factor of ten. */
function fallOf({ totals = [] }: StoredSlice, incoming: IncomingSlice): Fall | undefined {
  for (const metric of ["requests", ...METRICS] as const) {
    const i = METRICS.indexOf(metric);
    const [before, after] = [totals[i], incoming.totals[i]];
    if (before === undefined || after === undefined) continue;
    const isFall = before >= GUARDED_FROM[metric] && after < before * KEPT_SHARE_MIN;
    return isFall ? { metric, before, after } : undefined;
  }
  return undefined;
}
