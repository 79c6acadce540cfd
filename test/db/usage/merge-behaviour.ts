// Tests of storing answers. They run on a Postgres server and on the embedded database.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { METRICS } from "../../../src/usage/metrics.ts";
import { coverageOf, newSeries, rowOf, rowsOn, rowVersions, shown, slice, store, view } from "../stored-usage.ts";

const FIRST = "2026-03-16";
const SECOND = "2026-03-17";

export function testMerge(db: Database): void {
  test("the same answer again writes no row and changes no time of change", async () => {
    const { seriesId } = await newSeries(db);
    const slices = [slice(FIRST, { listen: "1" }), slice(SECOND, { listen: "2", speak: "3" })];
    await store(db, seriesId, slices);
    const before = await rowVersions(db, seriesId);

    const again = await store(db, seriesId, slices);

    expect(again.slices.map(({ decision }) => decision)).toEqual(["unchanged", "unchanged"]);
    expect(again.rowsChanged).toBe(0);
    expect(before).toHaveLength(3);
    expect(await rowVersions(db, seriesId)).toEqual(before);
  });

  test("if a day has changed, only the rows that differ are written", async () => {
    const { project, seriesId } = await newSeries(db);
    await store(db, seriesId, [slice(FIRST, { listen: "1" }), slice(SECOND, { listen: "2", speak: "3", agent: "4" })]);
    const before = await rowVersions(db, seriesId);

    const changed = await store(db, seriesId, [
      slice(FIRST, { listen: "1" }),
      slice(SECOND, { listen: "2", speak: "30", agent: "4", read: "5" }),
    ]);

    expect(changed).toEqual({
      slices: [
        { day: FIRST, decision: "unchanged" },
        { day: SECOND, decision: "replace" },
      ],
      rowsChanged: 2,
    });
    expect(await shown(db, project)).toEqual({
      [FIRST]: { listen: "1" },
      [SECOND]: { agent: "4", listen: "2", read: "5", speak: "30" },
    });
    const after = await rowVersions(db, seriesId);
    const kept = after.filter((row) => before.some((old) => old.xmin === row.xmin && old.ctid === row.ctid));
    expect(kept).toHaveLength(3);
  });

  test("all seven metrics and the extra ones arrive as they were sent", async () => {
    const { project, seriesId } = await newSeries(db);
    const numbers = Object.fromEntries(METRICS.map((metric, i) => [metric, `900719925474099${i}.1234567890123456789`]));
    await store(db, seriesId, [
      rowsOn(FIRST, [
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

  test("a metric that appears and one that disappears are changes, and zero differs from no value", async () => {
    const { project, seriesId } = await newSeries(db);
    await store(db, seriesId, [rowsOn(FIRST, [rowOf("listen", { hours: "0" })])]);
    const changed = await store(db, seriesId, [rowsOn(FIRST, [rowOf("listen", { requests: "0" })])]);
    expect(changed.rowsChanged).toBe(1);
    expect(await view(db, "usage_by_endpoint", project)).toMatchObject([{ hours: null, requests: "0", revision: 2 }]);
  });

  test("any value of a group comes back as it was sent", async () => {
    const { project, seriesId } = await newSeries(db);
    const values = [
      "NULL",
      "null",
      "{}",
      "{a,b}",
      '"',
      "\\",
      "\\N",
      "',()",
      "a\nb",
      "é\u0301\u{1f600}",
      "x".repeat(100_000),
    ];
    await store(db, seriesId, [rowsOn(FIRST, [...values.map((value) => rowOf(value, "1")), rowOf(null, "2")])]);
    const rows = await view(db, "usage_by_endpoint", project);
    expect(new Set(rows.map(({ endpoint }) => endpoint))).toEqual(new Set([...values, null]));
  });

  test("a NUL in a group is kept and shown as JSON writes it", async () => {
    const { project, seriesId } = await newSeries(db);
    await store(db, seriesId, [rowsOn(FIRST, [rowOf("a\u0000b", "1"), rowOf("ab", "2")])]);
    expect(await shown(db, project)).toEqual({ [FIRST]: { ab: "2", "a\\u0000b": "1" } });
  });

  test("an answer that is stored again, because the acknowledgement of the COMMIT was lost, changes nothing", async () => {
    const { project, seriesId } = await newSeries(db);
    await store(db, seriesId, [slice(FIRST, { listen: "1", speak: "1" })]);
    const answer = { fetchNo: await nextFetchNo(db), runId: randomUUID() };
    await store(db, seriesId, [slice(FIRST, { listen: "2" })], answer);
    const before = await rowVersions(db, seriesId);

    const again = await store(db, seriesId, [slice(FIRST, { listen: "2" })], answer);

    expect(again).toEqual({ slices: [{ day: FIRST, decision: "unchanged" }], rowsChanged: 0 });
    expect(await rowVersions(db, seriesId)).toEqual(before);
    expect(await view(db, "restatements", project)).toHaveLength(2);
  });

  test("numbers that Postgres refuses leave everything as it was", async () => {
    const { project, seriesId } = await newSeries(db);
    await store(db, seriesId, [slice(FIRST, { listen: "1" })]);
    const refused = [slice(FIRST, { listen: "2" }), slice(SECOND, { listen: "-1" })];
    await expect(store(db, seriesId, refused)).rejects.toMatchObject({ code: "23514" });
    expect(await shown(db, project)).toEqual({ [FIRST]: { listen: "1" } });
    expect(await coverageOf(db, project)).toMatchObject([{ usage_date: FIRST, status: "complete" }]);
  });
}
