import { sql } from "kysely";
import { expect, test } from "vitest";
import { addDays, daysOf } from "../../../src/usage/days.ts";
import { testDatabase } from "../../support/database.ts";
import { newSeries, rowOf, rowsOn, store } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAYS = daysOf({ start: "2026-01-31", end: addDays("2026-01-31", 30) });
const GROUPS = 452;

/** A month of 14,012 rows with every metric. */
function month(requests: (day: number, group: number) => number) {
  return DAYS.map((day, d) =>
    rowsOn(
      day,
      Array.from({ length: GROUPS }, (_, g) =>
        rowOf([`tag ${g}`, `another tag ${g}`], {
          hours: `${g}.724206944444${d}`,
          total_hours: `${g}.739579166666${d}`,
          agent_hours: "0",
          tokens_in: "0",
          tokens_out: "0",
          tts_characters: String(9_158_866 + g),
          requests: String(requests(d, g)),
        }),
      ),
    ),
  );
}

async function counts(seriesId: number): Promise<unknown> {
  const { rows } = await sql`
    select (select count(*)::integer from usage_export.snapshot_row where series_id = ${seriesId}) as rows,
      (select count(*)::integer from usage_export.row_revision where series_id = ${seriesId}) as changes,
      (select sum(requests)::integer from usage_export.snapshot_row where series_id = ${seriesId}) as requests
  `.execute(db);
  return rows[0];
}

test("an answer of 31 days and 14,012 rows is stored, found unchanged, and changed where it differs", async () => {
  const { seriesId } = await newSeries(db);
  expect(
    (
      await store(
        db,
        seriesId,
        month(() => 1),
      )
    ).rowsChanged,
  ).toBe(14_012);
  expect(await counts(seriesId)).toEqual({ rows: 14_012, changes: 14_012, requests: 14_012 });

  const again = await store(
    db,
    seriesId,
    month(() => 1),
  );
  expect(new Set(again.slices.map(({ decision }) => decision))).toEqual(new Set(["unchanged"]));

  const changed = await store(
    db,
    seriesId,
    month((day, group) => (day >= 24 && group % 10 === 0 ? 2 : 1)),
  );
  expect(changed.rowsChanged).toBe(7 * 46);
  expect(await counts(seriesId)).toEqual({ rows: 14_012, changes: 14_012 + 322, requests: 14_012 + 322 });
});

test("a day may have 14,000 different groups", async () => {
  const { seriesId } = await newSeries(db);
  const rows = Array.from({ length: 14_000 }, (_, i) => rowOf(`accessor-${i}`, String(i)));
  expect((await store(db, seriesId, [rowsOn("2026-03-17", rows)])).rowsChanged).toBe(14_000);
});

test("storing a month does not scan the slices of all years", async () => {
  const { seriesId } = await newSeries(db);
  await sql`
    insert into usage_export.slice (series_id, usage_date, status)
    select ${seriesId}, '2025-12-31'::date - day, 'complete' from generate_series(1, 20000) as day
  `.execute(db);
  await sql`analyze usage_export.slice`.execute(db);
  const before = await slicesReadWhole();
  await store(
    db,
    seriesId,
    month(() => 1),
  );
  expect((await slicesReadWhole()) - before).toBe(0);
});

/** How many slices were read by scans of the whole table. */
async function slicesReadWhole(): Promise<number> {
  // A connection reports its statistics when it is told to. The pool has fewer connections than these calls, so each is told.
  await Promise.all(
    Array.from({ length: 8 }, () => sql`select pg_stat_force_next_flush(), pg_sleep(0.05)`.execute(db)),
  );
  const { rows } = await sql<{ read: number }>`
    select seq_tup_read::integer as read from pg_stat_user_tables where relid = 'usage_export.slice'::regclass
  `.execute(db);
  return rows[0]?.read ?? Number.NaN;
}
