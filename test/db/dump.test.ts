// Dumping from a server: one snapshot while others write.

import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { readSnapshot } from "../../src/db/connection/transaction.ts";
import { listViews, readViewRows } from "../../src/db/dump.ts";
import { testDatabase } from "../support/database.ts";
import { dumped, testDump } from "./dump-behaviour.ts";
import { newSeries } from "./stored-usage.ts";

const { db } = await testDatabase();

describe("dump", () => testDump(db));

async function storeDays(seriesId: number, count: number): Promise<void> {
  await sql`
    insert into usage_export.slice (series_id, usage_date, status, fetch_no, rows)
    select ${seriesId}, date '2020-01-01' + day, 'complete', 1, 0 from generate_series(1, ${count}::integer) day
  `.execute(db);
}

test("a dump does not contain changes that are made while it runs", async () => {
  const { project, seriesId } = await newSeries(db);
  await storeDays(seriesId, 2_500);
  const found = await readSnapshot(db, async (tx) => {
    const view = (await listViews(tx)).find(({ name }) => name === "coverage");
    if (!view) throw new Error("no view coverage");
    const batches = readViewRows(tx, view, {});
    const { value: first } = await batches.next();
    await sql`delete from usage_export.slice where series_id = ${seriesId} and usage_date > '2021-01-01'`.execute(db);
    const rest = await Array.fromAsync(batches);
    return [first, ...rest].flat().filter((row) => row?.[0] === JSON.stringify(project.id));
  });
  expect(found).toHaveLength(2_500);
  expect((await dumped(db, "coverage")).filter((row) => row.project_id === JSON.stringify(project.id))).toHaveLength(
    366,
  );
});

describe("days", () => {
  test("a row of several days belongs to a range that contains one of them", async () => {
    const { project, seriesId } = await newSeries(db);
    await sql`
      insert into usage_export.slice (series_id, usage_date, status)
      select ${seriesId}, day::date, 'failed' from generate_series('2026-03-10'::timestamp, '2026-03-20', '1 day') day
    `.execute(db);
    const gaps = async (from: string, to: string) =>
      (await dumped(db, "coverage_gaps", { from, to })).filter((row) => row.project_id === JSON.stringify(project.id))
        .length;
    expect(await gaps("2026-03-01", "2026-03-09")).toBe(0);
    expect(await gaps("2026-03-01", "2026-03-10")).toBe(1);
    expect(await gaps("2026-03-15", "2026-03-15")).toBe(1);
    expect(await gaps("2026-03-20", "2026-03-31")).toBe(1);
    expect(await gaps("2026-03-21", "2026-03-31")).toBe(0);
  });

  test("a run belongs to the day it started in UTC", async () => {
    await sql`
      insert into usage_export.run (run_id, kind, job, trigger, started_at)
      select gen_random_uuid(), 'export', 'of the range', 'manual', moment::timestamptz
      from unnest(array['2026-03-16 23:59:59.999999+00', '2026-03-17 00:00:00+00', '2026-03-18 00:00:00+00']) moment
    `.execute(db);
    const rows = await dumped(db, "runs", { from: "2026-03-17", to: "2026-03-17" });
    expect(rows.map((row) => row.started_at)).toEqual(['"2026-03-17T00:00:00+00:00"']);
  });
});

test("texts are sorted by code point, whatever their collation in the database", async () => {
  await sql`
    create view bi.spelled as select word collate "und-x-icu" as word from unnest(array['b', 'é', 'Z', 'a']) word
  `.execute(db);
  expect((await dumped(db, "spelled")).map(({ word }) => word)).toEqual(['"Z"', '"a"', '"b"', '"é"']);
  await sql`drop view bi.spelled`.execute(db);
});
