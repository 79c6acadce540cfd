// Loads a copy of the usage views by bi.changed_days, as a warehouse does: whole days are deleted and inserted again.

import fs from "node:fs";
import path from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import type { NormalisedSlice } from "../../../src/usage/answer-rows.ts";
import type { Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { randomFrom } from "../../support/random.ts";
import { configured, daysBack, newProject, newSeries, rowOf, rowsOn, slice, store } from "../stored-usage.ts";

const { db, directUrl } = await testDatabase();
const warehouse = (await testDatabase()).db;
const back = await daysBack(db);

const DAYS = 12;
const FIRST_LOAD = "-infinity";

await sql`create table copied (project_id text, "grouping" text, filter text, usage_date date, row jsonb)`.execute(
  warehouse,
);

type Loaded = { readonly days: readonly string[]; readonly next: string };

/** The views that are copied, as one relation; the filter of all usage is called all. */
const rowsOfViews = sql`
  (
    select project_id, "grouping", 'all' as filter, usage_date, to_jsonb(u) - 'lineage' as row from bi.usage_by_group u
    union all
    select project_id, "grouping", filter, usage_date, to_jsonb(f) from bi.usage_filtered f
  )
`;

async function load(since: string): Promise<Loaded> {
  const { rows } = await sql<{ days: string | null; next: string | null; new_rows: string | null }>`
    with changed as materialized (select * from bi.changed_days(${since}))
    select json_agg(json_build_array(project_id, "grouping", filter, usage_date))::text as days, max(next_since)::text as next,
      (
        select json_agg(v) from ${rowsOfViews} v
        where (project_id, "grouping", filter, usage_date) in (select project_id, "grouping", filter, usage_date from changed)
      )::text as new_rows
    from changed
  `.execute(db);
  const { days, next, new_rows: newRows } = rows[0] ?? {};
  await sql`
    delete from copied where (project_id, "grouping", filter, usage_date::text) in (
      select day ->> 0, day ->> 1, day ->> 2, day ->> 3 from json_array_elements(${days ?? "[]"}::json) day
    )
  `.execute(warehouse);
  await sql`
    insert into copied select * from json_populate_recordset(null::copied, ${newRows ?? "[]"}::json)
  `.execute(warehouse);
  const texts = (JSON.parse(days ?? "[]") as string[][]).map((parts) => parts.join(" "));
  return { days: texts, next: next ?? since };
}

async function expectEqual(): Promise<void> {
  const { rows: shown } = await sql<{ row: string }>`select row::text from ${rowsOfViews} v order by 1`.execute(db);
  const { rows: copied } = await sql<{ row: string }>`select row::text from copied order by 1`.execute(warehouse);
  expect(copied).toEqual(shown);
}

const filterOf = (name: string) => ({ name, features: { diarize: "true" }, dimensions: {} });

test("after each of 200 nights with restatements, vanished groups, failures and renames the copy is equal", async () => {
  const { uniform } = randomFrom(7);
  const below = (bound: number) => Math.floor(uniform() * bound);
  const projects = [newProject(), newProject()];
  const names = ["diarized", "speakers"];
  const seriesOf = (windowDays: number, filterName: string, named: readonly Project[]) =>
    named.flatMap((project) => [
      configured(project, "endpoint", { windowDays }),
      configured(project, "endpoint", { windowDays, filter: filterOf(filterName) }),
    ]);
  let wanted = seriesOf(3, "diarized", projects);
  let ids = await registerSeries(db, wanted);
  const answer = (day: string): NormalisedSlice => {
    const groups = ["listen", "speak", "agent"].filter(() => uniform() < 0.7);
    return rowsOn(
      day,
      groups.map((group) => rowOf(group, String(below(4)))),
    );
  };
  let since = FIRST_LOAD;
  for (let night = 0; night < 200; night++) {
    if (uniform() < 0.1) {
      const renamed = projects.map((project) => ({ ...project, name: `${project.name}${uniform() < 0.3 ? "'" : ""}` }));
      wanted = seriesOf(1 + below(9), names[below(2)] ?? "", renamed);
      ids = await registerSeries(db, wanted);
    }
    const writing = wanted.map(async ({ series }) => {
      const seriesId = seriesIdOf(ids, series);
      const day = back(below(DAYS));
      if (uniform() < 0.15) {
        return recordFailure(db, { seriesId, days: [day], fetchNo: await nextFetchNo(db), reason: "down" });
      }
      return store(db, seriesId, [answer(day)], { emptyGuard: "off", cliffGuard: "off" });
    });
    // A load in the middle of the night sees some of what is written meanwhile.
    if (uniform() < 0.5) since = (await load(since)).next;
    await Promise.all(writing);
    since = (await load(since)).next;
    await expectEqual();
  }
}, 120_000);

test("a change that is committed after a newer one was loaded comes with the next load", async () => {
  const wanted = [newProject(), newProject()].map((project) => configured(project));
  const ids = await registerSeries(db, wanted);
  const [slow = 0, quick = 0] = wanted.map(({ series }) => seriesIdOf(ids, series));
  await using holder = openPostgres(directUrl);
  await sql`
    create function wait_for_the_test() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock_shared(4711); return null; end'
  `.execute(db);
  await sql`
    create constraint trigger held after insert or update on usage_export.slice deferrable initially deferred
    for each row when (new.series_id = ${sql.lit(slow)}) execute function wait_for_the_test()
  `.execute(db);
  const { next: before } = await load(FIRST_LOAD);
  const held = await holder.transaction().execute(async (tx) => {
    await sql`select pg_advisory_xact_lock(4711)`.execute(tx);
    const storing = store(db, slow, [slice(back(3), { listen: "1" })]);
    await expect.poll(() => waitingFor("advisory"), { timeout: 30_000 }).toBe(1);
    await store(db, quick, [slice(back(2), { listen: "2" })]);
    const { days, next } = await load(before);
    expect(days).toContain(`${wanted[1]?.series.project.id} endpoint all ${back(2)}`);
    return { storing, next };
  });
  await held.storing;
  const { days } = await load(held.next);
  expect(days).toContain(`${wanted[0]?.series.project.id} endpoint all ${back(3)}`);
  await expectEqual();
});

test("the SQL of the cookbook makes a copy equal, also where a group or all of a day is gone", async () => {
  const page = fs.readFileSync(path.join(import.meta.dirname, "../../../docs/cookbook.md"), "utf8");
  const [, recipe = ""] = /```sql\n(create table if not exists usage_copy[^`]+)```/.exec(page) ?? [];
  await using copying = openPostgres(directUrl);
  const { seriesId } = await newSeries(db, "model", { windowDays: 3 });
  const storeModels = async (...days: (readonly [number, Readonly<Record<string, string>>])[]) => {
    const slices = days.map(([n, of]) =>
      rowsOn(
        back(n),
        Object.entries(of).map(([model, count]) => rowOf(model, count, null, "model")),
      ),
    );
    await store(db, seriesId, slices, { grouping: "model", emptyGuard: "off", cliffGuard: "off" });
  };
  const nights: (() => Promise<void>)[] = [
    () => storeModels([3, { "nova-3": "1", "aura-2": "2" }], [2, { "nova-3": "3" }]),
    () => storeModels([3, { "nova-3": "5" }], [2, {}]),
    async () => {},
    () => storeModels([2, { "aura-2": "4" }], [1, { "nova-3": "6" }]),
  ];
  for (const night of nights) {
    await night();
    await copying.transaction().execute(async (tx) => sql.raw(recipe).execute(tx));
    const copied = await sql`select to_jsonb(c) - 'next_since' as row from usage_copy c order by 1`.execute(copying);
    const shown = await sql`select to_jsonb(u) as row from bi.usage_by_model u order by 1`.execute(copying);
    expect(copied.rows).toEqual(shown.rows);
  }
  // nova-3 with 5 three days ago, aura-2 with 4, nova-3 with 6.
  const { rows } = await sql`select sum(requests) as requests from usage_copy`.execute(copying);
  expect(rows).toEqual([{ requests: "15" }]);
});

async function waitingFor(locktype: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from pg_locks
    where locktype = ${locktype} and not granted and database = (select oid from pg_database where datname = current_database())
  `.execute(db);
  return rows[0]?.count ?? 0;
}

