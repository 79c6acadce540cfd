// Stores an answer: slices are replaced whole, all slices of one answer in one transaction, and only what differs is written.

import { createHash } from "node:crypto";
import { sql } from "kysely";
import { addDays, type Day, startOfDay } from "../usage/day.ts";
import { METRICS } from "../usage/metrics.ts";
import type { NormalisedSlice, SnapshotRow } from "../usage/normalise.ts";
import type { Grouping } from "../usage/series.ts";
import { decideSlice, type SliceDecision, type StoredSlice } from "../usage/slice.ts";
import type { Database } from "./database.ts";
import { type GroupIds, internGroups } from "./group-values.ts";
import { markDue } from "./series.ts";
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

/** Safe to repeat: an answer that is stored already is found unchanged. */
export async function mergeAnswer(db: Database, answer: Answer): Promise<MergeResult> {
  const slices = [...answer.slices].sort((a, b) => (a.day < b.day ? -1 : 1)).map(withHash);
  // A look without a lock finds what will be written; unchanged days then need no group numbers.
  const before = await storedSlices(db, answer.seriesId, slices, false);
  const changed = slices.filter((slice) => before.get(slice.day)?.contentHash !== slice.contentHash);
  const groupIds = await internGroups(db, answer.grouping, groupsOf(changed));

  return inTransaction(db, async (tx) => {
    await reserveSlices(tx, answer.seriesId, slices);
    const stored = await storedSlices(tx, answer.seriesId, slices, true);
    const decided = slices.map((slice) => ({
      slice,
      stored: stored.get(slice.day) ?? NOTHING_STORED,
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
    return { slices: decided.map(({ slice, decision }) => ({ day: slice.day, decision })), rowsChanged };
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

/** Locking needs a row. All writers lock in the order of days, so none waits for another that waits for it. */
async function reserveSlices(tx: Tx, seriesId: number, slices: readonly NormalisedSlice[]): Promise<void> {
  await sql`
    insert into usage_export.slice (series_id, usage_date, status)
    select ${seriesId}::integer, day::date, 'failed' from unnest(${slices.map(({ day }) => day)}::text[]) as day order by day
    on conflict do nothing
  `.execute(tx);
}

async function storedSlices(
  db: Database,
  seriesId: number,
  slices: readonly NormalisedSlice[],
  lock: boolean,
): Promise<Map<Day, StoredSlice>> {
  const query = db
    .selectFrom("usage_export.slice")
    .select(["usage_date", "fetch_no", "content_hash", "rows", "suspect_run"])
    .where("series_id", "=", seriesId)
    .where(
      "usage_date",
      "in",
      slices.map(({ day }) => day),
    )
    .orderBy("usage_date");
  const rows = await (lock ? query.forUpdate() : query).execute();
  return new Map(
    rows.map((row) => [
      row.usage_date,
      {
        fetchNo: Number(row.fetch_no),
        contentHash: row.content_hash ?? undefined,
        rows: row.rows,
        suspectRun: row.suspect_run ?? undefined,
      },
    ]),
  );
}

const METRIC_COLUMNS = sql.join([...METRICS, "extra_metrics"].map((name) => sql.ref(name)));
const columnsOf = (table: string) => sql.join([...METRICS, "extra_metrics"].map((name) => sql.ref(`${table}.${name}`)));

/**
 * Joins the answer's rows with the stored ones first, so that a row with the same numbers is never written: an UPDATE
 * that changes nothing costs as much as one that does. A group that is gone keeps its row, marked, so that its revisions
 * go on where it comes back.
 */
async function mergeRows(
  tx: Tx,
  seriesId: number,
  slices: readonly NormalisedSlice[],
  groupIds: GroupIds,
  seenAt: Date,
): Promise<number> {
  const rows = slices.flatMap((slice) => slice.rows.map((row) => ({ day: slice.day, row })));
  const numbers = METRICS.map(
    (_, i) => sql`${rows.map(({ row }) => row.metrics.values[i] ?? null)}::text[]::numeric[]`,
  );
  const { rows: counted } = await sql<{ changed: string | number }>`
    with incoming as (
      select * from unnest(
        ${rows.map(({ day }) => day)}::text[]::date[],
        ${rows.map(({ row }) => groupIds.get(row.group.key) ?? null)}::integer[],
        ${sql.join(numbers)},
        ${rows.map(({ row }) => row.metrics.extra)}::text[]::jsonb[]
      ) as incoming (usage_date, group_id, ${METRIC_COLUMNS})
    ), stored as (
      select * from usage_export.snapshot_row
      where series_id = ${seriesId} and usage_date = any(${slices.map(({ day }) => day)}::text[]::date[])
    ), difference as (
      select coalesce(i.usage_date, s.usage_date) as usage_date, coalesce(i.group_id, s.group_id) as group_id,
        case when i.group_id is null then 'gone' when s.group_id is null or s.gone then 'appeared' else 'changed' end as kind,
        coalesce(s.revision, 0) + 1 as revision, ${columnsOf("i")}
      from incoming i
      full join stored s on s.usage_date = i.usage_date and s.group_id = i.group_id
      where s.group_id is null
        or (i.group_id is null and not s.gone)
        or (i.group_id is not null and (s.gone or (${columnsOf("s")}) is distinct from (${columnsOf("i")})))
    ), inserted as (
      insert into usage_export.snapshot_row
        (series_id, usage_date, group_id, ${METRIC_COLUMNS}, revision, first_seen_at, last_changed_at)
      select ${seriesId}::integer, usage_date, group_id, ${METRIC_COLUMNS}, 1, ${seenAt}::timestamptz, ${seenAt}::timestamptz
      from difference where revision = 1
    ), updated as (
      update usage_export.snapshot_row r
      set (${METRIC_COLUMNS}) = (select ${columnsOf("d")}), gone = d.kind = 'gone', revision = d.revision,
        last_changed_at = ${seenAt}::timestamptz
      from difference d
      where d.revision > 1 and r.series_id = ${seriesId} and r.usage_date = d.usage_date and r.group_id = d.group_id
    ), recorded as (
      insert into usage_export.snapshot_change
        (series_id, usage_date, group_id, revision, kind, restates, seen_at, ${METRIC_COLUMNS})
      select ${seriesId}::integer, d.usage_date, d.group_id, d.revision, d.kind, sl.fetch_no > 0, ${seenAt}::timestamptz,
        ${columnsOf("d")}
      from difference d
      join usage_export.slice sl on sl.series_id = ${seriesId} and sl.usage_date = d.usage_date
    )
    select count(*) as changed from difference
  `.execute(tx);
  return Number(counted[0]?.changed ?? 0);
}

type Decided = { readonly slice: HashedSlice; readonly stored: StoredSlice; readonly decision: SliceDecision };

const SUSPECT = "the answer has no rows for this day, which had some; they are kept until another run gets the same";

async function writeSlices(tx: Tx, answer: Answer, decided: readonly Decided[], seenAt: Date): Promise<void> {
  const good = decided.filter(({ decision }) => decision === "replace" || decision === "unchanged");
  const closedAt = good.map(({ slice }) => closingMoment(slice, seenAt)?.toISOString() ?? null);
  await sql`
    update usage_export.slice sl
    set status = 'complete', fetch_no = ${answer.fetchNo}, fetched_at = ${seenAt}, attempted_at = ${seenAt},
      closed_at = coalesce(sl.closed_at, good.closed_at::timestamptz), content_hash = good.content_hash, rows = good.rows,
      error = null, suspect_run = null
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
  await markDue(tx, [seriesId], { first: start, oldest: { start, end }, through: end });
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
