// Stores answers without a date as snapshots of unknown span. If the export's `undated` says "day" or "day-before", they are slices instead.

import { sql } from "kysely";
import { METRICS } from "../../usage/metrics.ts";
import type { SnapshotDecision, StoredSnapshot } from "../../usage/slice-decision.ts";
import type { Database } from "../connection/database.ts";
import type { Tx } from "../connection/transaction.ts";
import { deleteUndatedFailures } from "./failures.ts";
import { lockSeries } from "./stored-series.ts";
import { type FetchedSlice, type GroupIds, metricColumns, selectIncoming } from "./stored-slices.ts";

/** The newest snapshot of a series; `contentNo` is the number of the snapshot whose rows it shares. */
type NewestSnapshot = StoredSnapshot & { readonly snapshotNo: number; readonly contentNo: number };

type SeriesRef = { readonly seriesId: number };

export type DecidedSnapshot = FetchedSlice & {
  readonly before: NewestSnapshot | undefined;
  readonly decision: SnapshotDecision;
};

/** Which of the given series have answers with days. */
export async function datedSeries(db: Database, series: readonly SeriesRef[]): Promise<ReadonlySet<number>> {
  const { rows } = await sql<{ series_id: number }>`
    select series_id from usage_export.series
    where series_id = any(${series.map(({ seriesId }) => seriesId)}::integer[])
      and due_from is not null and undated_since is null
  `.execute(db);
  return new Set(rows.map(({ series_id }) => series_id));
}

/** Returns the newest snapshots by series id. Until this transaction ends, no other one changes these series, or stores a snapshot of them. */
export async function lockSeriesAndReadSnapshots(tx: Tx, series: readonly SeriesRef[]) {
  if (series.length === 0) return new Map<number, NewestSnapshot>();
  const ids = series.map(({ seriesId }) => seriesId);
  await lockSeries(tx, ids);
  const { rows } = await sql<NewestSnapshot & SeriesRef>`
    select newest.* from unnest(${ids}::integer[]) as wanted (series_id)
    cross join lateral (
      select series_id as "seriesId", snapshot_no as "snapshotNo", content_no as "contentNo", fetch_no::double precision as "fetchNo",
        content_hash as "contentHash"
      from usage_export.undated_snapshot
      where series_id = wanted.series_id order by snapshot_no desc limit 1
    ) newest
  `.execute(tx);
  return new Map(rows.map((row) => [row.seriesId, row]));
}

/** Each reading becomes a snapshot. The rows of its groups are stored only if a number differs from the snapshot before. */
export async function writeSnapshots(tx: Tx, decided: readonly DecidedSnapshot[], groupIds: GroupIds, takenAt: Date) {
  const written = decided
    .filter(({ decision }) => decision !== "stale")
    .map((one) => ({ ...one, snapshotNo: (one.before?.snapshotNo ?? 0) + 1 }));
  if (written.length === 0) return;
  const snapshots = written.map((one) => ({
    series_id: one.seriesId,
    snapshot_no: one.snapshotNo,
    content_no: one.decision === "replace" || !one.before ? one.snapshotNo : one.before.contentNo,
    fetch_no: String(one.fetchNo),
    run_id: one.runId,
    taken_at: takenAt,
    content_hash: one.contentHash,
    rows: one.rowCount,
  }));
  await tx.insertInto("usage_export.undated_snapshot").values(snapshots).execute();
  const changed = written.filter(({ decision, rowCount }) => decision === "replace" && rowCount > 0);
  if (changed.length > 0) {
    await sql`
      insert into usage_export.undated_row (series_id, snapshot_no, group_id, ${metricColumns("", METRICS)})
      select taken.series_id, taken.snapshot_no, incoming.group_id, ${metricColumns("incoming.", METRICS)}
      from (${selectIncoming(changed, groupIds)}) incoming
      join unnest(
        ${changed.map(({ seriesId }) => seriesId)}::integer[], ${changed.map(({ snapshotNo }) => snapshotNo)}::integer[]
      ) with ordinality as taken (series_id, snapshot_no, slice_no) using (slice_no)
    `.execute(tx);
  }
  const ids = written.map(({ seriesId }) => seriesId);
  const series = tx.updateTable("usage_export.series").where("series_id", "in", ids);
  await series.set({ undated_since: takenAt }).where("undated_since", "is", null).execute();
  await deleteUndatedFailures(tx, ids);
}