test("a day that the window has passed comes again, as it is final then", async () => {
  const project = newProject();
  const one = configured(project, "endpoint", { windowDays: 3 });
  const seriesId = seriesIdOf(await registerSeries(db, [one]), one.series);
  const today = await daysBack(db);
  const days = [7, 5, 2].map(today);
  for (const day of days) await store(db, seriesId, [slice(day, { listen: "1" })]);
  await sql`update usage_export.slice set changed_at = now() - interval '4 days' where series_id = ${seriesId}`.execute(
    db,
  );
  const { rows } = await sql<{ usage_date: string }>`
    select usage_date from bi.changed_days(now() - interval '3 days') where project_id = ${project.id}
  `.execute(db);
  // Three days ago the window reached back to the fifth of these days, and now it does not reach it any more.
  expect(rows.map((row) => row.usage_date)).toEqual([days[1]]);
});

test("a load that finds nothing new returns the days of the newest change only", async () => {
  const project = newProject();
  const one = configured(project);
  const seriesId = seriesIdOf(await registerSeries(db, [one]), one.series);
  await store(db, seriesId, [slice(back(2), { listen: "1" })]);
  await store(db, seriesId, [slice(back(1), { listen: "1" })]);
  await expect
    .poll(async () => (await load((await load(FIRST_LOAD)).next)).days.filter((day) => day.includes(project.id)))
    .toEqual([expect.stringContaining(back(1))]);
});
