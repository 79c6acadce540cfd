// Stores answers that carry no date: each as a snapshot of unknown span, never as the usage of a day.

import { sql } from "kysely";
import { METRICS } from "../../usage/metrics.ts";
import type { NormalisedSlice } from "../../usage/rows.ts";
import type { Grouping } from "../../usage/series.ts";
import type { SnapshotDecision, StoredSnapshot } from "../../usage/slice.ts";
import type { Database } from "../connection/database.ts";
import type { Tx } from "../connection/transaction.ts";
import { deleteUndatedFailures } from "./failures.ts";
import { type GroupIds, groupIdsOf, plainArray } from "./rows.ts";
import { lockSeries } from "./series.ts";

/** The newest snapshot of a series; `contentNo` is the number of the snapshot whose rows it shares. */
type NewestSnapshot = StoredSnapshot & { readonly snapshotNo: number; readonly contentNo: number };

/** By series id. */
export type NewestSnapshots = ReadonlyMap<number, NewestSnapshot>;

type SeriesRef = { readonly seriesId: number };

export type DecidedSnapshot = SeriesRef &
  Pick<NormalisedSlice, "columns" | "rowCount" | "contentHash"> & {
    readonly grouping: Grouping;
    readonly fetchNo: number;
    readonly runId: string;
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

/** The newest snapshots, locked: no other transaction stores one of these series until this one ends. */
export async function lockSnapshots(tx: Tx, series: readonly SeriesRef[]): Promise<NewestSnapshots> {
  if (series.length === 0) return new Map();
  const ids = series.map(({ seriesId }) => seriesId);
  await lockSeries(tx, ids);
  type Row = { series_id: number; snapshot_no: number; content_no: number; fetch_no: string; content_hash: string };
  const { rows } = await sql<Row>`
    select newest.* from unnest(${ids}::integer[]) as wanted (series_id)
    cross join lateral (
      select series_id, snapshot_no, content_no, fetch_no, content_hash from usage_export.undated_snapshot
      where series_id = wanted.series_id order by snapshot_no desc limit 1
    ) newest
  `.execute(tx);
  return new Map(
    rows.map((row) => [
      row.series_id,
      {
        snapshotNo: row.snapshot_no,
        contentNo: row.content_no,
        fetchNo: Number(row.fetch_no),
        contentHash: row.content_hash,
      },
    ]),
  );
}

/** Each reading becomes a snapshot. The rows of its groups are stored only if a number differs from the snapshot before. */
export async function writeSnapshots(
  tx: Tx,
  decided: readonly DecidedSnapshot[],
  groupIds: GroupIds,
  takenAt: Date,
): Promise<void> {
  const written = decided.flatMap((one) => {
    const snapshotNo = (one.before?.snapshotNo ?? 0) + 1;
    if (one.decision === "new") return [{ ...one, snapshotNo, contentNo: snapshotNo }];
    if (one.decision === "unchanged" && one.before) return [{ ...one, snapshotNo, contentNo: one.before.contentNo }];
    return [];
  });
  if (written.length === 0) return;
  await sql`
    insert into usage_export.undated_snapshot
      (series_id, snapshot_no, content_no, fetch_no, run_id, taken_at, content_hash, rows)
    select series_id, snapshot_no, content_no, fetch_no, run_id, ${takenAt}::timestamptz, content_hash, rows
    from unnest(
      ${written.map(({ seriesId }) => seriesId)}::integer[], ${written.map(({ snapshotNo }) => snapshotNo)}::integer[],
      ${written.map(({ contentNo }) => contentNo)}::integer[], ${written.map(({ fetchNo }) => fetchNo)}::bigint[],
      ${written.map(({ runId }) => runId)}::uuid[], ${written.map(({ contentHash }) => contentHash)}::text[],
      ${written.map(({ rowCount }) => rowCount)}::integer[]
    ) as written (series_id, snapshot_no, content_no, fetch_no, run_id, content_hash, rows)
  `.execute(tx);
  await writeUndatedRows(
    tx,
    written.filter(({ decision }) => decision === "new"),
    groupIds,
  );
  const ids = written.map(({ seriesId }) => seriesId);
  await sql`
    update usage_export.series set undated_since = ${takenAt}::timestamptz
    where series_id = any(${ids}::integer[]) and undated_since is null
  `.execute(tx);
  await deleteUndatedFailures(tx, ids);
}

async function writeUndatedRows(
  tx: Tx,
  snapshots: readonly (DecidedSnapshot & { readonly snapshotNo: number })[],
  groupIds: GroupIds,
): Promise<void> {
  if (snapshots.every(({ rowCount }) => rowCount === 0)) return;
  const ofEachRow = <T>(value: (snapshot: (typeof snapshots)[number]) => T): T[] =>
    snapshots.flatMap((snapshot) => snapshot.columns.groups.map(() => value(snapshot)));
  const numbers = METRICS.map(
    (_, i) => sql`unnest(${plainArray(snapshots.flatMap(({ columns }) => columns.metrics[i] ?? []))}::numeric[])`,
  );
  await sql`
    insert into usage_export.undated_row
      (series_id, snapshot_no, group_id, ${sql.join(METRICS.map((name) => sql.ref(name)))}, extra_metrics)
    select unnest(${plainArray(ofEachRow(({ seriesId }) => seriesId))}::integer[]),
      unnest(${plainArray(ofEachRow(({ snapshotNo }) => snapshotNo))}::integer[]),
      unnest(${plainArray(snapshots.flatMap((snapshot) => groupIdsOf(groupIds, snapshot)))}::integer[]), ${sql.join(numbers)},
      unnest(${snapshots.flatMap(({ columns }) => columns.extras)}::text[])::jsonb
  `.execute(tx);
}

/** Marks a series as one whose answers have days. */
export async function markDated(tx: Tx, seriesId: number): Promise<void> {
  await sql`
    update usage_export.series set undated_since = null where series_id = ${seriesId} and undated_since is not null
  `.execute(tx);
}
