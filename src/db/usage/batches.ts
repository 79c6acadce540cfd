// Writes a batch of answers in one transaction: slices are replaced whole, and only rows that differ are written.

import { createHash } from "node:crypto";
import type { Day } from "../../usage/days.ts";
import { METRICS } from "../../usage/metrics.ts";
import type { NormalisedSlice } from "../../usage/normalise.ts";
import type { Grouping } from "../../usage/series.ts";
import {
  decideSlice,
  decideSnapshot,
  doubtAfter,
  type FilterDoubt,
  type Guards,
  newestFetchNo,
  reasonToKeep,
  type SliceDecision,
  type StoredSlice,
  type Totals,
  type Undated,
} from "../../usage/slice.ts";
import { type Database, databaseNow } from "../connection/database.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";
import { type GroupIds, type GroupingValue, internGroups, mergeRows } from "./rows.ts";
import { extendDue } from "./series.ts";
import {
  lockSlices,
  type SliceRef,
  StaleRead,
  type StoredSlices,
  sliceKey,
  storedSlices,
  sumSlices,
  writeSlices,
} from "./slices.ts";
import { datedSeries, lockSnapshots, markDated, type NewestSnapshots, writeSnapshots } from "./undated-snapshots.ts";

export type Answer = Guards & {
  readonly seriesId: number;
  readonly grouping: Grouping;
  /** Taken right before the call, see fetch-numbers.ts. */
  readonly fetchNo: number;
  /** `performance.now()` right before the call. */
  readonly askedMs: number;
  readonly runId: string;
  readonly slices: readonly NormalisedSlice[];
  /** Why its numbers may not be those of the filter. */
  readonly doubt?: FilterDoubt | undefined;
  /** How an answer without a date is stored. */
  readonly undated: Undated;
  /** No window was sent: which days are due is what the answer says. */
  readonly ownDays: boolean;
};

export type MergeResult = {
  readonly slices: readonly {
    readonly day: Day;
    readonly decision: SliceDecision;
    /** Stored as a snapshot without a day. */
    readonly undated?: true;
  }[];
  readonly rowsChanged: number;
};

/** What is done with an answer or not at all. */
export type InSameTransaction = (tx: Tx, result: MergeResult) => Promise<void>;

export type AnswerToMerge = { readonly answer: Answer; readonly inSameTransaction?: InSameTransaction | undefined };

type IncomingSlice = SliceRef &
  NormalisedSlice & { readonly grouping: Grouping; readonly answer: Answer; readonly contentHash: string };

/** What is stored: slices of days, and answers without any date. */
type IncomingAnswers = { readonly slices: readonly IncomingSlice[]; readonly snapshots: readonly IncomingSlice[] };

/**
 * Safe to repeat: an answer that is stored already is found unchanged. All of them are stored or none; no two may have a
 * slice in common. Locks are taken in the order of the answers, which is to be the same for all who store. The results are
 * in that order.
 */
export async function mergeAnswers(db: Database, merges: readonly AnswerToMerge[]): Promise<readonly MergeResult[]> {
  const all = merges
    .flatMap(({ answer }) => answer.slices.map((slice) => incomingSlice(answer, slice)))
    .sort((a, b) => a.seriesId - b.seriesId || (a.day < b.day ? -1 : 1));
  const snapshots = await undatedSnapshots(db, all);
  const incoming = { slices: all.filter((slice) => !snapshots.has(slice)), snapshots: [...snapshots] };
  // Who was overtaken looks again; each time somebody else has stored what was newly fetched.
  for (;;) {
    try {
      return await writeInTransaction(db, merges, incoming);
    } catch (error) {
      if (!(error instanceof StaleRead)) throw error;
    }
  }
}

/**
 * The answers to store as snapshots of unknown span. An answer without rows does not show whether it has dates: if the series has
 * days, the answer is taken to be about those.
 */
async function undatedSnapshots(db: Database, all: readonly IncomingSlice[]): Promise<ReadonlySet<IncomingSlice>> {
  const undated = all.filter((slice) => slice.undated && slice.answer.undated === "snapshot");
  const empty = undated.filter(({ rows }) => rows.length === 0);
  const dated = empty.length > 0 ? await datedSeries(db, empty) : new Set<number>();
  return new Set(undated.filter(({ seriesId, rows }) => rows.length > 0 || !dated.has(seriesId)));
}

