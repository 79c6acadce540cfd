// Restatements of stored numbers, and what the views showed at a moment in the past.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import type { Filter, Project } from "../../../src/usage/series.ts";
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
  type ViewRow,
  view,
} from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

const DAY = "2026-03-17";

/** As text, because a Date has no microseconds. */
async function moment(on: Database = db): Promise<string> {
  const { rows } = await sql<{ now: string }>`select clock_timestamp()::text as now`.execute(on);
  return rows[0]?.now ?? "";
}

async function asOf(at: string, { id }: Project): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`
    select * from bi.usage_as_of(${at}::timestamptz) u where project_id = ${id} order by u::text
  `.execute(db);
  return rows;
}

const requestsAsOf = async (at: string, project: Project) =>
  (await asOf(at, project)).map((row) => `${row.usage_date} ${row.group_value} ${row.requests} r${row.revision}`);

test("the first reading of a day restates nothing", async () => {
  const { project, seriesId } = await newSeries(db);
  await store(db, seriesId, [slice(DAY, { listen: "1" })]);
  expect(await view(db, "restatements", project)).toEqual([]);
});

test("a changed number is one restatement, with its old value, its new value and how many days late it came", async () => {
  const { project, seriesId } = await newSeries(db);
  await store(db, seriesId, [rowsOn(back(3), [rowOf("listen", { hours: "1", requests: "5" })])]);
  await store(db, seriesId, [rowsOn(back(3), [rowOf("listen", { hours: "1.25", requests: "5" })])]);
  expect(await view(db, "restatements", project)).toEqual([
    {
      project_id: project.id,
      project: project.name,
      grouping: "endpoint",
      filter: "all",
      usage_date: back(3),
      group_value: "listen",
      kind: "changed",
      metric: "hours",
      old_value: "1",
      new_value: "1.25",
      old_extra_metrics: null,
      new_extra_metrics: null,
      revision: 2,
      seen_at: expect.any(Date),
      days_late: 3,
      source: "usage",
    },
  ]);
});

test("a group that appears, disappears and comes back restates its numbers each time", async () => {
  const { project, seriesId } = await newSeries(db);
  await store(db, seriesId, [slice(DAY, { listen: "1" })]);
  for (const groups of [{ listen: "1", speak: "2" }, { listen: "1" }, { listen: "1", speak: "3" }]) {
    await store(db, seriesId, [slice(DAY, groups)]);
  }
  const rows = await view(db, "restatements", project);
  expect(
    rows.map((row) => [row.kind, row.group_value, row.metric, row.old_value, row.new_value, row.revision]),
  ).toEqual(
    expect.arrayContaining([
      ["appeared", "speak", "requests", null, "2", 1],
      ["gone", "speak", "requests", "2", null, 2],
      ["appeared", "speak", "requests", null, "3", 3],
    ]),
  );
  expect(rows).toHaveLength(3);
});

test("rows of a day that was empty before are restatements", async () => {
  const { project, seriesId } = await newSeries(db);
  await store(db, seriesId, [slice(DAY, {})]);
  await store(db, seriesId, [slice(DAY, { listen: "1" })]);
  expect(await view(db, "restatements", project)).toMatchObject([{ kind: "appeared", new_value: "1" }]);
});

test("a metric that appears or disappears is a restatement of that metric only", async () => {
  const { project, seriesId } = await newSeries(db);
  await store(db, seriesId, [rowsOn(DAY, [rowOf("listen", { hours: "0", requests: "1" })])]);
  await store(db, seriesId, [rowsOn(DAY, [rowOf("listen", { tokens_in: "0", requests: "1" })])]);
  const rows = await view(db, "restatements", project);
  expect(rows.map((row) => [row.metric, row.old_value, row.new_value])).toEqual([
    ["hours", "0", null],
    ["tokens_in", null, "0"],
  ]);
});

test("changed extra metrics are one restatement, with the whole objects before and after", async () => {
  const { project, seriesId } = await newSeries(db);
  await store(db, seriesId, [rowsOn(DAY, [rowOf("listen", "1", '{"credits":1}')])]);
  await store(db, seriesId, [rowsOn(DAY, [rowOf("listen", "1", '{"credits":2,"minutes":3}')])]);
  expect(await view(db, "restatements", project)).toMatchObject([
    {
      metric: "extra_metrics",
      old_value: null,
      new_value: null,
      old_extra_metrics: { credits: 1 },
      new_extra_metrics: { credits: 2, minutes: 3 },
    },
  ]);
});

