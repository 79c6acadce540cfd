// Writes what became of slices: complete by a reading, or suspect.

import { sql } from "kysely";
import { addDays, startOfDay } from "../usage/day.ts";
import type { NormalisedSlice } from "../usage/normalise.ts";
import type { doubtAfter, SliceDecision } from "../usage/slice.ts";
import type { SliceRef } from "./slices.ts";
import type { Tx } from "./transaction.ts";

export type DecidedSlice = SliceRef &
  NormalisedSlice & {
    readonly fetchNo: number;
    /** The newest fetch, stored or in doubt, that the decision was based on. */
    readonly storedFetchNo: number;
    /** When the service was asked. */
    readonly askedAt: Date;
    readonly contentHash: string;
    readonly decision: SliceDecision;
    /** Set only for a suspect slice. */
    readonly doubt: ReturnType<typeof doubtAfter>;
  };

/** Somebody else has stored a slice since it was looked at; nothing that was decided on it is right any more. */
export class Overtaken extends Error {
  override readonly name = "Overtaken";
}

/** Throws Overtaken. What is locked can't be. */
export async function writeSlices(tx: Tx, decided: readonly DecidedSlice[], seenAt: Date): Promise<void> {
  const good = decided.filter(({ decision }) => decision === "replace" || decision === "unchanged");
  if (good.length > 0) await writeComplete(tx, good, seenAt);
  const suspect = decided.flatMap(({ seriesId, day, decision, doubt }) =>
    decision === "suspect" && doubt ? [{ seriesId, day, doubt }] : [],
  );
  if (suspect.length > 0) await writeSuspect(tx, suspect, seenAt);
}

/**
 * `attempted_at` is of attempts that failed, and is left as it is: an update is logged from its first changed column to its
 * last, and every night each slice that did not change is updated.
 */
async function writeComplete(tx: Tx, good: readonly DecidedSlice[], seenAt: Date): Promise<void> {
  const { rows: written } = await sql`
    update usage_export.slice sl
    set status = 'complete', fetch_no = good.fetch_no, fetched_at = ${seenAt},
      closed_at = coalesce(sl.closed_at, good.closed_at::timestamptz), content_hash = good.content_hash, rows = good.rows,
      error = null, suspect_run = null, failures = 0, suspect_why = null, suspect_since = null, suspect_fetch_no = null
    from unnest(
      ${good.map(({ seriesId }) => seriesId)}::integer[], ${good.map(({ day }) => day)}::text[]::date[],
      ${good.map(({ fetchNo }) => fetchNo)}::bigint[], ${good.map(({ storedFetchNo }) => storedFetchNo)}::bigint[],
      ${good.map((slice) => closingMoment(slice, seenAt)?.toISOString() ?? null)}::text[],
      ${good.map(({ contentHash }) => contentHash)}::text[], ${good.map(({ rows }) => rows.length)}::integer[]
    ) as good (series_id, usage_date, fetch_no, stored_fetch_no, closed_at, content_hash, rows)
    where sl.series_id = good.series_id and sl.usage_date = good.usage_date
      and greatest(sl.fetch_no, sl.suspect_fetch_no) = good.stored_fetch_no
    returning sl.series_id
  `.execute(tx);
  if (written.length < good.length) throw new Overtaken();
}

type SuspectSlice = SliceRef & { readonly doubt: NonNullable<DecidedSlice["doubt"]> };

async function writeSuspect(tx: Tx, suspect: readonly SuspectSlice[], seenAt: Date): Promise<void> {
  const doubts = suspect.map(({ doubt }) => doubt);
  await sql`
    update usage_export.slice sl
    set status = 'suspect', error = suspect.reason, attempted_at = ${seenAt}, suspect_run = suspect.run_id,
      suspect_why = suspect.why, suspect_since = suspect.since, suspect_fetch_no = suspect.fetch_no
    from unnest(
      ${suspect.map(({ seriesId }) => seriesId)}::integer[], ${suspect.map(({ day }) => day)}::text[]::date[],
      ${doubts.map(({ reason }) => reason)}::text[], ${doubts.map(({ runId }) => runId)}::uuid[],
      ${doubts.map(({ kind }) => kind)}::text[], ${doubts.map(({ since }) => since.toISOString())}::timestamptz[],
      ${doubts.map(({ fetchNo }) => fetchNo)}::bigint[]
    ) as suspect (series_id, usage_date, reason, run_id, why, since, fetch_no)
    where sl.series_id = suspect.series_id and sl.usage_date = suspect.usage_date
  `.execute(tx);
}

/** When the day's reading stops being partial: at once if the service was asked after the day was over, otherwise undefined. */
function closingMoment({ day, undated, askedAt }: DecidedSlice, seenAt: Date): Date | undefined {
  const over = startOfDay(addDays(day, 1));
  // Numbers without a date are those of their moment: nothing later will complete them.
  if (undated) return over;
  return askedAt >= over ? seenAt : undefined;
}
