// Repairs a database whose tables were copied without its sequences, as logical replication does.

import { expect, test } from "vitest";
import { nextFetchNo, raiseSequences } from "../../src/db/usage/fetch-numbers.ts";
import { testDatabase } from "../support/database.ts";
import { forgetSequences } from "../support/forget-sequences.ts";
import { newSeries, shown, slice, store } from "./stored-usage.ts";

const { db } = await testDatabase();
const DAY = "2026-03-16";

test("after raiseSequences a new fetch is newer than the stored ones, and new series and groups get unused numbers", async () => {
  const { project, seriesId } = await newSeries(db);
  for (const requests of ["1", "2", "3"]) await store(db, seriesId, [slice(DAY, { listen: requests })]);
  await forgetSequences(db);

  expect((await raiseSequences(db)).toSorted()).toEqual([
    "usage_export.fetch_no",
    "usage_export.group_value_group_id_seq",
    "usage_export.series_series_id_seq",
  ]);

  expect(await store(db, seriesId, [slice(DAY, { listen: "4", speak: "1" })])).toMatchObject({
    slices: [{ decision: "replace" }],
  });
  expect(await shown(db, project)).toEqual({ [DAY]: { listen: "4", speak: "1" } });
  await newSeries(db);
});

test("a sequence that is not behind is left alone", async () => {
  const { seriesId } = await newSeries(db);
  await store(db, seriesId, [slice(DAY, { listen: "1" })]);
  await raiseSequences(db);
  const before = await nextFetchNo(db);
  expect(await raiseSequences(db)).toEqual([]);
  expect(await nextFetchNo(db)).toBe(before + 1);
});

test("no number is given out twice while several processes raise the sequences at once", async () => {
  const { seriesId } = await newSeries(db);
  await store(db, seriesId, [slice(DAY, { listen: "1" })]);
  await raiseSequences(db);
  await forgetSequences(db);
  const taken = (
    await Promise.all(
      [1, 2, 3, 4].map(async () => [await nextFetchNo(db), await raiseSequences(db), await nextFetchNo(db)]),
    )
  ).flatMap(([first, , last]) => [first, last]);
  expect(new Set(taken).size).toBe(taken.length);
});
