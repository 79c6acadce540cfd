// Decides what an answer does to a stored slice, and to the stored snapshots of answers without a date. Pure.

import { min } from "date-fns/min";
import { HOUR_MS } from "./days.ts";
import { GUARDED_FROM, METRIC_TABLE, STORED_METRICS, type StoredMetric } from "./metrics.ts";

/** `missing` includes a slice that was read only before its day was over. */
export type SliceStatus = "complete" | "suspect" | "failed" | "missing";

/** A doubtful answer, whose rows were not stored. */
export type Doubt = {
  /** `fall`: the answer has far less usage than is stored. */
  readonly kind: "empty" | "fall" | FilterDoubt["kind"];
  /** The run that got the first answer with this doubt, and when it asked. */
  readonly runId: string;
  readonly since: Date;
  /** The newest fetch whose answer had this doubt. */
  readonly fetchNo: number;
};

/** The sums of the absolute amounts of a slice, in the order of STORED_METRICS; undefined if no row has the metric. */
export type Totals = readonly (number | undefined)[];

export type StoredSlice = {
  /** The fetch whose rows are visible; 0 while there is none. */
  readonly fetchNo: number;
  readonly contentHash: string | undefined;
  readonly rows: number;
  readonly doubt: Doubt | undefined;
  /** Left out if the decision needs no totals. */
  readonly totals?: Totals | undefined;
};

export type IncomingSlice = {
  readonly fetchNo: number;
  readonly runId: string;
  readonly contentHash: string;
  readonly rows: number;
  readonly totals: Totals;
  readonly askedAt: Date;
  readonly filterDoubt?: FilterDoubt | undefined;
};

/** Why the numbers of a filtered answer may not be those of the filter. */
export type FilterDoubt = {
  readonly kind:
    | "filter-empty" // no usage, or no amount of a bill, on days that have some without the filter
    | "filter-ignored"; // the service seems to ignore a condition
  readonly reason: string;
  /** Whether the same answer in a later run removes the doubt. */
  readonly isConfirmable: boolean;
};

/** "confirm": a doubtful answer replaces stored numbers only after a later run got the same. */
export const GUARD_MODES = ["confirm", "off"] as const;
type GuardMode = (typeof GUARD_MODES)[number];

type Guards = {
  /** For an answer without rows, where rows are stored. */
  readonly emptyGuard: GuardMode;
  /** For an answer with less than a tenth of the stored numbers. Only this guard needs `totals`. */
  readonly cliffGuard: GuardMode;
};

export type SliceDecision =
  | "stale" // a later fetch is stored or in doubt already; nothing is touched
  | "suspect" // the answer is doubtful; what is stored is kept until a later run confirms the answer
  | "unchanged" // the same numbers; no row is written
  | "replace"; // the rows become those of the answer

/** The least time between the first doubtful answer and one that confirms it. All runs during one passing fault get the same wrong answer. */
const CONFIRM_AFTER_MS = HOUR_MS;

export function decideSlice(stored: StoredSlice, incoming: IncomingSlice, rules: Guards) {
  const decided = (decision: SliceDecision) => ({ decision, doubt: undefined });
  const reasonKept = reasonToKeep(stored, incoming);
  if (reasonKept) return decided(reasonKept);
  const found = reasonToDoubt(stored, incoming, rules);
  if (!found) return decided("replace");
  const { kind, reason } = found;
  const { runId, fetchNo, askedAt, filterDoubt } = incoming;
  // A doubt of another kind begins anew.
  const before = stored.doubt?.kind === kind ? stored.doubt : undefined;
  const isLater = before && before.runId !== runId && askedAt.getTime() - before.since.getTime() >= CONFIRM_AFTER_MS;
  if (isLater && filterDoubt?.isConfirmable !== false) return decided("replace");
  // A time stored before the clock was set back may be in the future, and would delay the confirmation.
  const since = min([before?.since ?? askedAt, askedAt]);
  return { decision: "suspect" as const, doubt: { kind, runId: before?.runId ?? runId, since, fetchNo, reason } };
}

