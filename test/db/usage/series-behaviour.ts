// What registering series and noting their due days does, on any database.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import { markDue, markNextDue, registerSeries, seriesIdOf } from "../../../src/db/usage/series.ts";
import type { Day } from "../../../src/usage/days.ts";
import type { Filter, Project } from "../../../src/usage/series.ts";
import { configured, newProject, newSeries, shown, slice, store, view } from "../stored-usage.ts";

const DAY = "2026-03-17";
const LISTEN: Filter = { name: "narrow", features: {}, dimensions: { endpoint: "listen" } };
const SPEAK: Filter = { name: "narrow", features: {}, dimensions: { endpoint: "speak" } };

export function testSeries(db: Database): void {
  test("a series is registered once, however often it is", async () => {
    const one = configured(newProject());
    const first = seriesIdOf(await registerSeries(db, [one]), one.series);
    expect(seriesIdOf(await registerSeries(db, [one]), one.series)).toBe(first);
  });

  test("a series that is not registered has no number", async () => {
    const ids = await registerSeries(db, []);
    expect(() => seriesIdOf(ids, configured(newProject()).series)).toThrow("is not registered");
  });

  test("other groupings, filters and projects are other series", async () => {
    const project = newProject();
    const all = [
      configured(project, "none"),
      configured(project, "endpoint"),
      configured(project, "endpoint", { filter: LISTEN }),
      configured(newProject(), "endpoint"),
    ];
    const ids = await registerSeries(db, all);
    expect(new Set(all.map(({ series }) => seriesIdOf(ids, series))).size).toBe(4);
  });

  test("a new name of a project or a filter shows on the numbers that are stored", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { filter: LISTEN });
    await store(db, seriesId, [slice(DAY, { listen: "1" })]);

    const renamed = { id: project.id, name: "renamed" };
    await registerSeries(db, [configured(renamed, "endpoint", { filter: { ...LISTEN, name: "listening" } })]);

    expect(await view(db, "usage_filtered", project)).toMatchObject([
      { project: "renamed", filter: "listening", requests: "1" },
    ]);
  });

  test("a filter of the same name with other conditions hides the numbers of the old one everywhere", async () => {
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

  test("a name means one filter in all groupings, also in those that are configured no more", async () => {
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

  test("a filter can take the name of one that is configured no more", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { filter: LISTEN });
    await store(db, seriesId, [slice(DAY, { listen: "1" })]);
    await registerSeries(db, []);
    await registerSeries(db, [configured(project, "endpoint", { filter: SPEAK })]);
    expect(await view(db, "usage_filtered", project)).toEqual([]);
  });

  test("a series that is configured no more keeps its numbers and is never missing", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 3 });
    await store(db, seriesId, [slice(DAY, { listen: "1" })]);
    await markDue(db, [seriesId], { first: "2026-03-10", oldest: { start: "2026-03-10", end: DAY }, through: DAY });
    await inTransaction(db, (tx) => markNextDue(tx, [{ seriesId, at: new Date("2026-03-19T02:15:00Z") }]));

    await registerSeries(db, []);

    expect(await shown(db, project)).toEqual({ [DAY]: { listen: "1" } });
    expect((await view(db, "coverage", project)).map(({ status }) => status)).toEqual(["complete"]);
    expect(await view(db, "freshness", project)).toEqual([]);
  });

  test("registering writes nothing where nothing is new", async () => {
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
    ["a first night makes its window due", [window("2026-03-10", "2026-03-16")], ["2026-03-10", "2026-03-16"]],
    [
      "the next nights add their days",
      [window("2026-03-10", "2026-03-16"), window("2026-03-11", "2026-03-17")],
      ["2026-03-10", "2026-03-17"],
    ],
    [
      "nights that were missed stay due",
      [window("2026-03-10", "2026-03-11"), window("2026-03-16", "2026-03-17")],
      ["2026-03-10", "2026-03-17"],
    ],
    [
      "a backfill that reaches up to the due days makes them due further back",
      [window("2026-03-10", "2026-03-16"), window("2026-02-01", "2026-03-09")],
      ["2026-02-01", "2026-03-16"],
    ],
    [
      "old days with a hole behind them do not",
      [window("2026-03-10", "2026-03-16"), window("2026-02-01", "2026-03-08")],
      ["2026-03-10", "2026-03-16"],
    ],
    [
      "old days before any night make nothing due, and the first night only its own",
      [{ ...window("2025-02-01", "2025-02-02"), first: undefined }, window("2026-03-10", "2026-03-16")],
      ["2026-03-10", "2026-03-16"],
    ],
    ["old days alone leave nothing due", [{ ...window("2025-02-01", "2025-02-02"), first: undefined }], [null, null]],
  ])("%s", async (_, nights, [from, through]) => {
    const { seriesId } = await newSeries(db);
    for (const night of nights) await markDue(db, [seriesId], night);
    const { rows } =
      await sql`select due_from, due_through from usage_export.series where series_id = ${seriesId}`.execute(db);
    expect(rows).toEqual([{ due_from: from, due_through: through }]);
  });

  test("series of the same project keep their own due days", async () => {
    const project: Project = newProject();
    const [one, other] = [configured(project, "none"), configured(project, "model")];
    const ids = await registerSeries(db, [one, other]);
    await markDue(db, [seriesIdOf(ids, one.series)], window(DAY, DAY));
    expect((await view(db, "coverage", project)).map(({ grouping }) => grouping)).toEqual(["none"]);
  });
}

function window(start: Day, end: Day) {
  return { first: start, oldest: { start, end }, through: end };
}
