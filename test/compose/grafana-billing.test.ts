// The dashboards on a database with usage, before and after billing is read as well.

import { expect, test } from "vitest";
import { testDatabase } from "../support/database.ts";
import { firstChoices, openReader } from "./asking.ts";
import { DASHBOARDS, QUERIES } from "./dashboards.ts";
import { storeBilling, storeSample } from "./stored-sample.ts";

const database = await testDatabase();
const sample = await storeSample(database.db);
const reader = await openReader(database.url, { from: sample.from, to: new Date() });

const ofUsage = QUERIES.filter(({ of }) => of.uid !== "usage-export-trust");
const marks = DASHBOARDS.flatMap((of) =>
  of.annotations.list.map(({ name, target: { rawSql } }) => ({ name, of, rawSql })),
);
const before: unknown[] = [];
for (const query of [...ofUsage, ...marks]) before.push(await reader.open(query));
await storeBilling(database.db, sample);

const [project] = sample.projects;
const seriesOf = (...parts: readonly string[]) => JSON.stringify([project?.id, ...parts]);

async function rowsOf(title: string, series?: string) {
  const query = QUERIES.find(({ panel }) => panel.title === title);
  if (!query) throw new Error(`there is no panel ${title}`);
  const values = firstChoices(query.of, await reader.optionsOf(query.of));
  const { rows } = await reader.ask(query.rawSql, series === undefined ? values : { ...values, series });
  return rows;
}

test("billing changes nothing that is shown about usage", async () => {
  expect(ofUsage.length).toBeGreaterThan(0);
  for (const [i, query] of [...ofUsage, ...marks].entries()) {
    expect([query.name, await reader.open(query)]).toEqual([query.name, before[i]]);
  }
});

test.each(QUERIES)("$name answers with rows", async (query) => {
  expect((await reader.open(query)).rows.length).toBeGreaterThan(0);
});

test("billing has lines of its own in the chart of coverage", async () => {
  const rows = await rowsOf("Coverage by series and day");
  expect(new Set(rows.map(({ time, metric }) => `${time} ${metric}`)).size).toBe(rows.length);
  const ofProject = rows.filter(({ metric }) => metric === `${project?.name} / billing / none / all`);
  expect(ofProject.map(({ status }) => status)).toEqual(["4", "4", "0", "0", "3", "0"]);
});

test.each(["Freshness", "Gaps"])("%s names the source", async (title) => {
  expect(new Set((await rowsOf(title)).map(({ source }) => source))).toEqual(new Set(["usage", "billing"]));
});

test("the changed numbers of a series are those of its source", async () => {
  const changed = async (source: string) =>
    (await rowsOf("Numbers that changed", seriesOf("none", "all", source))).map((row) => [
      row.metric,
      row.unit,
      Number(row.new_value),
    ]);
  expect(await changed("billing")).toEqual([["dollars", "dollars", 1.5]]);
  expect((await changed("usage")).map(([metric]) => metric)).not.toContain("dollars");
  expect((await changed("usage")).length).toBeGreaterThan(0);
});