async function writeInTransaction(
  db: Database,
  merges: readonly AnswerToMerge[],
  incoming: IncomingAnswers,
): Promise<readonly MergeResult[]> {
  const looked = await inTransaction(db, async (tx) => {
    const before = await storedSlices(tx, incoming.slices);
    const changing = incoming.slices.filter((slice) => mayChange(slice, before));
    const groupIds = await internGroups(tx, groupsOf([...changing, ...incoming.snapshots]));
    const look = { before, changing, groupIds };
    const isQuiet = changing.length + incoming.snapshots.length === 0;
    return { look, results: isQuiet ? await decideAndWrite(tx, merges, incoming, look) : undefined };
  });
  // Another transaction: a group's number stays valid whatever becomes of the answers, and no merge waits for another's new groups.
  return looked.results ?? inTransaction(db, (tx) => decideAndWrite(tx, merges, incoming, looked.look));
}

/** What was seen before anything was locked. */
type BeforeLock = {
  readonly before: StoredSlices;
  /** Slices whose rows will not stay as they are, as far as is known. */
  readonly changing: readonly IncomingSlice[];
  readonly groupIds: GroupIds;
};

/** Throws Overtaken where a slice that seemed to stay as it is has been written since. */
async function decideAndWrite(
  tx: Tx,
  merges: readonly AnswerToMerge[],
  incoming: IncomingAnswers,
  { before, changing, groupIds }: BeforeLock,
): Promise<readonly MergeResult[]> {
  // A lock is logged like a change, and most slices of most answers are as they were: those are written only if they still are.
  // In no order, so two that write the same ones may wait for each other; the server ends one, which is run again.
  const stored = new Map([...before, ...(await lockSlices(tx, changing))]);
  // Sorted by series across all runs: series are locked in this order everywhere.
  const followed = merges.filter(({ answer }) => answer.ownDays).sort((a, b) => a.answer.seriesId - b.answer.seriesId);
  const newest = await lockSnapshots(tx, [...followed.map(({ answer }) => answer), ...incoming.snapshots]);
  // What changes is locked now: this is the moment its readers see it, and it never goes back.
  const seenAt = await databaseNow(tx);
  const guarded = changing.filter((slice) => slice.answer.cliffGuard === "confirm" && isShrinkable(slice, stored));
  const totals = await sumSlices(tx, guarded);
  const decided = incoming.slices.map((slice) => ({ ...slice, ...decide(slice, stored, totals, seenAt) }));
  const replaced = decided.filter(({ decision }) => decision === "replace");
  const changed = await mergeRows(tx, replaced, groupIds, seenAt);
  await writeSlices(tx, decided, seenAt);
  const snapshots = incoming.snapshots.map((snapshot) => decidedSnapshot(snapshot, newest));
  await writeSnapshots(tx, snapshots, groupIds, seenAt);
  for (const { answer } of followed) {
    const days = decided.filter((slice) => slice.answer === answer).map(({ day }) => day);
    await extendDueByAnswer(tx, answer.seriesId, days);
  }
  const results = merges.map(({ answer }) => {
    const slices = decided.filter((slice) => slice.answer === answer);
    const undated = snapshots.filter((snapshot) => snapshot.answer === answer);
    return {
      slices: [
        ...slices.map(({ day, decision }) => ({ day, decision })),
        ...undated.map(({ day, sliceDecision }) => ({ day, decision: sliceDecision, undated: true }) as const),
      ],
      rowsChanged:
        slices.reduce((sum, slice) => sum + (changed.get(sliceKey(slice)) ?? 0), 0) +
        undated.reduce((sum, { decision, rows }) => sum + (decision === "new" ? rows.length : 0), 0),
    };
  });
  for (const [i, result] of results.entries()) await merges[i]?.inSameTransaction?.(tx, result);
  return results;
}

