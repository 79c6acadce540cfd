// The values of a dimension that stored usage has, and the series that are registered for them.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { registerSeries, seriesIdOf, storedValues } from "../../../src/db/usage/stored-series.ts";
import type { Window } from "../../../src/usage/days.ts";
import { type Project, seenFilter } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { storeBills } from "../stored-charges.ts";
import { configured, daysBack, newProject, newSeries, rowOf, rowsOn, store } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAYS: Window = { start: "2026-03-16", end: "2026-03-18" };

/** By day, the requests of each set of tags. */
async function storeTags(days: Readonly<Record<string, readonly (readonly [unknown, string])[]>>): Promise<Project> {
  const { project, seriesId } = await newSeries(db, "tags");
  const slices = Object.entries(days).map(([day, sets]) =>
    rowsOn(
      day,
      sets.map(([tags, requests]) => rowOf(tags, requests, null, "tags")),
    ),
  );
  await store(db, seriesId, slices, { grouping: "tags", emptyGuard: "off", cliffGuard: "off" });
  return project;
}

test("each member of a group is a value, the most used first", async () => {
  const project = await storeTags({
    "2026-03-15": [[["earlier"], "99"]],
    "2026-03-16": [[["rare"], "1"]],
    "2026-03-17": [
      [["prod", "eu"], "5"],
      [["eu"], "2"],
      [["eu", null], "1"],
      [null, "50"],
      [["a\0b"], "50"],
    ],
    "2026-03-18": [[["prod"], "1"]],
    "2026-03-19": [[["later"], "99"]],
  });
  expect(await storedValues(db, [project.id], "tags", DAYS)).toEqual([
    { projectId: project.id, value: "eu", firstDay: "2026-03-17", lastRead: "2026-03-18" },
    { projectId: project.id, value: "prod", firstDay: "2026-03-17", lastRead: "2026-03-18" },
    { projectId: project.id, value: "rare", firstDay: "2026-03-16", lastRead: "2026-03-18" },
  ]);
});

test("a tag that only billing has is no value of usage", async () => {
  const project = await storeTags({ "2026-03-17": [[["eu"], "2"]] });
  await storeBills(db, project, ["tags"], DAYS, [{ day: "2026-03-17", tags: ["billed"], dollars: "1" }]);
  expect((await storedValues(db, [project.id], "tags", DAYS)).map(({ value }) => value)).toEqual(["eu"]);
});

test("a value that is seen again is due from its new first day on, and not on the days without it", async () => {
  const back = await daysBack(db);
  const project = newProject();
  const filter = seenFilter("accessor", "k1");
  const seenSince = (days: number) => ({
    ...configured(project, "model", { filter, windowDays: 7 }),
    dueDays: { start: back(days), end: back(1) },
  });
  const due = async () => {
    const { rows } = await sql`
      select to_char(usage_date, 'YYYY-MM-DD') as day, status from bi.coverage where project_id = ${project.id} order by 1
    `.execute(db);
    return rows;
  };
  const ids = await registerSeries(db, [seenSince(9)]);
  expect(await due()).toHaveLength(9);
  await store(db, seriesIdOf(ids, seenSince(9).series), [rowsOn(back(9), [rowOf("nova-3", "1", null, "model")])], {
    grouping: "model",
  });
  await registerSeries(db, []);
  expect(await due()).toEqual([{ day: back(9), status: "complete" }]);
  await registerSeries(db, [seenSince(2)]);
  expect(await due()).toEqual([
    { day: back(9), status: "complete" },
    { day: back(2), status: "missing" },
    { day: back(1), status: "missing" },
  ]);
  // As long as it is seen, the first day stays.
  await registerSeries(db, [seenSince(1)]);
  expect(await due()).toHaveLength(3);
});
