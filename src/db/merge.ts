// Stores answers: slices are replaced whole, all slices of one answer in one transaction, and only what differs is written.

import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Day } from "../usage/day.ts";
import type { NormalisedSlice } from "../usage/normalise.ts";
import type { Grouping } from "../usage/series.ts";
import { decideSlice, type SliceDecision, type StoredSlice } from "../usage/slice.ts";
import type { Database } from "./database.ts";
import { type GroupOf, groupId, internGroups } from "./group-values.ts";
import { mergeRows } from "./merge-rows.ts";
import { extendDue } from "./series.ts";
import { lockSlices, type SliceRef, sliceKey, storedSlices } from "./slices.ts";
import { inTransaction, type Tx } from "./transaction.ts";
import { writeSlices } from "./write-slices.ts";

export type Answer = {
  readonly seriesId: number;
  readonly grouping: Grouping;
  /** Taken right before the call, see fetch-numbers.ts. */
  readonly fetchNo: number;
  readonly runId: string;
  readonly slices: readonly NormalisedSlice[];
  readonly emptyGuard: "confirm" | "off";
  /** No window was sent: which days are due is what the answer says. */
  readonly ownDays: boolean;
};

export type MergeResult = {
  readonly slices: readonly { readonly day: Day; readonly decision: SliceDecision }[];
  readonly rowsChanged: number;
};

/** What is done with an answer or not at all. */
export type Also = (tx: Tx, result: MergeResult) => Promise<void>;

export type AnswerToMerge = { readonly answer: Answer; readonly also?: Also | undefined };

type IncomingSlice = SliceRef &
  NormalisedSlice & { readonly grouping: Grouping; readonly answer: Answer; readonly contentHash: string };

/**
 * Safe to repeat: an answer that is stored already is found unchanged. All of them are stored or none; no two may have a
 * slice in common. Locks are taken in the order of the answers, which is to be the same for all who store. The results are
 * in that order.
 */
export async function mergeAnswers(db: Database, merges: readonly AnswerToMerge[]): Promise<readonly MergeResult[]> {
  const incoming = merges
    .flatMap(({ answer }) => answer.slices.map((slice) => incomingSlice(answer, slice)))
    .sort((a, b) => a.seriesId - b.seriesId || (a.day < b.day ? -1 : 1));
  // In a transaction of its own: a number stays valid whatever becomes of the merge, and no merge waits for another's
  // new groups. A look without a lock finds what will be written; unchanged days then need no group numbers.
  const groupIds = await inTransaction(db, async (tx) => {
    const before = await storedSlices(tx, incoming);
    const changed = incoming.filter((slice) => before.get(sliceKey(slice))?.contentHash !== slice.contentHash);
    return internGroups(tx, groupsOf(changed));
  });

  return inTransaction(db, async (tx) => {
    const stored = await lockSlices(tx, incoming);
    const decided = incoming.map((slice) => ({ ...slice, ...decide(slice, stored.get(sliceKey(slice))) }));
    const replaced = decided.filter(({ decision }) => decision === "replace");
    // The slices are locked now: this is the moment their readers see the change, and it never goes back.
    const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(tx);
    const seenAt = rows[0]?.now ?? new Date();
    // Another writer came in between and undid what the first look saw: rare, and then the numbers are looked up here.
    const known = replaced.every(({ grouping, rows }) =>
      rows.every(({ group }) => groupId(groupIds, grouping, group) !== undefined),
    );
    const ids = known ? groupIds : await internGroups(tx, groupsOf(replaced));
    const changed = await mergeRows(tx, replaced, ids, seenAt);
    await writeSlices(tx, decided, seenAt);
    for (const { answer } of merges) if (answer.ownDays) await followAnswer(tx, answer);
    const results = merges.map(({ answer }) => {
      const slices = decided.filter((slice) => slice.answer === answer);
      return {
        slices: slices.map(({ day, decision }) => ({ day, decision })),
        rowsChanged: slices.reduce((sum, slice) => sum + (changed.get(sliceKey(slice)) ?? 0), 0),
      };
    });
    for (const [i, result] of results.entries()) await merges[i]?.also?.(tx, result);
    return results;
  });
}

const NOTHING_STORED: StoredSlice = { fetchNo: 0, contentHash: undefined, rows: 0, suspectRun: undefined };

function decide(slice: IncomingSlice, stored: StoredSlice = NOTHING_STORED) {
  const { fetchNo, runId, emptyGuard } = slice.answer;
  const { contentHash, rows } = slice;
  return {
    fetchNo,
    runId,
    decision: decideSlice(stored, { fetchNo, runId, contentHash, rows: rows.length }, emptyGuard),
  };
}

/** The numbers and groups of a slice, in one order, as one hash: two answers with the same hash are the same snapshot. */
function incomingSlice(answer: Answer, slice: NormalisedSlice): IncomingSlice {
  const { seriesId, grouping } = answer;
  const rows = [...slice.rows].sort((a, b) => (a.group.key < b.group.key ? -1 : 1));
  const content = rows.map(({ group, metrics }) => JSON.stringify([group.key, metrics.values, metrics.extra])).join("");
  const contentHash = createHash("sha256").update(content).digest("hex");
  return { ...slice, rows, seriesId, grouping, answer, contentHash };
}

function groupsOf(slices: readonly IncomingSlice[]): GroupOf[] {
  const groups = new Map<Grouping, Map<string, GroupOf>>();
  for (const { grouping, rows } of slices) {
    const ofGrouping = groups.get(grouping) ?? new Map<string, GroupOf>();
    for (const { group } of rows) if (!ofGrouping.has(group.key)) ofGrouping.set(group.key, { grouping, group });
    groups.set(grouping, ofGrouping);
  }
  return [...groups.values()].flatMap((ofGrouping) => [...ofGrouping.values()]);
}

/**
 * Without a window the answer's own days are due. A failure before it was recorded under the day of its run, as no answer
 * told another; it is over now.
 */
async function followAnswer(tx: Tx, { seriesId, slices }: Answer): Promise<void> {
  const days = slices.map(({ day }) => day).sort();
  const [start, end] = [days[0], days.at(-1)];
  if (start === undefined || end === undefined) return;
  await extendDue(tx, [seriesId], { first: start, oldest: { start, end }, through: end });
  await tx
    .deleteFrom("usage_export.slice")
    .where("series_id", "=", seriesId)
    .where("status", "=", "failed")
    .where("fetch_no", "=", "0")
    .where("usage_date", ">", end)
    .execute();
}
