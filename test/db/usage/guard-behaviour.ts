// Tests of the guards against answers that remove most of a day's usage. They run on a Postgres server and on the embedded database.

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { coverageOf, makeDoubtsAnHourOlder, newSeries, shown, slice, store } from "../stored-usage.ts";

const FIRST = "2026-03-16";
const SECOND = "2026-03-17";

export function testEmptyGuard(db: Database): void {
  test("a day that loses all its rows is suspect and keeps them, however often the same run reads it", async () => {
    const { project, seriesId } = await newSeries(db);
    await store(db, seriesId, [slice(FIRST, { listen: "1" })]);
    const runId = randomUUID();
    for (const _ of [1, 2]) {
      expect(await store(db, seriesId, [slice(FIRST, {})], { runId })).toMatchObject({
        slices: [{ day: FIRST, decision: "suspect" }],
        rowsChanged: 0,
      });
    }
    expect(await shown(db, project)).toEqual({ [FIRST]: { listen: "1" } });
    expect(await coverageOf(db, project)).toMatchObject([
      { status: "suspect", rows: 1, error: expect.stringContaining("no rows") },
    ]);
  });

  test("a day that falls by over 90 % keeps its numbers until a run an hour later gets as little", async () => {
    const { project, seriesId } = await newSeries(db);
    const before = { listen: "12000.5", speak: "3000" };
    await store(db, seriesId, [slice(FIRST, before)]);
    const fallen = () => store(db, seriesId, [slice(FIRST, { listen: "40", agent: "2" })]);
    for (const _ of [1, 2]) expect(await fallen()).toMatchObject({ slices: [{ decision: "suspect" }], rowsChanged: 0 });
    expect(await shown(db, project)).toEqual({ [FIRST]: before });
    expect(await coverageOf(db, project)).toMatchObject([
      { status: "suspect", rows: 2, error: expect.stringContaining("42 requests for this day, which had 15000.5") },
    ]);
    await makeDoubtsAnHourOlder(db);
    expect(await fallen()).toMatchObject({ slices: [{ decision: "replace" }] });
    expect(await shown(db, project)).toEqual({ [FIRST]: { listen: "40", agent: "2" } });
  });

  test("groups that are gone do not count in the comparison with the stored usage", async () => {
    const { seriesId } = await newSeries(db);
    await store(db, seriesId, [slice(FIRST, { listen: "1000", speak: "500" })]);
    await store(db, seriesId, [slice(FIRST, { speak: "500" })]);
    const next = await store(db, seriesId, [slice(FIRST, { speak: "60" })]);
    expect(next).toMatchObject({ slices: [{ decision: "replace" }] });
  });

  test("one day of an answer can be suspect while the others are stored", async () => {
    const { project, seriesId } = await newSeries(db);
    await store(db, seriesId, [slice(FIRST, { listen: "1" }), slice(SECOND, { listen: "2" })]);
    const result = await store(db, seriesId, [slice(FIRST, {}), slice(SECOND, { listen: "3" })]);
    expect(result.slices.map(({ decision }) => decision)).toEqual(["suspect", "replace"]);
    expect(await shown(db, project)).toEqual({ [FIRST]: { listen: "1" }, [SECOND]: { listen: "3" } });
  });
}
