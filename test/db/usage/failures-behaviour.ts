// Tests of recording failures. They run on a Postgres server and on the embedded database.

import { expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import type { Project } from "../../../src/usage/series.ts";
import { coverageOf, failOn, newSeries, nextFetchNo, store, total, view } from "../stored-usage.ts";

const THE_16TH = "2026-03-16";
const THE_17TH = "2026-03-17";
/** The request had no window, so the service chose the days. */
const NO_WINDOW = { serviceChoosesDays: true } as const;

export function testFailures(db: Database): void {
  const statuses = async (project: Project) =>
    (await coverageOf(db, project)).map(({ usage_date, status }) => [usage_date, status]);

  test("a day shows at most 1,000 characters of its newest failure's reason", async () => {
    const { project, seriesId } = await newSeries(db);
    await failOn(db, seriesId, [THE_16TH], { reason: "first" });
    await failOn(db, seriesId, [THE_16TH], { reason: `a\u0000b ${"😀".repeat(2_000)}` });
    const [row] = await coverageOf(db, project);
    expect(String(row?.error)).toMatch(/^ab 😀+/u);
    expect(String(row?.error).length).toBeLessThanOrEqual(1_000);
    // A gap has the reason of its newest day.
    await failOn(db, seriesId, [THE_17TH], { reason: "of the second day" });
    expect(await view(db, "coverage_gaps", project)).toMatchObject([
      { from_date: THE_16TH, to_date: THE_17TH, error: "of the second day" },
    ]);
  });

  test("a failed fetch changes no day that a later fetch has answered, even if that answer is in doubt", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { usage: { [THE_16TH]: { listen: "1" } } });
    const fetchNo = await nextFetchNo(db);
    await store(db, seriesId, { [THE_16TH]: {}, [THE_17TH]: { listen: "1" } });
    await failOn(db, seriesId, [THE_16TH, THE_17TH], { fetchNo });
    expect(await statuses(project)).toEqual([
      [THE_16TH, "suspect"],
      [THE_17TH, "complete"],
    ]);
  });

  test("without a window, a missed day between two answers is due and a gap", async () => {
    const { project, seriesId } = await newSeries(db, "none");
    const due = async () =>
      (await view(db, "freshness", project)).map((row) => [row.due_from, row.due_through, row.fresh_through]);
    await store(db, seriesId, { "2026-03-15": { requests: "1" } }, NO_WINDOW);
    await store(db, seriesId, { [THE_17TH]: { requests: "1" } }, NO_WINDOW);
    expect(await due()).toEqual([["2026-03-15", THE_17TH, "2026-03-15"]]);
    expect(await view(db, "coverage_gaps", project)).toMatchObject([
      { from_date: THE_16TH, to_date: THE_16TH, status: "missing" },
    ]);
    await store(db, seriesId, { [THE_16TH]: { requests: "1" } }, NO_WINDOW);
    expect(await due()).toEqual([["2026-03-15", THE_17TH, THE_17TH]]);
  });

  test("without a window, the next answer removes a failure, even if it names only earlier days", async () => {
    const { project, seriesId } = await newSeries(db, "none");
    await store(db, seriesId, { [THE_16TH]: { requests: "1" } }, NO_WINDOW);
    // The request on the 18th fails. Its answer would have said which day is the newest, so the day of the run counts as failed.
    await failOn(db, seriesId, ["2026-03-18"]);
    expect(await view(db, "coverage_gaps", project)).toHaveLength(1);
    await store(db, seriesId, { [THE_17TH]: { requests: "2" } }, NO_WINDOW);
    expect(await statuses(project)).toEqual([
      [THE_16TH, "complete"],
      [THE_17TH, "complete"],
    ]);
  });

  test("if an undated answer counts for its own day, it ends only the failure of that day", async () => {
    const { project, seriesId } = await newSeries(db, "none");
    const storeUndated = (day: string) =>
      store(db, seriesId, [{ ...total(day, { requests: "1" }), undated: true }], { ...NO_WINDOW, undated: "day" });
    await storeUndated("2026-03-15");
    await failOn(db, seriesId, [THE_16TH]);
    await failOn(db, seriesId, [THE_17TH]);
    await storeUndated(THE_17TH);
    expect(await statuses(project)).toEqual([
      ["2026-03-15", "complete"],
      [THE_16TH, "failed"],
      [THE_17TH, "complete"],
    ]);
  });
}
