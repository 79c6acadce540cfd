// Restatements of stored numbers, and what the views showed at a moment in the past.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Filter, Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { DIARIZED, storeSeries } from "../reported-usage.ts";
import { billed } from "../stored-billing.ts";
import {
  configured,
  daysBack,
  newProject,
  newSeries,
  register,
  rowOf,
  sliceOn,
  store,
  textsOf,
  type ViewRow,
  view,
} from "../stored-usage.ts";

const { db, read } = await testDatabase();
const back = await daysBack(db);

const DAY = "2026-03-17";

/** The database's time, as text because a Date has no microseconds. */
async function moment(): Promise<string> {
  const [row] = await read(sql<{ now: string }>`select clock_timestamp()::text as now`);
  return row?.now ?? "";
}

const asOf = (at: string, { id }: Project) =>
  read(sql<ViewRow>`select * from bi.usage_as_of(${at}::timestamptz) u where project_id = ${id} order by u::text`);

/** The restatements after these readings of DAY, one after the other. */
async function restated(...readings: Parameters<typeof store>[2][]): Promise<readonly ViewRow[]> {
  const { project, seriesId } = await newSeries(db);
  for (const reading of readings) await store(db, seriesId, reading);
  return view(db, "restatements", project);
}

test("a changed number is one restatement, with its old value, its new value and how many days late it came", async () => {
  const { project, seriesId } = await newSeries(db);
  await store(db, seriesId, { [back(3)]: { listen: { hours: "1", requests: "5" } } });
  expect(await view(db, "restatements", project)).toEqual([]);
  await store(db, seriesId, { [back(3)]: { listen: { hours: "1.25", requests: "5" } } });
  const number = { usage_date: back(3), group_value: "listen", metric: "hours", old_value: "1", new_value: "1.25" };
  expect(await view(db, "restatements", project)).toMatchObject([
    { ...number, grouping: "endpoint", filter: "all", kind: "changed", revision: 2, days_late: 3, source: "usage" },
  ]);
});

test("only a changed billed amount is a restatement", async () => {
  const { project, seriesId } = await newSeries(db, "line_item,tags", { source: "billing" });
  const group = { line_item: "sync::aura-2", tags: ["prod"] };
  for (const dollars of ["0.1", "0.10", "0.30"])
    await store(db, seriesId, [billed(DAY, "line_item,tags", [[dollars, group]])]);
  expect(await view(db, "restatements", project)).toMatchObject([
    {
      ...{ source: "billing", grouping: "line_item,tags", group_value: JSON.stringify(group), kind: "changed" },
      ...{ metric: "dollars", old_value: "0.1", new_value: "0.3", revision: 2 },
    },
  ]);
});

test("a group restates its numbers when it appears, even on an empty day, disappears and comes back", async () => {
  const [one, both, again] = [{ listen: "1" }, { listen: "1", speak: "2" }, { listen: "1", speak: "3" }];
  const rows = await restated({ [DAY]: {} }, { [DAY]: one }, { [DAY]: both }, { [DAY]: one }, { [DAY]: again });
  expect(textsOf(rows, "kind group_value metric old_value new_value revision").toSorted()).toEqual([
    "appeared listen requests null 1 1",
    "appeared speak requests null 2 1",
    "appeared speak requests null 3 3",
    "gone speak requests 2 null 2",
  ]);
});

test("a metric that appears or disappears is a restatement of that metric only", async () => {
  const rows = await restated(
    { [DAY]: { listen: { hours: "0", requests: "1" } } },
    { [DAY]: { listen: { tokens_in: "0", requests: "1" } } },
  );
  expect(rows.map((row) => [row.metric, row.old_value, row.new_value])).toEqual([
    ["hours", "0", null],
    ["tokens_in", null, "0"],
  ]);
});

test("changed extra metrics are one restatement, with the whole objects before and after", async () => {
  const [before, after] = [{ credits: 1 }, { credits: 2, minutes: 3 }];
  const rows = await restated(
    ...[before, after].map((extra) => [sliceOn(DAY, [rowOf("listen", "1", JSON.stringify(extra))])]),
  );
  expect(rows).toMatchObject([
    {
      ...{ metric: "extra_metrics", old_value: null, new_value: null },
      ...{ old_extra_metrics: before, new_extra_metrics: after },
    },
  ]);
});

test("at the present moment bi.usage_as_of shows what the other views show, in every column and for every series", async () => {
  const project = newProject();
  const endpoint = (requests: string) => ({ [back(2)]: { listen: requests } });
  const storeAll = (requests: string) =>
    storeSeries(db, [
      { project, grouping: "none", usage: { [back(0)]: { requests } } },
      { project, grouping: "endpoint", usage: endpoint(requests) },
      { project, grouping: "endpoint", filter: DIARIZED, usage: endpoint(requests) },
    ]);
  await storeAll("1");
  await storeAll("2");
  const columns = `project_id, project, usage_date, hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters,
    requests, extra_metrics, finality, revision, first_seen_at, last_changed_at`;
  const rows = await read(sql`
    select ${sql.raw(columns)}, 'none' as grouping, 'all' as filter, null as group_value from bi.usage_total
      where project_id = ${project.id}
    union all
    select ${sql.raw(columns)}, 'endpoint', 'all', endpoint from bi.usage_by_endpoint where project_id = ${project.id}
    union all
    select ${sql.raw(columns)}, "grouping", filter, group_value from bi.usage_filtered where project_id = ${project.id}
  `);
  const shown = await asOf(await moment(), project);
  expect(shown).toHaveLength(3);
  expect(shown).toEqual(expect.arrayContaining([...rows]));
});

test("bi.usage_as_of shows a day as open at a moment before its end, whatever its finality now", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { usage: { [back(1)]: { listen: "1" } } });
  await sql`
    update usage_export.slice_row set last_changed_at = ${`${back(1)}T12:00:00Z`}::timestamptz where series_id = ${seriesId}
  `.execute(db);
  const anHourLater = `${back(1)}T13:00:00Z`;
  expect(await asOf(anHourLater, project)).toMatchObject([{ finality: "open" }]);
  expect(await asOf(await moment(), project)).toMatchObject([{ finality: "final" }]);
});

const narrowTo = (endpoint: string): Filter => ({ name: "narrow", features: {}, dimensions: { endpoint } });

test("bi.usage_as_of shows a filter with the conditions that it had at the moment", async () => {
  const project = newProject();
  const moments: string[] = [];
  for (const [i, endpoint] of ["listen", "speak", "listen"].entries()) {
    const usage = { [DAY]: { [endpoint]: String(i + 1) } };
    await newSeries(db, "endpoint", { project, filter: narrowTo(endpoint), usage });
    moments.push(await moment());
  }
  const shown = await Promise.all(moments.map((at) => asOf(at, project)));
  expect(shown.flatMap((rows) => textsOf(rows, "usage_date group_value requests revision"))).toEqual([
    `${DAY} listen 1 1`,
    `${DAY} speak 2 1`,
    `${DAY} listen 3 2`,
  ]);
});

test("bi.usage_as_of shows a filter under the name that it had at the moment, with the newest revision then", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { filter: narrowTo("listen") });
  for (const requests of ["1", "2"]) await store(db, seriesId, { [DAY]: { listen: requests } });
  const then = await moment();
  await register(db, configured(project, "endpoint", { filter: { ...narrowTo("listen"), name: "listening" } }));
  const names = async (at: string) => (await asOf(at, project)).map((row) => row.filter);
  expect(await names(then)).toEqual(["narrow"]);
  expect(await names(await moment())).toEqual(["listening"]);
});
