// Tests of recording failures. They run on a Postgres server and on the embedded database.

import { expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { coverageOf, newSeries, rowVersions, shown, slice, store, total as totalOf, view } from "../stored-usage.ts";

const FIRST = "2026-03-16";
const SECOND = "2026-03-17";

export function testFailures(db: Database): void {
  async function fail(seriesId: number, days: readonly string[], reason = "503 from the service", fetchNo?: number) {
    await recordFailure(db, { seriesId, days, reason, fetchNo: fetchNo ?? (await nextFetchNo(db)) });
  }

  test("a failure does not change the stored rows", async () => {
    const { project, seriesId } = await newSeries(db);
    await store(db, seriesId, [slice(FIRST, { listen: "1" })]);
    const before = await rowVersions(db, seriesId);
    const [read] = await view(db, "coverage", project);

    await fail(seriesId, [FIRST]);

    expect(await rowVersions(db, seriesId)).toEqual(before);
    expect(await shown(db, project)).toEqual({ [FIRST]: { listen: "1" } });
    expect(await view(db, "coverage", project)).toEqual([
      { ...read, status: "failed", error: "503 from the service", rows: 1 },
    ]);
  });

  test("a day shows the reason of its newest failure", async () => {
    const { project, seriesId } = await newSeries(db);
    await fail(seriesId, [FIRST], "first");
    await fail(seriesId, [FIRST], "second");
    expect(await coverageOf(db, project)).toMatchObject([{ error: "second" }]);
  });

  test("a reason is stored without NUL, and cut to at most 1,000 characters", async () => {
    const { project, seriesId } = await newSeries(db);
    await fail(seriesId, [FIRST], `a\u0000b ${"😀".repeat(2_000)}`);
    const [row] = await coverageOf(db, project);
    expect(String(row?.error)).toMatch(/^ab 😀+/u);
    expect(String(row?.error).length).toBeLessThanOrEqual(1_000);
  });

  test("without a window, the days that the answers name are due", async () => {
    const { project, seriesId } = await newSeries(db, "none");
    const own = { grouping: "none", serviceChoosesDays: true } as const;
    await store(db, seriesId, [totalOf(FIRST, { requests: "1" }), totalOf(SECOND, { requests: "2" })], own);
    expect(await view(db, "freshness", project)).toMatchObject([
      { due_from: FIRST, due_through: SECOND, fresh_through: SECOND },
    ]);
  });

  test("without a window, the next answer ends a failure, even if it names only earlier days", async () => {
    const { project, seriesId } = await newSeries(db, "none");
    const own = { grouping: "none", serviceChoosesDays: true } as const;
    await store(db, seriesId, [totalOf(FIRST, { requests: "1" })], own);
    // A run on the 18th reads the 17th, but this is not known without an answer.
    await fail(seriesId, ["2026-03-18"]);
    expect(await view(db, "coverage_gaps", project)).toHaveLength(1);
    await store(db, seriesId, [totalOf(SECOND, { requests: "2" })], own);
    expect((await coverageOf(db, project)).map(({ usage_date, status }) => [usage_date, status])).toEqual([
      [FIRST, "complete"],
      [SECOND, "complete"],
    ]);
  });

  test("if undated answers count as days, the failure of a day ends only with an answer of the same day", async () => {
    const { project, seriesId } = await newSeries(db, "none");
    const undated = (day: string) => ({ ...totalOf(day, { requests: "1" }), undated: true });
    const own = { grouping: "none", serviceChoosesDays: true, undated: "day" } as const;
    await store(db, seriesId, [undated("2026-03-15")], own);
    await fail(seriesId, [FIRST]);
    await fail(seriesId, [SECOND]);
    await store(db, seriesId, [undated(SECOND)], own);
    expect((await coverageOf(db, project)).map(({ usage_date, status }) => [usage_date, status])).toEqual([
      ["2026-03-15", "complete"],
      [FIRST, "failed"],
      [SECOND, "complete"],
    ]);
  });

  test("without a window, a missed day between two answers is a gap", async () => {
    const { project, seriesId } = await newSeries(db, "none");
    const own = { grouping: "none", serviceChoosesDays: true } as const;
    await store(db, seriesId, [totalOf("2026-03-15", { requests: "1" })], own);
    await store(db, seriesId, [totalOf(SECOND, { requests: "1" })], own);
    expect(await view(db, "coverage_gaps", project)).toMatchObject([
      { from_date: FIRST, to_date: FIRST, status: "missing" },
    ]);
  });
}
