// Stores an answer: slices are replaced whole, all slices of one answer in one transaction, and only what differs is written.

import { createHash } from "node:crypto";
import { sql } from "kysely";
import { addDays, type Day, startOfDay } from "../usage/day.ts";
import type { NormalisedSlice, SnapshotRow } from "../usage/normalise.ts";
import type { Grouping } from "../usage/series.ts";
import { decideSlice, type SliceDecision, type StoredSlice } from "../usage/slice.ts";
import type { Database } from "./database.ts";
import { internGroups } from "./group-values.ts";
import { mergeRows } from "./merge-rows.ts";
import { extendDue } from "./series.ts";
import { lockSlices, storedSlices } from "./slices.ts";
import { inTransaction, type Tx } from "./transaction.ts";

export type Answer = {
  readonly seriesId: number;
  readonly grouping: Grouping;
  /** Taken before the call (nextFetchNo). */
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

type HashedSlice = NormalisedSlice & { readonly contentHash: string };

/**
 * Safe to repeat: an answer that is stored already is found unchanged. What `also` does is done with the answer or not at
 * all.
 */
export async function mergeAnswer(
  db: Database,
  answer: Answer,
  also: (tx: Tx, result: MergeResult) => Promise<void> = async () => {},
): Promise<MergeResult> {
  const slices = [...answer.slices].sort((a, b) => (a.day < b.day ? -1 : 1)).map(withHash);
  const days = slices.map(({ day }) => day);
  // In a transaction of its own: a number stays valid whatever becomes of the merge, and no merge waits for another's
  // new groups. A look without a lock finds what will be written; unchanged days then need no group numbers.
  const groupIds = await inTransaction(db, async (tx) => {
    const before = await storedSlices(tx, answer.seriesId, days);
    const changed = slices.filter((slice) => before.get(slice.day)?.contentHash !== slice.contentHash);
    return internGroups(tx, answer.grouping, groupsOf(changed));
  });

  return inTransaction(db, async (tx) => {
    const stored = await lockSlices(tx, answer.seriesId, days);
    const decided = slices.map((slice) => ({
      slice,
      decision: decideSlice(
        stored.get(slice.day) ?? NOTHING_STORED,
        { ...answer, contentHash: slice.contentHash, rows: slice.rows.length },
        answer.emptyGuard,
      ),
    }));
    const replaced = decided.filter(({ decision }) => decision === "replace").map(({ slice }) => slice);
    // The slices are locked now: this is the moment their readers see the change, and it never goes back.
    const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(tx);
    const seenAt = rows[0]?.now ?? new Date();
    // Another writer came in between and undid what the first look saw: rare, and then the numbers are looked up here.
    const unknown = groupsOf(replaced).some((group) => !groupIds.has(group.key));
    const ids = unknown ? await internGroups(tx, answer.grouping, groupsOf(replaced)) : groupIds;
    const rowsChanged = replaced.length > 0 ? await mergeRows(tx, answer.seriesId, replaced, ids, seenAt) : 0;
    await writeSlices(tx, answer, decided, seenAt);
    if (answer.ownDays) await followAnswer(tx, answer.seriesId, slices);
    const result = { slices: decided.map(({ slice, decision }) => ({ day: slice.day, decision })), rowsChanged };
    await also(tx, result);
    return result;
  });
}

const NOTHING_STORED: StoredSlice = { fetchNo: 0, contentHash: undefined, rows: 0, suspectRun: undefined };

/** The numbers and groups of a slice, in one order, as one hash: two answers with the same hash are the same snapshot. */
function withHash(slice: NormalisedSlice): HashedSlice {
  const rows = [...slice.rows].sort((a, b) => (a.group.key < b.group.key ? -1 : 1));
  const hash = createHash("sha256");
  for (const { group, metrics } of rows) hash.update(JSON.stringify([group.key, metrics.values, metrics.extra]));
  return { ...slice, rows, contentHash: hash.digest("hex") };
}

function groupsOf(slices: readonly NormalisedSlice[]): SnapshotRow["group"][] {
  const groups = new Map(slices.flatMap(({ rows }) => rows.map(({ group }) => [group.key, group])));
  return [...groups.values()];
}

type Decided = { readonly slice: HashedSlice; readonly decision: SliceDecision };

const SUSPECT = "the answer has no rows for this day, which had some; they are kept until another run gets the same";

async function writeSlices(tx: Tx, answer: Answer, decided: readonly Decided[], seenAt: Date): Promise<void> {
  const good = decided.filter(({ decision }) => decision === "replace" || decision === "unchanged");
  const closedAt = good.map(({ slice }) => closingMoment(slice, seenAt)?.toISOString() ?? null);
  await sql`
    update usage_export.slice sl
    set status = 'complete', fetch_no = ${answer.fetchNo}, fetched_at = ${seenAt}, attempted_at = ${seenAt},
      closed_at = coalesce(sl.closed_at, good.closed_at::timestamptz), content_hash = good.content_hash, rows = good.rows,
      error = null, suspect_run = null, failures = 0
    from unnest(
      ${good.map(({ slice }) => slice.day)}::text[], ${closedAt}::text[],
      ${good.map(({ slice }) => slice.contentHash)}::text[], ${good.map(({ slice }) => slice.rows.length)}::integer[]
    ) as good (day, closed_at, content_hash, rows)
    where sl.series_id = ${answer.seriesId} and sl.usage_date = good.day::date
  `.execute(tx);

  const suspect = decided.filter(({ decision }) => decision === "suspect").map(({ slice }) => slice.day);
  if (suspect.length === 0) return;
  await tx
    .updateTable("usage_export.slice")
    .set({ status: "suspect", error: SUSPECT, suspect_run: answer.runId, attempted_at: seenAt })
    .where("series_id", "=", answer.seriesId)
    .where("usage_date", "in", suspect)
    .execute();
}

/**
 * Without a window the answer's own days are due. A failure before it was recorded under the day of its run, as no answer
 * told another; it is over now.
 */
async function followAnswer(tx: Tx, seriesId: number, slices: readonly NormalisedSlice[]): Promise<void> {
  const start = slices[0]?.day;
  const end = slices.at(-1)?.day;
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

/** When a reading of the day is no longer a partial one: at once where the day is over, else not by this reading. */
function closingMoment({ day, undated }: NormalisedSlice, seenAt: Date): Date | undefined {
  const over = startOfDay(addDays(day, 1));
  // Numbers without a date are those of their moment: nothing later will complete them.
  if (undated) return over;
  return seenAt >= over ? seenAt : undefined;
}