/** Undefined if the answer may change the stored rows. */
export function reasonToKeep(
  stored: StoredSlice,
  { fetchNo, contentHash, filterDoubt }: Pick<IncomingSlice, "fetchNo" | "contentHash" | "filterDoubt">,
): "stale" | "unchanged" | undefined {
  if (newestFetchNo(stored) > fetchNo) return "stale";
  // Equal content proves nothing: the stored numbers may be wrong in the same way.
  if (filterDoubt && !filterDoubt.isConfirmable) return undefined;
  return stored.contentHash === contentHash ? "unchanged" : undefined;
}

/** The newest fetch of the slice, stored or in doubt. An older one neither replaces rows nor settles the doubt. */
export function newestFetchNo({ fetchNo, doubt }: Pick<StoredSlice, "fetchNo" | "doubt">): number {
  return Math.max(fetchNo, doubt?.fetchNo ?? 0);
}

/** Whether the decision needs the totals of the stored rows and of the answer's. */
export function comparesTotals(storedRows: number, incomingRows: number, { cliffGuard }: Guards): boolean {
  return cliffGuard === "confirm" && storedRows > 0 && incomingRows > 0;
}

/** Why the answer is doubtful. Whether it confirms an earlier doubtful answer is not considered here. */
function reasonToDoubt(stored: StoredSlice, incoming: IncomingSlice, rules: Guards) {
  if (incoming.filterDoubt) return incoming.filterDoubt;
  if (stored.rows > 0 && incoming.rows === 0 && rules.emptyGuard === "confirm") {
    const reason =
      "the answer has no rows for this day, which had some; they are kept until a run at least an hour later gets the same";
    return { kind: "empty", reason } as const;
  }
  const fall = comparesTotals(stored.rows, incoming.rows, rules) ? fallOf(stored, incoming) : undefined;
  if (!fall) return undefined;
  const reason = `the answer has ${fall.after} ${fall.metric} for this day, which had ${fall.before}: over 90 % less; the stored rows are kept until a run at least an hour later gets as little`;
  return { kind: "fall", reason } as const;
}

/** A fall from a smaller amount than this is believed. */
const FALL_FROM_MIN = new Map<StoredMetric, number>([
  ...METRIC_TABLE.map(({ name, unit }) => [name, GUARDED_FROM[unit]] as const),
  ["dollars", 10],
]);

const FALL_BELOW = 0.1;

/** Compares the requests. If one side does not count requests, compares the first metric that both have. Doubles are exact enough. */
function fallOf({ totals = [] }: StoredSlice, incoming: IncomingSlice) {
  for (const metric of ["requests", ...STORED_METRICS] as const) {
    const i = STORED_METRICS.indexOf(metric);
    const [before, after] = [totals[i], incoming.totals[i]];
    if (before === undefined || after === undefined) continue;
    const isFall = before >= (FALL_FROM_MIN.get(metric) ?? 0) && after < before * FALL_BELOW;
    return isFall ? { metric, before, after } : undefined;
  }
}

/** How an answer without any date is stored: as a snapshot of an unknown span, or as usage of the day on which it is read or of the day before. */
export const UNDATED = ["snapshot", "day", "day-before"] as const;

/** The settings of an export that decide how its answers are stored. Callers pass the whole export. */
export type AnswerRules = Guards & { readonly undated: (typeof UNDATED)[number] };

export type SnapshotDecision = Exclude<SliceDecision, "suspect">;

export type StoredSnapshot = { readonly fetchNo: number; readonly contentHash: string };

/** `newest` is the newest snapshot of the series. An unchanged snapshot is recorded without rows. */
export function decideSnapshot(newest: StoredSnapshot | undefined, incoming: StoredSnapshot): SnapshotDecision {
  // An equal number: this answer is stored already.
  if (newest && newest.fetchNo >= incoming.fetchNo) return "stale";
  return newest?.contentHash === incoming.contentHash ? "unchanged" : "replace";
}

/** For a series without a window that has dated rows: why an empty answer, which names no day, can't be stored. Undefined if it can. */
export function undatedEmptyProblem({ emptyGuard, undated }: AnswerRules): string | undefined {
  if (undated !== "snapshot" || emptyGuard !== "confirm") return undefined;
  return 'the answer has no rows and names no day, though earlier ones had dated rows, so it is unknown which days are empty; "emptyGuard": "off" takes it for a day without usage';
}
