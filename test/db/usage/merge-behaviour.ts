// Tests of storing answers. They run on a Postgres server and on the embedded database.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { METRICS } from "../../../src/usage/metrics.ts";
import {
  coverageOf,
  newSeries,
  nextFetchNo,
  rowOf,
  rowVersions,
  shown,
  sliceOn,
  store,
  UNGUARDED,
  view,
} from "../stored-usage.ts";

const FIRST = "2026-03-16";
const SECOND = "2026-03-17";

export function testMerge(db: Database): void {
  test("the same answer again writes no row", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { usage: { [FIRST]: { listen: "1", speak: "1" } } });
    const slices = { [FIRST]: { listen: "2" }, [SECOND]: { listen: "2", speak: "3" } };
    const answer = { fetchNo: await nextFetchNo(db), runId: randomUUID() };
    await store(db, seriesId, slices, answer);
    const before = await rowVersions(db, seriesId);
    expect(before).toHaveLength(4);

    for (const part of [answer, {}]) {
      const again = await store(db, seriesId, slices, part);
      expect(again.slices.map(({ decision }) => decision)).toEqual(["unchanged", "unchanged"]);
      expect(again.rowsChanged).toBe(0);
    }
    expect(await rowVersions(db, seriesId)).toEqual(before);
    expect(await view(db, "restatements", project)).toHaveLength(2);
  });

  test("if a day has changed, only the rows that differ are written", async () => {
    const usage = { [FIRST]: { listen: "1" }, [SECOND]: { listen: "2", speak: "3", agent: "4" } };
    const { project, seriesId } = await newSeries(db, "endpoint", { usage });
    const before = await rowVersions(db, seriesId);

    const next = { [FIRST]: { listen: "1" }, [SECOND]: { listen: "2", speak: "30", agent: "4", read: "5" } };
    const changed = await store(db, seriesId, next);

    expect(changed).toEqual({
      slices: [
        { day: FIRST, decision: "unchanged" },
        { day: SECOND, decision: "replace" },
      ],
      rowsChanged: 2,
    });
    expect(await shown(db, project)).toEqual(next);
    const after = await rowVersions(db, seriesId);
    const kept = after.filter((row) => before.some((old) => old.xmin === row.xmin && old.ctid === row.ctid));
    expect(kept).toHaveLength(3);
  });

  test("all seven metrics and the extra ones arrive as they were sent", async () => {
    const { project, seriesId } = await newSeries(db);
    const zeros = "0".repeat(307);
    const hostile = `0 9007199254740993.5 18446744073709551616 1${zeros}0 0.${zeros}5 0.1 1.${zeros}1`.split(" ");
    const numbers = Object.fromEntries(METRICS.map((metric, i) => [metric, hostile[i]]));
    await store(db, seriesId, [
      sliceOn(FIRST, [
        rowOf("listen", numbers, '{"credits":9007199254740993,"minutes":0.1}'),
        rowOf("speak", {}, '{"a":1}'),
      ]),
    ]);
    const rows = await view(db, "usage_by_endpoint", project);
    expect(rows[0]).toMatchObject(numbers);
    expect(rows[1]).toMatchObject(Object.fromEntries(METRICS.map((metric) => [metric, null])));
    const { rows: extra } = await sql<{ text: string }>`
      select extra_metrics::text as text from bi.usage_by_endpoint where project_id = ${project.id} order by endpoint
    `.execute(db);
    expect(extra.map(({ text }) => text)).toEqual(['{"credits": 9007199254740993, "minutes": 0.1}', '{"a": 1}']);
  });

  test("any value of a group comes back as it was sent", async () => {
    const short = `NULL null {} {a,b} " \\ \\N ',() é\u0301\u{1f600}`.split(" ");
    const awkward = [...short, "a\nb", "x".repeat(100_000)];
    const usage = { [FIRST]: [...awkward, "a\u0000b", "ab", null].map((value) => [value, "1"] as const) };
    const { project } = await newSeries(db, "endpoint", { usage });
    const shownGroups = (await view(db, "usage_by_endpoint", project)).map(({ endpoint }) => endpoint);
    // Postgres has no NUL, so it is shown as JSON writes it.
    expect(new Set(shownGroups)).toEqual(new Set([...awkward, "a\\u0000b", "ab", null]));
  });

  test("a fall is measured from the groups that are shown, without those that are gone", async () => {
    const usage = { [FIRST]: { listen: "1000", speak: "99000" } };
    const { project, seriesId } = await newSeries(db, "endpoint", { usage });
    await store(db, seriesId, { [FIRST]: { listen: "1000" } }, UNGUARDED);
    const half = { [FIRST]: { listen: "500" } };
    expect(await store(db, seriesId, half)).toMatchObject({ slices: [{ decision: "replace" }] });
    expect(await store(db, seriesId, { [FIRST]: { listen: "49" } })).toMatchObject({
      slices: [{ decision: "suspect" }],
    });
    expect(await shown(db, project)).toEqual(half);
  });

  test("numbers that Postgres refuses leave everything as it was", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { usage: { [FIRST]: { listen: "1" } } });
    const refused = { [FIRST]: { listen: "2" }, [SECOND]: { listen: "-1" } };
    await expect(store(db, seriesId, refused)).rejects.toMatchObject({ code: "23514" });
    expect(await shown(db, project)).toEqual({ [FIRST]: { listen: "1" } });
    expect(await coverageOf(db, project)).toMatchObject([{ usage_date: FIRST, status: "complete" }]);
  });
}
