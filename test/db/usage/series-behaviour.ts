// Tests of registering series and storing their due days. They run on a Postgres server and on the embedded database.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import { extendDue, registerSeries } from "../../../src/db/usage/stored-series.ts";
import { type Filter, seenFilter } from "../../../src/usage/series.ts";
import {
  configured,
  coverageOf,
  daysBack,
  newProject,
  newSeries,
  register,
  setDue,
  store,
  textsOf,
  view,
} from "../stored-usage.ts";

const DAY = "2026-03-17";
const USAGE = { [DAY]: { listen: "1" } };
const LISTEN: Filter = { name: "narrow", features: {}, dimensions: { endpoint: "listen" } };
const SPEAK: Filter = { name: "narrow", features: {}, dimensions: { endpoint: "speak" } };

export function testSeries(db: Database): void {
  test("stored numbers are shown under a new name of their project or filter", async () => {
    const { project } = await newSeries(db, "endpoint", { filter: LISTEN, usage: USAGE });
    const renamed = { id: project.id, name: "renamed" };
    await register(db, configured(renamed, "endpoint", { filter: { ...LISTEN, name: "listening" } }));
    expect(await view(db, "usage_filtered", project)).toMatchObject([
      { project: "renamed", filter: "listening", requests: "1" },
    ]);
  });

  test("what is no longer read of a project is shown under its new name", async () => {
    const { project } = await newSeries(db, "endpoint", { usage: USAGE });
    await newSeries(db, "none", { project, usage: { [DAY]: { requests: "1" } } });
    await register(db, configured({ id: project.id, name: "renamed" }, "none"));

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
    const { project } = await newSeries(db, "endpoint", { filter: LISTEN, usage: USAGE });
    const prod = (name: string, tags: string): Filter => ({ name, features: {}, dimensions: { tags } });
    await newSeries(db, "endpoint", { project, filter: prod("prod", "prod"), usage: { [DAY]: { listen: "2" } } });

    const charged = [prod(LISTEN.name, "narrow"), prod("production", "prod")];
    await register(db, ...charged.map((filter) => configured(project, "none", { source: "billing", filter })));

    const rows = await view(db, "usage_filtered", project);
    expect(rows.map(({ filter, requests }) => `${filter} ${requests}`).sort()).toEqual(["narrow 1", "prod 2"]);
  });

  test("a filter of the same name with other conditions hides the numbers of the old filter in every view", async () => {
    const { project, seriesId } = await newSeries(db, "endpoint", { filter: LISTEN, windowDays: 7, usage: USAGE });
    await store(db, seriesId, { [DAY]: { listen: "2" } });
    await setDue(db, [seriesId], "2026-03-10", DAY);
    expect(await view(db, "usage_filtered", project)).toHaveLength(1);

    await register(db, configured(project, "endpoint", { filter: SPEAK }));

    for (const name of ["usage_filtered", "coverage", "coverage_gaps", "freshness", "restatements"]) {
      expect([name, await view(db, name, project)]).toEqual([name, []]);
    }
    const { rows } = await sql`select 1 from bi.usage_as_of(now()) where project_id = ${project.id}`.execute(db);
    expect(rows).toEqual([]);
  });

  test("a name means one filter in all groupings, even in those that are no longer configured", async () => {
    const project = newProject();
    const both = (["none", "endpoint"] as const).map((grouping) => configured(project, grouping, { filter: LISTEN }));
    for (const seriesId of await register(db, ...both))
      await store(db, seriesId, { [DAY]: [["listen", { requests: "1" }]] });
    const groupings = async () => (await view(db, "usage_filtered", project)).map((row) => [row.grouping, row.filter]);

    await register(db, configured(project, "none", { filter: SPEAK }));
    expect(await groupings()).toEqual([]);
    await register(db, configured(project, "none", { filter: { ...LISTEN, name: "listening" } }));
    expect((await groupings()).toSorted()).toEqual([
      ["endpoint", "listening"],
      ["none", "listening"],
    ]);
  });

  test("two filters can swap their names", async () => {
    const project = newProject();
    const named = (listen: string, speak: string) => [
      configured(project, "none", { filter: { ...LISTEN, name: listen } }),
      configured(project, "none", { filter: { ...SPEAK, name: speak } }),
    ];
    const ids = await register(db, ...named("a", "b"));
    expect(await register(db, ...named("b", "a"))).toEqual(ids);
  });

  test("a filter can take the name of one that is no longer configured", async () => {
    const { project } = await newSeries(db, "endpoint", { filter: LISTEN, usage: USAGE });
    await register(db);
    await register(db, configured(project, "endpoint", { filter: SPEAK }));
    expect(await view(db, "usage_filtered", project)).toEqual([]);
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

  test("a value that is seen again is due from its new first day on", async () => {
    const back = await daysBack(db);
    const project = newProject();
    const seenSince = (days: number) => {
      const filter = seenFilter("accessor", "k1", { start: back(days), end: back(1) });
      return configured(project, "model", { filter, windowDays: 7 });
    };
    const due = async () => textsOf(await coverageOf(db, project), "usage_date status");
    const [seriesId] = await register(db, seenSince(9));
    expect(await due()).toHaveLength(9);
    await store(db, seriesId, { [back(9)]: { "nova-3": "1" } });
    await register(db);
    expect(await due()).toEqual([`${back(9)} complete`]);
    await register(db, seenSince(2));
    expect(await due()).toEqual([`${back(9)} complete`, `${back(2)} missing`, `${back(1)} missing`]);
    // As long as it is seen, the first day stays.
    await register(db, seenSince(1));
    expect(await due()).toHaveLength(3);
  });

  /** The windows of runs, and from when to when days are due afterwards. */
  test.each([
    ["a first run makes its window due", ["03-10 03-16"], "03-10 03-16"],
    ["the next runs add their days", ["03-10 03-16", "03-11 03-17"], "03-10 03-17"],
    ["the days of missed runs are due, too", ["03-10 03-11", "03-16 03-17"], "03-10 03-17"],
    [
      "a backfill of days that adjoin the due days extends them to the past",
      ["03-10 03-16", "02-01 03-09"],
      "02-01 03-16",
    ],
    ["a backfill of days with a gap before the due days does not", ["03-10 03-16", "02-01 03-08"], "03-10 03-16"],
    ["a first run after old days makes only its own days due", ["old", "03-10 03-16"], "03-10 03-16"],
    ["old days alone make nothing due", ["old"], null],
  ])("%s", async (_, runs, due) => {
    const { seriesId } = await newSeries(db);
    for (const run of runs) {
      const [start = "", end = ""] = run.split(" ").map((day) => `2026-${day}`);
      if (run !== "old") await setDue(db, [seriesId], start, end);
      else {
        const [start, end] = ["2025-02-01", "2025-02-02"];
        await inTransaction(db, (tx) => extendDue(tx, [seriesId], { oldestWindow: { start, end }, through: end }));
      }
    }
    const { rows } = await sql`
      select to_char(due_from, 'MM-DD') || ' ' || to_char(due_through, 'MM-DD') as due from usage_export.series where series_id = ${seriesId}
    `.execute(db);
    expect(rows).toEqual([{ due }]);
  });
}
