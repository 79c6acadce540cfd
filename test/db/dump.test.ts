// Dumping from a server: one snapshot while others write, and the dump ends when its signal is aborted.

import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { listDumpViews, readDumpRows, withDumpTransaction } from "../../src/db/dump.ts";
import { testDatabase } from "../support/database.ts";
import { dumped, testDump, viewsOf } from "./dump-behaviour.ts";
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
  const found = await withDumpTransaction(db, new AbortController().signal, async (tx) => {
    const view = (await listDumpViews(tx)).find(({ name }) => name === "coverage");
    if (!view) throw new Error("no view coverage");
    const batches = readDumpRows(tx, view, {});
    const { value: first } = await batches.next();
    await sql`delete from usage_export.slice where series_id = ${seriesId} and usage_date > '2021-01-01'`.execute(db);
    const rest = await Array.fromAsync(batches);
    return [first, ...rest].flat().filter((row) => row?.[0] === project.id);
  });
  expect(found).toHaveLength(2_500);
  expect((await dumped(db, "coverage")).filter((row) => row.project_id === project.id)).toHaveLength(366);
});

test("an abort of a dump cancels its running statement", async () => {
  const stop = new AbortController();
  const dump = withDumpTransaction(db, stop.signal, (tx) => sql`select pg_sleep(50)`.execute(tx));
  const sleeping = async () => {
    const { rows } = await sql`
      select from pg_stat_activity
      where datname = current_database() and wait_event = 'PgSleep' and state = 'active'
    `.execute(db);
    return rows.length;
  };
  await expect.poll(sleeping).toBe(1);
  stop.abort(new Error("stopped"));
  await expect(dump).rejects.toMatchObject({ code: "57014" });
});

test("a dump whose signal is already aborted does not begin", async () => {
  const begun = withDumpTransaction(db, AbortSignal.abort(new Error("stopped")), async () => "begun");
  await expect(begun).rejects.toThrow("stopped");
});

test("the transaction of a dump can't write", async () => {
  const dump = withDumpTransaction(db, new AbortController().signal, (tx) =>
    sql`delete from usage_export.slice`.execute(tx),
  );
  await expect(dump).rejects.toMatchObject({ code: "25006" });
});

describe("days", () => {
  test("a row of several days belongs to a range that contains one of them", async () => {
    const { project, seriesId } = await newSeries(db);
    await sql`
      insert into usage_export.slice (series_id, usage_date, status)
      select ${seriesId}, day::date, 'failed' from generate_series('2026-03-10'::timestamp, '2026-03-20', '1 day') day
    `.execute(db);
    const gaps = async (from: string, to: string) =>
      (await dumped(db, "coverage_gaps", { from, to })).filter((row) => row.project_id === project.id).length;
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
    expect(rows.map((row) => row.started_at)).toEqual(["2026-03-17T00:00:00.000000Z"]);
  });
});

test("texts are sorted by code point, whatever their collation in the database", async () => {
  await sql`
    create view bi.spelled as select word collate "und-x-icu" as word from unnest(array['b', 'é', 'Z', 'a']) word
  `.execute(db);
  expect((await dumped(db, "spelled")).map(({ word }) => word)).toEqual(["Z", "a", "b", "é"]);
  await sql`drop view bi.spelled`.execute(db);
});

test("the columns of all views have only known types", async () => {
  const { rows } = await sql<{ type: string }>`
    select distinct format_type(atttypid, null) as type from pg_attribute a join pg_class c on c.oid = attrelid
    where relnamespace = 'bi'::regnamespace and relkind = 'v' and attnum > 0 order by type
  `.execute(db);
  expect(rows.map(({ type }) => type)).toEqual([
    ...[
      "bigint",
      "boolean",
      "date",
      "integer",
      "jsonb",
      "numeric",
      "text",
      "text[]",
      "timestamp with time zone",
      "uuid",
    ],
  ]);
});

test("a listed view has its meaning, and its columns in order", async () => {
  const view = (await viewsOf(db)).find(({ name }) => name === "coverage_gaps");
  expect(view).toMatchObject({
    meaning: expect.stringContaining("one row a stretch"),
    columns: expect.arrayContaining([
      { name: "days", kind: "integer", meaning: "How many days the stretch has, a count" },
    ]),
  });
  expect(view?.columns.map(({ name }) => name).slice(0, 5)).toEqual([
    ...["project_id", "project", "grouping", "filter", "status"],
  ]);
});
