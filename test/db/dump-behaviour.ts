// Tests of dumping views: all views, the order of their rows, and ranges of days. Run on each kind of database.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Database } from "../../src/db/connection/database.ts";
import { readAtOneMoment } from "../../src/db/connection/transaction.ts";
import { type DayChoice, listViews, readViewRows } from "../../src/db/dump.ts";
import type { Day } from "../../src/usage/days.ts";
import { newProject, newSeries, rowOf, sliceOn, store } from "./stored-usage.ts";

/** The rows of a view as objects of JSON texts. The session has another time zone and date style, which must not change the dump. */
export async function dumped(db: Database, name: string, range: DayChoice = {}) {
  return readAtOneMoment(db, async (tx) => {
    await sql`select set_config('timezone', 'Asia/Tokyo', true), set_config('datestyle', 'German', true)`.execute(tx);
    const view = (await listViews(tx)).find((one) => one.name === name);
    if (!view) throw new Error(`no view ${name}`);
    const batches = await Array.fromAsync(readViewRows(tx, view, range));
    return batches.flat().map((row) => Object.fromEntries(view.columns.map((column, at) => [column.name, row[at]])));
  });
}

const json = JSON.stringify;

export function testDump(db: Database): void {
  test("a value is dumped as JSON with every digit", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint");
    const hours = "123456789012345678901234567890.000000000000000000000000000001";
    const row = rowOf("listen", { hours, requests: "1000000000000000000000" }, '{"agents":0.10,"z":-1}');
    await store(db, seriesId, [sliceOn("2026-03-17", [row])]);
    const rows = await dumped(db, "usage_by_endpoint");
    const moment = expect.stringMatching(/^"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*\+00:00"$/);
    expect(rows.filter((one) => one.project_id === json(project.id))).toMatchObject([
      {
        ...{ project: json(project.name), usage_date: '"2026-03-17"', endpoint: '"listen"', hours, total_hours: null },
        ...{ requests: "1000000000000000000000", extra_metrics: '{"z": -1, "agents": 0.10}', revision: "1" },
        ...{ finality: '"final"', first_seen_at: moment, last_changed_at: moment },
      },
    ]);
  });

  test("rows are sorted by project, day and text, independently of any locale", async () => {
    const [a, b] = [newProject(), newProject()].sort((one, other) => (one.id < other.id ? -1 : 1));
    for (const project of [b, a]) {
      if (!project) continue;
      const values = ["b", "é", "Z", "a", null].map((value) => [value, "1"] as const);
      await newSeries(db, "endpoint", { project, usage: { "2026-03-18": values, "2026-03-17": { z: "1" } } });
    }
    const rows = await dumped(db, "usage_by_endpoint");
    const found = rows.filter(({ project_id: id }) => id === json(a?.id) || id === json(b?.id));
    expect(found.map(({ project_id: id, usage_date: day, endpoint }) => [id, day, endpoint])).toEqual(
      [json(a?.id), json(b?.id)].flatMap((id) => [
        [id, '"2026-03-17"', '"z"'],
        ...['"Z"', '"a"', '"b"', '"é"', null].map((value) => [id, '"2026-03-18"', value]),
      ]),
    );
  });

  const days: readonly Day[] = ["2026-03-16", "2026-03-17", "2026-03-18"];
  test.each([
    [{}, days],
    [{ from: "2026-03-17" }, days.slice(1)],
    [{ to: "2026-03-17" }, days.slice(0, 2)],
    [{ from: "2026-03-17", to: "2026-03-17" }, days.slice(1, 2)],
    [{ from: "2026-03-19" }, []],
  ])("a range of days includes both of its ends: %j", async (range, expected) => {
    const usage = Object.fromEntries(days.map((day) => [day, {}]));
    const { project } = await newSeries(db, "none", { usage });
    const rows = await dumped(db, "coverage", range);
    expect(rows.filter((row) => row.project_id === json(project.id)).map((row) => row.usage_date)).toEqual(
      expected.map((day) => json(day)),
    );
  });

  test("every view can be dumped, whatever rows it has", async () => {
    const views = await readAtOneMoment(db, listViews);
    expect(views.length).toBeGreaterThan(15);
    for (const { name } of views) await dumped(db, name);
  });
}
