// What only a server can show of dumps: a dump is one snapshot while others write, and its order does not depend on collations.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { readAtOneMoment } from "../../src/db/connection/transaction.ts";
import { listViews, readViewRows } from "../../src/db/dump.ts";
import { testDatabase } from "../support/database.ts";
import { dumped } from "./dump-behaviour.ts";
import { newSeries } from "./stored-usage.ts";

const { db } = await testDatabase();

test("a dump does not contain changes that are made while it runs", async () => {
  const { project, seriesId } = await newSeries(db);
  await sql`
    insert into usage_export.slice (series_id, usage_date, status, fetch_no, rows)
    select ${seriesId}, date '2020-01-01' + day, 'complete', 1, 0 from generate_series(1, 2500) day
  `.execute(db);
  const found = await readAtOneMoment(db, async (tx) => {
    const view = (await listViews(tx)).find(({ name }) => name === "coverage");
    if (!view) throw new Error("no view coverage");
    const batches = readViewRows(tx, view, {});
    const { value: first } = await batches.next();
    await sql`delete from usage_export.slice where series_id = ${seriesId} and usage_date > '2021-01-01'`.execute(db);
    const rest = await Array.fromAsync(batches);
    return [first, ...rest].flat().filter((row) => row?.[0] === JSON.stringify(project.id));
  });
  expect(found).toHaveLength(2_500);
  const later = (await dumped(db, "coverage")).filter((row) => row.project_id === JSON.stringify(project.id));
  expect(later).toHaveLength(366); // 2020-01-02 to 2021-01-01
});

test("texts are sorted by code point, whatever their collation in the database", async () => {
  await sql`
    create view bi.spelled as select word collate "und-x-icu" as word from unnest(array['b', 'é', 'Z', 'a']) word
  `.execute(db);
  expect((await dumped(db, "spelled")).map(({ word }) => word)).toEqual(['"Z"', '"a"', '"b"', '"é"']);
  await sql`drop view bi.spelled`.execute(db);
});
