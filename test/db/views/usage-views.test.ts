import { sql } from "kysely";
import { expect, test } from "vitest";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import { type Dimension, USAGE_DIMENSIONS } from "../../../src/usage/dimensions.ts";
import type { Filter } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import {
  configured,
  daysBack,
  newProject,
  newSeries,
  rowOf,
  rowsOn,
  slice,
  store,
  total,
  view,
} from "../stored-usage.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";
const DIARIZED: Filter = { name: "diarized", features: { diarize: "true" }, dimensions: {} };

test("the total has one row for each project and day", async () => {
  const project = newProject();
  const [none, model] = [configured(project, "none"), configured(project, "model")];
  const ids = await registerSeries(db, [none, model]);
  const stored = [total(DAY, { hours: "1.5", requests: "3" })];
  await store(db, seriesIdOf(ids, none.series), stored, { grouping: "none" });
  await store(db, seriesIdOf(ids, model.series), [rowsOn(DAY, [rowOf("nova-3", "3", null, "model")])], {
    grouping: "model",
  });
  const rows = await view(db, "usage_total", project);
  expect(rows).toEqual([
    {
      project_id: project.id,
      project: project.name,
      usage_date: DAY,
      hours: "1.5",
      total_hours: null,
      agent_hours: null,
      tokens_in: null,
      tokens_out: null,
      tts_characters: null,
      requests: "3",
      extra_metrics: null,
      finality: "final",
      revision: 1,
      first_seen_at: expect.any(Date),
      last_changed_at: expect.any(Date),
    },
  ]);
});

test.each(USAGE_DIMENSIONS)("usage by %s has a column of that name, and shows that series only", async (dimension) => {
  const project = newProject();
  const all = USAGE_DIMENSIONS.map((one) => configured(project, one));
  const ids = await registerSeries(db, all);
  for (const { series } of all) {
    const grouping = USAGE_DIMENSIONS.find((one) => one === series.grouping) ?? dimension;
    await store(db, seriesIdOf(ids, series), [rowsOn(DAY, [rowOf(`a ${grouping}`, "1", null, grouping)])], {
      grouping,
    });
  }
  const rows = await view(db, `usage_by_${dimension}`, project);
  const shown = dimension === "tags" ? '["a tags"]' : `a ${dimension}`;
  expect(rows.map((row) => row[dimension])).toEqual([shown]);
});

test("usage by group has the rows of every view of one dimension, and neither the total nor filtered usage", async () => {
  const project = newProject();
  const all = [
    ...USAGE_DIMENSIONS.map((one) => configured(project, one)),
    configured(project, "none"),
    configured(project, "model", { filter: DIARIZED }),
  ];
  const ids = await registerSeries(db, all);
  for (const { series } of all) {
    const row =
      series.grouping === "none"
        ? total(DAY, { requests: "7" })
        : rowsOn(DAY, [rowOf("a value", "1", null, series.grouping)]);
    await store(db, seriesIdOf(ids, series), [row], { grouping: series.grouping });
  }
  const rows = await view(db, "usage_by_group", project);
  const shown = rows.map(({ grouping, group_value, lineage, requests }) => [grouping, group_value, lineage, requests]);
  const nameOf = (dimension: Dimension) => (dimension === "tags" ? '["a value"]' : "a value");
  const expected = USAGE_DIMENSIONS.map((one) => [one, nameOf(one), nameOf(one), "1"]);
  expect(shown.toSorted()).toEqual(expected.toSorted());
});

test.each<[Dimension, unknown, string | null]>([
  ["model", "nova-3", "nova-3"],
  ["model", ["nova-3"], "nova-3"],
  ["model", ["nova-3", "aura-2"], '["aura-2","nova-3"]'],
  ["feature_set", ["punctuate", "diarize"], '["diarize","punctuate"]'],
  ["tags", ["prod", "discovery"], '["discovery","prod"]'],
  ["tags", "prod", '["prod"]'],
])("%s %j is shown as %j", async (dimension, value, shown) => {
  const { project, seriesId } = await newSeries(db, dimension);
  await store(db, seriesId, [rowsOn(DAY, [rowOf(value, "1", null, dimension)])], { grouping: dimension });
  const rows = await view(db, `usage_by_${dimension}`, project);
  expect(rows.map((row) => row[dimension])).toEqual([shown]);
});