test("bi.usage_as_of shows for the present what the views show, in every column and for every series", async () => {
  const project = newProject();
  const filter = { name: "diarized", features: { diarize: "true" }, dimensions: {} };
  const all = [configured(project, "none"), configured(project), configured(project, "endpoint", { filter })];
  const ids = await registerSeries(db, all);
  for (const requests of ["1", "2"]) {
    for (const { series } of all) {
      const stored = series.grouping === "none" ? total(back(0), { requests }) : slice(back(2), { listen: requests });
      await store(db, seriesIdOf(ids, series), [stored], { grouping: series.grouping });
    }
  }
  const columns = `project_id, project, usage_date, hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters,
    requests, extra_metrics, finality, revision, first_seen_at, last_changed_at`;
  const { rows } = await sql`
    select ${sql.raw(columns)}, 'none' as grouping, 'all' as filter, null as group_value from bi.usage_total
      where project_id = ${project.id}
    union all
    select ${sql.raw(columns)}, 'endpoint', 'all', endpoint from bi.usage_by_endpoint where project_id = ${project.id}
    union all
    select ${sql.raw(columns)}, "grouping", filter, group_value from bi.usage_filtered where project_id = ${project.id}
  `.execute(db);
  const then = await asOf(await moment(), project);
  expect(then).toHaveLength(3);
  expect(then).toEqual(expect.arrayContaining(rows));
});

test("bi.usage_as_of shows a day as open at a moment before its end, whatever its finality now", async () => {
  const { project, seriesId } = await newSeries(db);
  await store(db, seriesId, [slice(back(1), { listen: "1" })]);
  const { rows } = await sql`
    with moved as (
      update usage_export.snapshot_row set last_changed_at = ${`${back(1)}T12:00:00Z`}::timestamptz
      where series_id = ${seriesId} returning 1
    ) select count(*)::integer as moved from moved
  `.execute(db);
  expect(rows).toEqual([{ moved: 1 }]);
  const noon = `${back(1)}T13:00:00Z`;
  expect(await asOf(noon, project)).toMatchObject([{ finality: "open" }]);
  expect(await asOf(await moment(), project)).toMatchObject([{ finality: "final" }]);
});

test("bi.usage_as_of shows a filter with the conditions that it had at the moment, and nothing twice", async () => {
  const { seriesId, series, project } = await newSeries(db, "endpoint", { filter: narrowTo("listen") });
  await store(db, seriesId, [slice(DAY, { listen: "1" })]);
  const first = await moment();
  const between = configured(project, "endpoint", { filter: narrowTo("speak") });
  const ids = await registerSeries(db, [between]);
  await store(db, seriesIdOf(ids, between.series), [slice(DAY, { speak: "2" })]);
  const second = await moment();
  await registerSeries(db, [{ series, windowDays: undefined }]);
  await store(db, seriesId, [slice(DAY, { listen: "3" })]);
  const third = await moment();

  expect(await requestsAsOf(first, project)).toEqual([`${DAY} listen 1 r1`]);
  expect(await requestsAsOf(second, project)).toEqual([`${DAY} speak 2 r1`]);
  expect(await requestsAsOf(third, project)).toEqual([`${DAY} listen 3 r2`]);
});

test("bi.usage_as_of shows a filter under the name that it had at the moment", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { filter: narrowTo("listen") });
  await store(db, seriesId, [slice(DAY, { listen: "1" })]);
  const then = await moment();
  await registerSeries(db, [configured(project, "endpoint", { filter: { ...narrowTo("listen"), name: "listening" } })]);

  const names = async (at: string) => (await asOf(at, project)).map((row) => row.filter);
  expect(await names(then)).toEqual(["narrow"]);
  expect(await names(await moment())).toEqual(["listening"]);
});

function narrowTo(endpoint: string): Filter {
  return { name: "narrow", features: {}, dimensions: { endpoint } };
}
