// Tests of storing answers without any date: they become snapshots, not days. They run on a Postgres server and on the embedded database.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import type { AnswerRow, NormalisedSlice } from "../../../src/usage/normalise.ts";
import type { Project } from "../../../src/usage/series.ts";
import {
  type AnswerPart,
  coverageOf,
  failOn,
  newSeries,
  nextFetchNo,
  rowOf,
  shown,
  sliceOn,
  store,
  textsOf,
  view,
} from "../stored-usage.ts";

const RUN_DAY = "2026-03-18";
/** An answer to a request without a window. */
const NO_WINDOW: AnswerPart = { serviceChoosesDays: true };

function undated(rows: readonly AnswerRow[]): NormalisedSlice {
  return { ...sliceOn(RUN_DAY, rows), undated: true };
}

function summary(requests: Readonly<Record<string, string>>): NormalisedSlice {
  return undated(Object.entries(requests).map(([value, count]) => rowOf(value, count)));
}

export function testUndated(db: Database): void {
  const storeSummary = (seriesId: number, requests: Readonly<Record<string, string>>, part: AnswerPart = {}) =>
    store(db, seriesId, [summary(requests)], { ...NO_WINDOW, ...part });

  const snapshots = async (project: Project) =>
    textsOf(await view(db, "usage_snapshot", project), "snapshot group_value requests requests_change fell gone");

  test("an answer without any date is a snapshot", async () => {
    const { project, seriesId } = await newSeries(db);
    expect(await storeSummary(seriesId, { listen: "1", speak: "2" })).toEqual({
      slices: [{ day: RUN_DAY, decision: "replace", undated: true }],
      rowsChanged: 2,
    });
    expect(await shown(db, project)).toEqual({});
    expect(await coverageOf(db, project)).toMatchObject([{ usage_date: null, status: "undated", rows: 2 }]);
    expect(await snapshots(project)).toEqual(["1 listen 1 null false false", "1 speak 2 null false false"]);
  });

  test("a snapshot has the change of each group since the one before", async () => {
    const { project, seriesId } = await newSeries(db);
    await storeSummary(seriesId, { grows: "1", falls: "9", goes: "3", stays: "5" });
    await storeSummary(seriesId, { grows: "4", falls: "2", stays: "5", appears: "7" });
    await storeSummary(seriesId, { grows: "4", falls: "2", stays: "5", appears: "8" });
    // Without the four rows of the first snapshot.
    expect((await snapshots(project)).slice(4)).toEqual([
      "2 appears 7 7 false false",
      "2 falls 2 -7 true false",
      "2 goes null -3 true true",
      "2 grows 4 3 false false",
      "2 stays 5 0 false false",
      "3 appears 8 1 false false",
      "3 falls 2 0 false false",
      "3 grows 4 0 false false",
      "3 stays 5 0 false false",
    ]);
  });

  test("the numbers and changes of a snapshot are exact", async () => {
    const { project, seriesId } = await newSeries(db);
    const [first, second] = ["123456789012345678.000000000001", "123456789012345678.000000000003"];
    for (const hours of [first, second]) await store(db, seriesId, [undated([rowOf("listen", { hours })])], NO_WINDOW);
    expect(await view(db, "usage_snapshot", project)).toMatchObject([
      { hours: first, hours_change: null, requests: null },
      { hours: second, hours_change: "0.000000000002", requests: null, requests_change: null },
    ]);
  });

  test("a snapshot with the same numbers stores no rows again", async () => {
    const { project, seriesId } = await newSeries(db);
    await storeSummary(seriesId, { listen: "1", speak: "2" });
    const again = await storeSummary(seriesId, { speak: "2", listen: "1" });
    expect(again).toMatchObject({ slices: [{ decision: "unchanged" }], rowsChanged: 0 });
    await storeSummary(seriesId, { listen: "1", speak: "2" });
    // Without the rows of the first two snapshots.
    expect((await snapshots(project)).slice(4)).toEqual(["3 listen 1 0 false false", "3 speak 2 0 false false"]);
    const { rows } = await sql`select from usage_export.undated_row where series_id = ${seriesId}`.execute(db);
    expect(rows).toHaveLength(2);
  });

  test("an answer stored twice makes one snapshot", async () => {
    const { project, seriesId } = await newSeries(db);
    const early = await nextFetchNo(db);
    const fetchNo = await nextFetchNo(db);
    for (const rowsChanged of [1, 0]) {
      expect(await storeSummary(seriesId, { listen: "2" }, { fetchNo })).toMatchObject({ rowsChanged });
    }
    expect(await storeSummary(seriesId, { listen: "1" }, { fetchNo: early })).toMatchObject({
      slices: [{ decision: "stale", undated: true }],
      rowsChanged: 0,
    });
    expect(await snapshots(project)).toEqual(["1 listen 2 null false false"]);
  });

  test("of answers that are stored at once, the newest fetch makes the newest snapshot", async () => {
    const { project, seriesId } = await newSeries(db);
    const fetches = [];
    for (let i = 0; i < 6; i++) fetches.push(await nextFetchNo(db));
    const results = await Promise.all(
      fetches.map((fetchNo) => storeSummary(seriesId, { listen: String(fetchNo) }, { fetchNo })),
    );
    const stored = (await snapshots(project)).map((text) => text.split(" "));
    const decisions = results.flatMap(({ slices }) => slices.map(({ decision }) => decision));
    expect(stored).toHaveLength(decisions.filter((decision) => decision === "replace").length);
    expect(stored.map(([no]) => Number(no))).toEqual(stored.map((_, i) => i + 1));
    expect(stored.at(-1)?.[2]).toBe(String(fetches.at(-1)));
    expect(stored.flatMap(([, , , change]) => (Number(change) < 0 ? [change] : []))).toEqual([]);
  });

  test("an answer without rows is an empty snapshot, unless the series has days", async () => {
    const nothing = await newSeries(db);
    await storeSummary(nothing.seriesId, {});
    expect(await snapshots(nothing.project)).toEqual(["1 null null null false false"]);
    const dated = await newSeries(db);
    await store(db, dated.seriesId, { "2026-03-16": { listen: "1" } }, NO_WINDOW);
    await storeSummary(dated.seriesId, {});
    expect(await snapshots(dated.project)).toEqual([]);
  });

  test("the next answer ends a failure, whatever the day of the failed run", async () => {
    const { project, seriesId } = await newSeries(db);
    const statuses = async () => (await coverageOf(db, project)).map(({ status }) => status);
    await storeSummary(seriesId, { listen: "1" });
    await failOn(db, seriesId, ["2026-03-16"]);
    expect(await statuses()).toEqual(["failed", "undated"]);
    await storeSummary(seriesId, { listen: "1" });
    expect(await statuses()).toEqual(["undated"]);
  });

  test("new days become due only while answers name days", async () => {
    const { project, seriesId } = await newSeries(db);
    const due = async () => (await view(db, "freshness", project)).map(({ due_through }) => due_through);
    await store(db, seriesId, { "2026-03-16": { listen: "1" } }, NO_WINDOW);
    const makeDue = sql`update usage_export.series set next_due_at = now() - interval '1 hour' where series_id = ${seriesId}`;
    await makeDue.execute(db);
    const grown = await due();
    await storeSummary(seriesId, { listen: "9" });
    expect(await due()).toEqual(["2026-03-16"]);
    expect((await coverageOf(db, project)).map(({ status }) => status)).toEqual(["complete", "undated"]);
    expect(await shown(db, project)).toEqual({ "2026-03-16": { listen: "1" } });

    await store(db, seriesId, { "2026-03-17": { listen: "2" } }, NO_WINDOW);
    expect(await due()).toEqual(grown);
    expect((await coverageOf(db, project)).some(({ status }) => status === "undated")).toBe(false);
  });
}