function decidedSnapshot(snapshot: IncomingSlice, newest: NewestSnapshots) {
  const { fetchNo, runId } = snapshot.answer;
  const before = newest.get(snapshot.seriesId);
  const decision = decideSnapshot(before, { fetchNo, contentHash: snapshot.contentHash });
  const sliceDecision: SliceDecision = decision === "new" ? "replace" : decision === "stale" ? "stale" : "unchanged";
  return { ...snapshot, fetchNo, runId, before, decision, sliceDecision };
}

const NOTHING_STORED: StoredSlice = { fetchNo: 0, contentHash: undefined, rows: 0, doubt: undefined };

function storedOf(slice: SliceRef, all: StoredSlices): StoredSlice {
  return all.get(sliceKey(slice)) ?? NOTHING_STORED;
}

function mayChange(slice: IncomingSlice, all: StoredSlices): boolean {
  const { contentHash, answer } = slice;
  return (
    reasonToKeep(storedOf(slice, all), { fetchNo: answer.fetchNo, contentHash, filterDoubt: answer.doubt }) ===
    undefined
  );
}

/** The slice has rows, and the answer would replace them with others. */
function isShrinkable(slice: IncomingSlice, all: StoredSlices): boolean {
  return slice.rows.length > 0 && storedOf(slice, all).rows > 0 && mayChange(slice, all);
}

function decide(slice: IncomingSlice, all: StoredSlices, totals: ReadonlyMap<string, Totals>, now: Date) {
  const { contentHash, rows, answer } = slice;
  const { fetchNo, runId, askedMs } = answer;
  const stored = { ...storedOf(slice, all), totals: totals.get(sliceKey(slice)) };
  const askedAt = new Date(now.getTime() - (performance.now() - askedMs));
  const incoming = {
    fetchNo,
    runId,
    contentHash,
    askedAt,
    rows: rows.length,
    totals: stored.totals ? totalsOf(slice) : [],
    filterDoubt: answer.doubt,
  };
  return {
    fetchNo,
    askedAt,
    storedFetchNo: newestFetchNo(stored),
    decision: decideSlice(stored, incoming, answer),
    doubt: doubtAfter(stored, incoming, answer),
  };
}

function totalsOf({ rows }: IncomingSlice): Totals {
  return METRICS.map((_, i) => {
    const values = rows.flatMap(({ metrics }) => metrics.values[i] ?? []);
    return values.length > 0 ? values.reduce((sum, value) => sum + Number(value), 0) : undefined;
  });
}

/** The numbers and groups of a slice, in one order, as one hash: two answers with the same hash are the same snapshot. */
function incomingSlice(answer: Answer, slice: NormalisedSlice): IncomingSlice {
  const { seriesId, grouping } = answer;
  const rows = [...slice.rows].sort((a, b) => (a.group.key < b.group.key ? -1 : 1));
  const content = rows.map(({ group, metrics }) => JSON.stringify([group.key, metrics.values, metrics.extra])).join("");
  const contentHash = createHash("sha256").update(content).digest("hex");
  return { ...slice, rows, seriesId, grouping, answer, contentHash };
}

function groupsOf(slices: readonly IncomingSlice[]): GroupingValue[] {
  const groups = new Map<Grouping, Map<string, GroupingValue>>();
  for (const { grouping, rows } of slices) {
    const ofGrouping = groups.get(grouping) ?? new Map<string, GroupingValue>();
    for (const { group } of rows) if (!ofGrouping.has(group.key)) ofGrouping.set(group.key, { grouping, group });
    groups.set(grouping, ofGrouping);
  }
  return [...groups.values()].flatMap((ofGrouping) => [...ofGrouping.values()]);
}

/**
 * Without a window the answer's own days are due. A failure before it was recorded under the day of its run, as no answer
 * told another; it is over now.
 */
async function extendDueByAnswer(tx: Tx, seriesId: number, days: readonly Day[]): Promise<void> {
  const sorted = [...days].sort();
  const [start, end] = [sorted[0], sorted.at(-1)];
  if (start === undefined || end === undefined) return;
  await extendDue(tx, [seriesId], { first: start, oldest: { start, end }, through: end });
  await markDated(tx, seriesId);
  await tx
    .deleteFrom("usage_export.slice")
    .where("series_id", "=", seriesId)
    .where("status", "=", "failed")
    .where("fetch_no", "=", "0")
    .where("usage_date", ">", end)
    .execute();
}
