// Tests of the guards against answers that remove most of a day's usage. They run on a Postgres server and on the embedded database.

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
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

  test("another run that finds the day empty an hour later confirms that", async () => {
    const { project, seriesId } = await newSeries(db);
    await store(db, seriesId, [slice(FIRST, { listen: "1" })]);
    await store(db, seriesId, [slice(FIRST, {})]);
    await makeDoubtsAnHourOlder(db);
    const confirmed = await store(db, seriesId, [slice(FIRST, {})]);
    expect(confirmed).toEqual({ slices: [{ day: FIRST, decision: "replace" }], rowsChanged: 1 });
    expect(await shown(db, project)).toEqual({});
    expect(await coverageOf(db, project)).toEqual([{ usage_date: FIRST, status: "complete", rows: 0, error: null }]);
  });

  test.each<[string, Readonly<Record<string, string>>]>([
    ["other rows", { listen: "2" }],
    ["the same rows", { listen: "1" }],
  ])(
    "an empty answer stays in doubt if an answer with %s arrives after it that was requested before it",
    async (_, requests) => {
      const { project, seriesId } = await newSeries(db);
      await store(db, seriesId, [slice(FIRST, { listen: "1" })]);
      const older = await nextFetchNo(db);
      await store(db, seriesId, [slice(FIRST, {})]);
      const late = await store(db, seriesId, [slice(FIRST, requests)], { fetchNo: older });
      expect(late).toEqual({ slices: [{ day: FIRST, decision: "stale" }], rowsChanged: 0 });
      await recordFailure(db, { seriesId, days: [FIRST], fetchNo: older, reason: "down" });
      expect(await shown(db, project)).toEqual({ [FIRST]: { listen: "1" } });
      expect(await coverageOf(db, project)).toMatchObject([{ status: "suspect" }]);
    },
  );

  test("a failure between two empty answers does not restart the doubt", async () => {
    const { project, seriesId } = await newSeries(db);
    await store(db, seriesId, [slice(FIRST, { listen: "1" })]);
    await store(db, seriesId, [slice(FIRST, {})]);
    await recordFailure(db, { seriesId, days: [FIRST], fetchNo: await nextFetchNo(db), reason: "down" });
    await makeDoubtsAnHourOlder(db);
    expect(await shown(db, project)).toEqual({ [FIRST]: { listen: "1" } });
    expect(await store(db, seriesId, [slice(FIRST, {})])).toMatchObject({ slices: [{ decision: "replace" }] });
  });

  test("rows that come back end the doubt, and the next empty answer starts a new one", async () => {
    const { project, seriesId } = await newSeries(db);
    await store(db, seriesId, [slice(FIRST, { listen: "1" })]);
    await store(db, seriesId, [slice(FIRST, {})]);
    await store(db, seriesId, [slice(FIRST, { listen: "1" })]);
    expect(await coverageOf(db, project)).toEqual([{ usage_date: FIRST, status: "complete", rows: 1, error: null }]);
    expect(await store(db, seriesId, [slice(FIRST, {})])).toMatchObject({ slices: [{ decision: "suspect" }] });
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
