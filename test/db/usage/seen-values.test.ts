import { expect, test } from "vitest";
import { storedValues } from "../../../src/db/usage/stored-series.ts";
import { DIMENSIONS_OF, SOURCES } from "../../../src/usage/dimensions.ts";
import { normalise } from "../../../src/usage/normalise.ts";
import { testDatabase } from "../../support/database.ts";
import { ALL_USAGE, sampleRow } from "../../usage/sample-request.ts";
import { configured, failOn, newProject, newSeries, register, store, UNGUARDED, view } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";
const WINDOW = { start: DAY, end: DAY };

test("a large project's values with more usage do not displace those of a small project", async () => {
  const [large, small] = [newProject(), newProject()];
  const filter = { ...ALL_USAGE, name: "sync", dimensions: { method: "sync" } };
  const filtered = configured(small, "accessor", { filter });
  const all = [configured(large, "accessor"), configured(small, "accessor"), filtered] as const;
  const [largeId, smallId, filteredId] = await register(db, ...all);
  const keys = Array.from({ length: 5_001 }, (_, i): [string, string] => [`key ${i}`, "1000"]);
  await store(db, largeId, { [DAY]: keys });
  await store(db, smallId, { [DAY]: { rarely: "1", often: "2" } });
  // Filtered usage is part of all usage, so it is not counted again.
  await store(db, filteredId, { [DAY]: { rarely: "2" } });
  const values = await storedValues(db, [large.id, small.id], { dimension: "accessor", atMost: 50 }, WINDOW);
  expect(values.find(({ projectId }) => projectId === large.id)).toMatchObject({ valueCount: 5_001 });
  // For each project `atMost` values are read, and some spare ones.
  expect(values.length).toBeLessThan(1_000);
  const ofSmall = values.filter(({ projectId }) => projectId === small.id);
  expect(ofSmall.map(({ value }) => value)).toEqual(["often", "rarely"]);
});

test("each tag of a set is a value, with its first day in the window", async () => {
  const usage = {
    "2026-03-15": [[["earlier"], "99"]],
    "2026-03-16": [[["rare"], "1"]],
    [DAY]: [
      [["prod", "eu"], "5"],
      [["eu"], "2"],
      [["eu", null], "1"],
      // Neither of these can be a filter's value.
      [null, "50"],
      [["a\0b"], "50"],
    ],
    "2026-03-18": [
      [["prod"], "1"],
      [["rare"], "1"],
    ],
    "2026-03-20": [[["later"], "99"]],
  } as const;
  const { project, seriesId } = await newSeries(db, "tags");
  await store(db, seriesId, usage, UNGUARDED);
  await failOn(db, seriesId, ["2026-03-19"]);
  const days = { start: "2026-03-16", end: "2026-03-19" };
  const read = { projectId: project.id, readUntil: "2026-03-18", valueCount: 3 };
  expect(await storedValues(db, [project.id], { dimension: "tags", atMost: 50 }, days)).toEqual([
    { ...read, value: "eu", firstDay: DAY },
    { ...read, value: "prod", firstDay: DAY },
    { ...read, value: "rare", firstDay: "2026-03-16" },
  ]);
});

const FORMS_OF_NO_VALUE = [null, undefined, [], "", [""], [null], ["", null]];
const CASES = SOURCES.flatMap((source) => DIMENSIONS_OF[source].map((dimension) => [source, dimension] as const));

test.each(CASES)("in %s by %s, every form of no value becomes one group, NULL", async (source, dimension) => {
  const { project, series, seriesId } = await newSeries(db, dimension, { source });
  const name = source === "billing" ? "cost_by_group" : `usage_by_${dimension}`;
  const decisions = [];
  for (const form of FORMS_OF_NO_VALUE) {
    const row = (value: unknown, amount: number) =>
      sampleRow(DAY, value === undefined ? {} : { [dimension]: value }, { requests: amount, dollars: amount });
    const results = [row(form, 3), row("hosted", 5)];
    const answer = normalise({ series, window: WINDOW }, { ...WINDOW, results }, "2026-03-18");
    const { slices } = await store(db, seriesId, answer.slices);
    decisions.push(...slices.map(({ decision }) => decision));
    const rows = (await view(db, name, project)).map((row) => [row[dimension], row.requests ?? row.amount]);
    expect(rows).toHaveLength(2);
    expect(rows).toContainEqual([null, "3"]);
  }
  expect(new Set(decisions.slice(1))).toEqual(new Set(["unchanged"]));
});