test("filtered usage is in its own view, and only there", async () => {
  const project = newProject();
  const [all, filtered] = [configured(project), configured(project, "endpoint", { filter: DIARIZED })];
  const ids = await registerSeries(db, [all, filtered]);
  await store(db, seriesIdOf(ids, all.series), [slice(DAY, { listen: "10" })]);
  await store(db, seriesIdOf(ids, filtered.series), [slice(DAY, { listen: "4" })]);

  expect((await view(db, "usage_by_endpoint", project)).map(({ requests }) => requests)).toEqual(["10"]);
  expect(await view(db, "usage_filtered", project)).toMatchObject([
    { grouping: "endpoint", filter: "diarized", group_value: "listen", requests: "4" },
  ]);
});

test("a filter without conditions is all usage, whatever its name", async () => {
  const { project, seriesId } = await newSeries(db, "none", {
    filter: { name: "everything", features: {}, dimensions: {} },
  });
  await store(db, seriesId, [total(DAY, { requests: "4" })], { grouping: "none" });
  expect(await view(db, "usage_total", project)).toHaveLength(1);
  expect(await view(db, "usage_filtered", project)).toEqual([]);
});

test("a reading while the day lasts leaves it open, and undated numbers are final when the day ends", async () => {
  const back = await daysBack(db);
  const { project, seriesId } = await newSeries(db, "none", { windowDays: 7 });
  await store(db, seriesId, [total(back(0), { requests: "1" })], { grouping: "none" });
  const undated = await newSeries(db, "none");
  await store(db, undated.seriesId, [{ ...total(back(0), { requests: "1" }), undated: true }], {
    grouping: "none",
    undated: "day",
  });
  const { rows } = await sql`
    select project_id, finality from bi.usage_as_of(${`${back(-1)}T01:00:00Z`}::timestamptz)
    where project_id in (${project.id}, ${undated.project.id})
  `.execute(db);
  expect(rows).toHaveLength(2);
  expect(rows).toEqual(
    expect.arrayContaining([
      { project_id: project.id, finality: "open" },
      { project_id: undated.project.id, finality: "final" },
    ]),
  );
});

const OVER = "2026-03-18T00:00:00Z";

test.each<[string, number | null, string | null, string, string]>([
  ["a day that is not over", 7, null, "2026-03-17T23:59:59Z", "open"],
  ["a day that is just over and was not read since", 7, null, OVER, "open"],
  ["a day that was last read before it ended, long ago", 7, null, "2027-01-01T00:00:00Z", "open"],
  ["a day that will be read after this moment", 7, "2026-03-18T02:00:00Z", "2026-03-18T01:00:00Z", "open"],
  ["a day that was read after it was over", 7, "2026-03-18T02:00:00Z", "2026-03-18T03:00:00Z", "settling"],
  [
    "a day at the end of the last day on which the window has it",
    7,
    "2026-03-18T02:00:00Z",
    "2026-03-24T23:59:59Z",
    "settling",
  ],
  ["a day that the window has left", 7, "2026-03-18T02:00:00Z", "2026-03-25T00:00:00Z", "final"],
  ["the only day of a window of one day", 1, OVER, OVER, "settling"],
  ["the only day of a window of one day, a day later", 1, OVER, "2026-03-19T00:00:00Z", "final"],
  ["a day that no window reads again", null, OVER, OVER, "final"],
  ["a day that no window reads again, not read since it ended", null, null, OVER, "open"],
])("%s: of a window of %s days, closed %s, at %s it is %s", async (_, windowDays, closedAt, at, finality) => {
  for (const zone of ["UTC", "Asia/Tokyo", "America/Los_Angeles"]) {
    const { rows } = await db.transaction().execute(async (tx) => {
      await sql`select set_config('timezone', ${zone}, true)`.execute(tx);
      return await sql`
        select usage_export.finality('2026-03-17', ${windowDays}::integer, ${closedAt}::timestamptz, ${at}::timestamptz)
      `.execute(tx);
    });
    expect(rows).toEqual([{ finality }]);
  }
});
