// Tests of registering series and storing their due days. They run on a Postgres server and on the embedded database.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { markDue, registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import type { Day } from "../../../src/usage/days.ts";
import type { Filter } from "../../../src/usage/series.ts";
import { configured, newProject, newSeries, shown, slice, store, view } from "../stored-usage.ts";

const DAY = "2026-03-17";
const LISTEN: Filter = { name: "narrow", features: {}, dimensions: { endpoint: "listen" } };
const SPEAK: Filter = { name: "narrow", features: {}, dimensions: { endpoint: "speak" } };

export function testSeries(db: Database): void {
  test("a series that is not registered has no id", async () => {
    const ids = await registerSeries(db, []);
    expect(() => seriesIdOf(ids, configured(newProject()).series)).toThrow("is not registered");
  });

  test("stored numbers are shown under a new name of their project or filter", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { filter: LISTEN });
    await store(db, seriesId, [slice(DAY, { listen: "1" })]);

    const renamed = { id: project.id, name: "renamed" };
    await registerSeries(db, [configured(renamed, "endpoint", { filter: { ...LISTEN, name: "listening" } })]);

    expect(await view(db, "usage_filtered", project)).toMatchObject([
      { project: "renamed", filter: "listening", requests: "1" },
    ]);
  });

  test("what is no longer read of a project is shown under its new name", async () => {
    const project = newProject();
    const both = [configured(project, "endpoint"), configured(project, "none")];
    const ids = await registerSeries(db, both);
    for (const { series } of both) {
      await store(db, seriesIdOf(ids, series), [slice(DAY, { listen: "1" })], { grouping: series.grouping });
    }
    await registerSeries(db, [configured(project, "none")]);
    await registerSeries(db, [configured({ id: project.id, name: "renamed" }, "none")]);

    for (const name of ["usage_by_endpoint", "usage_total", "series"]) {
      const names = (await view(db, name, project)).map((row) => row.project);
      expect([name, new Set(names)]).toEqual([name, new Set(["renamed"])]);
    }
    const { rows } = await sql<{ project: string }>`
      select distinct project from bi.usage_history where project_id = ${project.id} and shown_until < 'infinity'
    `.execute(db);
    expect(rows).toEqual([{ project: project.name }]);
  });

  test("a billing filter hides and renames no usage of a retired filter", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { filter: LISTEN });
    await store(db, seriesId, [slice(DAY, { listen: "1" })]);
    const prod = (name: string, tags: string): Filter => ({ name, features: {}, dimensions: { tags } });
    const usage = configured(project, "endpoint", { filter: prod("prod", "prod") });
    await store(db, seriesIdOf(await registerSeries(db, [usage]), usage.series), [slice(DAY, { listen: "2" })]);

    const charged = [prod(LISTEN.name, "narrow"), prod("production", "prod")];
    const billing = charged.map((filter) => configured(project, "none", { source: "billing", filter }));
    await registerSeries(db, billing);

    const rows = await view(db, "usage_filtered", project);
    expect(rows.map(({ filter, requests }) => `${filter} ${requests}`).sort()).toEqual(["narrow 1", "prod 2"]);
  });

  test("a filter of the same name with other conditions hides the numbers of the old filter in every view", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { filter: LISTEN, windowDays: 7 });
    await store(db, seriesId, [slice(DAY, { listen: "1" })]);
    await store(db, seriesId, [slice(DAY, { listen: "2" })]);
    await markDue(db, [seriesId], { first: "2026-03-10", oldest: { start: "2026-03-10", end: DAY }, through: DAY });
    expect(await view(db, "usage_filtered", project)).toHaveLength(1);

    await registerSeries(db, [configured(project, "endpoint", { filter: SPEAK })]);

    for (const name of ["usage_filtered", "coverage", "coverage_gaps", "freshness", "restatements"]) {
      expect([name, await view(db, name, project)]).toEqual([name, []]);
    }
    const { rows } = await sql`select 1 from bi.usage_as_of(now()) where project_id = ${project.id}`.execute(db);
    expect(rows).toEqual([]);
  });

  test("the old conditions under the old name show the old numbers again", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { filter: LISTEN });
    await store(db, seriesId, [slice(DAY, { listen: "1" })]);
    await registerSeries(db, [configured(project, "endpoint", { filter: SPEAK })]);
    await registerSeries(db, [configured(project, "endpoint", { filter: LISTEN })]);
    expect(await view(db, "usage_filtered", project)).toMatchObject([{ group_value: "listen", requests: "1" }]);
  });

  test("a name means one filter in all groupings, even in those that are no longer configured", async () => {
    const project = newProject();
    const both = [configured(project, "none", { filter: LISTEN }), configured(project, "endpoint", { filter: LISTEN })];
    const ids = await registerSeries(db, both);
    for (const { series } of both) {
      await store(db, seriesIdOf(ids, series), [slice(DAY, { listen: "1" })], { grouping: series.grouping });
    }
    const groupings = async () => (await view(db, "usage_filtered", project)).map((row) => [row.grouping, row.filter]);

    await registerSeries(db, [configured(project, "none", { filter: SPEAK })]);
    expect(await groupings()).toEqual([]);
    await registerSeries(db, [configured(project, "none", { filter: { ...LISTEN, name: "listening" } })]);
    expect((await groupings()).toSorted()).toEqual([
      ["endpoint", "listening"],
      ["none", "listening"],
    ]);
  });

  test("two filters can swap their names", async () => {
    const project = newProject();
    const [a, b] = [
      { ...LISTEN, name: "a" },
      { ...SPEAK, name: "b" },
    ];
    const ids = await registerSeries(db, [
      configured(project, "none", { filter: a }),
      configured(project, "none", { filter: b }),
    ]);
    const swapped = [
      configured(project, "none", { filter: { ...LISTEN, name: "b" } }),
      configured(project, "none", { filter: { ...SPEAK, name: "a" } }),
    ];
    expect(await registerSeries(db, swapped)).toEqual(ids);
  });

  test("a filter can take the name of one that is no longer configured", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { filter: LISTEN });
    await store(db, seriesId, [slice(DAY, { listen: "1" })]);
    await registerSeries(db, []);
    await registerSeries(db, [configured(project, "endpoint", { filter: SPEAK })]);
    expect(await view(db, "usage_filtered", project)).toEqual([]);
  });

  test("a series that is no longer configured keeps its numbers, and none of its days is missing", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 3 });
    await store(db, seriesId, [slice(DAY, { listen: "1" })]);
    await markDue(db, [seriesId], { first: "2026-03-10", oldest: { start: "2026-03-10", end: DAY }, through: DAY });
    await sql`update usage_export.series set next_due_at = '2026-03-19' where series_id = ${seriesId}`.execute(db);

    await registerSeries(db, []);

    expect(await shown(db, project)).toEqual({ [DAY]: { listen: "1" } });
    expect((await view(db, "coverage", project)).map(({ status }) => status)).toEqual(["complete"]);
    expect(await view(db, "freshness", project)).toEqual([]);
  });

  test("registering an unchanged series writes nothing", async () => {
    const { series, seriesId } = await newSeries(db, "endpoint", { windowDays: 3 });
    const version = () =>
      sql`select xmin::text, ctid::text from usage_export.series where series_id = ${seriesId}`.execute(db);
    const { rows: before } = await version();
    await registerSeries(db, [{ series, windowDays: 3 }]);
    expect((await version()).rows).toEqual(before);
    const { rows } = await sql`select from usage_export.series_period where series_id = ${seriesId}`.execute(db);
    expect(rows).toHaveLength(1);
  });

  test.each<[string, readonly Parameters<typeof markDue>[2][], readonly [Day | null, Day | null]]>([
    ["a first run makes its window due", [window("2026-03-10", "2026-03-16")], ["2026-03-10", "2026-03-16"]],
    [
      "the next runs add their days",
      [window("2026-03-10", "2026-03-16"), window("2026-03-11", "2026-03-17")],
      ["2026-03-10", "2026-03-17"],
    ],
    [
      "the days of missed runs are due, too",
      [window("2026-03-10", "2026-03-11"), window("2026-03-16", "2026-03-17")],
      ["2026-03-10", "2026-03-17"],
    ],
    [
      "a backfill of days that adjoin the due days extends the due days to the past",
      [window("2026-03-10", "2026-03-16"), window("2026-02-01", "2026-03-09")],
      ["2026-02-01", "2026-03-16"],
    ],
    [
      "a backfill of days with a gap before the due days does not extend them",
      [window("2026-03-10", "2026-03-16"), window("2026-02-01", "2026-03-08")],
      ["2026-03-10", "2026-03-16"],
    ],
    [
      "old days before any run make nothing due, and the first run only its own days",
      [{ ...window("2025-02-01", "2025-02-02"), first: undefined }, window("2026-03-10", "2026-03-16")],
      ["2026-03-10", "2026-03-16"],
    ],
    ["old days alone make nothing due", [{ ...window("2025-02-01", "2025-02-02"), first: undefined }], [null, null]],
  ])("%s", async (_, runs, [from, through]) => {
    const { seriesId } = await newSeries(db);
    for (const run of runs) await markDue(db, [seriesId], run);
    const { rows } =
      await sql`select due_from, due_through from usage_export.series where series_id = ${seriesId}`.execute(db);
    expect(rows).toEqual([{ due_from: from, due_through: through }]);
  });
}

function window(start: Day, end: Day) {
  return { first: start, oldest: { start, end }, through: end };
}
