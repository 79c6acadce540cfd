// Keeps a copy of the usage views up to date with bi.changed_days, as a warehouse does: it deletes whole days and inserts them again.

import fs from "node:fs";
import path from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { randomFrom } from "../../../src/emulator/usage.ts";
import { DAY_MS } from "../../../src/usage/days.ts";
import type { Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import {
  configured,
  daysBack,
  failOn,
  newProject,
  newSeries,
  register,
  store,
  UNGUARDED,
  type Usage,
} from "../stored-usage.ts";

const { db, directUrl, read, waitingForLock } = await testDatabase();
const { db: warehouse, read: readWarehouse } = await testDatabase();
const back = await daysBack(db);

const DAYS = 12;
const FIRST_LOAD = "-infinity";

await readWarehouse(
  sql`create table copied (project_id text, "grouping" text, filter text, usage_date date, row jsonb)`,
);

type Loaded = { readonly days: readonly string[]; readonly next: string };

/** The rows of the copied views, in one relation. Unfiltered usage has the filter "all". */
const rowsOfViews = sql`
  (
    select project_id, "grouping", 'all' as filter, usage_date, to_jsonb(u) - 'lineage' as row from bi.usage_by_group u
    union all
    select project_id, "grouping", filter, usage_date, to_jsonb(f) from bi.usage_filtered f
  )
`;

/** Brings the copy up to date, and returns the days that were copied and the moment from which to load next. */
async function load(since: string): Promise<Loaded> {
  const [loaded] = await read(sql<{ days: string | null; next: string | null; new_rows: string | null }>`
    with changed as materialized (select * from bi.changed_days(${since}))
    select json_agg(json_build_array(project_id, "grouping", filter, usage_date))::text as days, max(next_since)::text as next,
      (
        select json_agg(v) from ${rowsOfViews} v
        where (project_id, "grouping", filter, usage_date) in (select project_id, "grouping", filter, usage_date from changed)
      )::text as new_rows
    from changed
  `);
  const { days, next, new_rows: newRows } = loaded ?? {};
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

async function expectCopyEqual(): Promise<void> {
  const shown = await read(sql`select row::text from ${rowsOfViews} v order by 1`);
  expect(await readWarehouse(sql`select row::text from copied order by 1`)).toEqual(shown);
}

const filterOf = (name: string) => ({ name, features: { diarize: "true" }, dimensions: {} });

test("after each of 100 nights with restatements, vanished groups, failures and renames the copy is equal", async () => {
  const uniform = randomFrom(7);
  const below = (bound: number) => Math.floor(uniform() * bound);
  const projects = [newProject(), newProject()];
  const names = ["diarized", "speakers"];
  const seriesOf = (windowDays: number, filterName: string, named: readonly Project[]) =>
    named.flatMap((project) => [
      configured(project, "endpoint", { windowDays }),
      configured(project, "endpoint", { windowDays, filter: filterOf(filterName) }),
    ]);
  let wanted = seriesOf(3, "diarized", projects);
  let ids: readonly number[] = await register(db, ...wanted);
  const answer = (): Usage[string] => {
    const groups = ["listen", "speak", "agent"].filter(() => uniform() < 0.7);
    return groups.map((group) => [group, String(below(4))] as const);
  };
  let since = FIRST_LOAD;
  for (let night = 0; night < 100; night++) {
    if (uniform() < 0.1) {
      const renamed = projects.map((project) => ({ ...project, name: `${project.name}${uniform() < 0.3 ? "'" : ""}` }));
      wanted = seriesOf(1 + below(9), names[below(2)] ?? "", renamed);
      ids = await register(db, ...wanted);
    }
    const writing = ids.map(async (seriesId) => {
      const day = back(below(DAYS));
      if (uniform() < 0.15) await failOn(db, seriesId, [day]);
      else await store(db, seriesId, { [day]: answer() }, UNGUARDED);
    });
    // A load while the night's answers are stored sees some of them.
    if (uniform() < 0.5) since = (await load(since)).next;
    await Promise.all(writing);
    since = (await load(since)).next;
    await expectCopyEqual();
  }
});

test("a change that is committed after a newer one was loaded comes with the next load", async () => {
  const wanted = [newProject(), newProject()].map((project) => configured(project));
  const [slow = 0, quick = 0]: readonly number[] = await register(db, ...wanted);
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
    const storing = store(db, slow, { [back(3)]: { listen: "1" } });
    await expect.poll(waitingForLock).toHaveLength(1);
    await store(db, quick, { [back(2)]: { listen: "2" } });
    const { days, next } = await load(before);
    expect(days).toContain(`${wanted[1]?.series.project.id} endpoint all ${back(2)}`);
    return { storing, next };
  });
  await held.storing;
  const { days } = await load(held.next);
  expect(days).toContain(`${wanted[0]?.series.project.id} endpoint all ${back(3)}`);
  await expectCopyEqual();
});

test("the SQL of the cookbook keeps a copy equal, even if one or all groups of a day are gone", async () => {
  const page = fs.readFileSync(path.join(import.meta.dirname, "../../../docs/cookbook.md"), "utf8");
  const [, recipe = ""] = /```sql\n(create table if not exists usage_copy[^`]+)```/.exec(page) ?? [];
  await using copying = openPostgres(directUrl);
  const { seriesId } = await newSeries(db, "model", { windowDays: 3 });
  const nights: readonly Usage[] = [
    { [back(3)]: { "nova-3": "1", "aura-2": "2" }, [back(2)]: { "nova-3": "3" } },
    { [back(3)]: { "nova-3": "5" }, [back(2)]: {} },
    {},
    { [back(2)]: { "aura-2": "4" }, [back(1)]: { "nova-3": "6" } },
  ];
  for (const night of nights) {
    if (Object.keys(night).length > 0) await store(db, seriesId, night, UNGUARDED);
    await copying.transaction().execute(async (tx) => sql.raw(recipe).execute(tx));
    const copied = await sql`select to_jsonb(c) - 'next_since' as row from usage_copy c order by 1`.execute(copying);
    const shown = await sql`select to_jsonb(u) as row from bi.usage_by_model u order by 1`.execute(copying);
    expect(copied.rows).toEqual(shown.rows);
  }
  // The 5 of nova-3 three days ago, the 4 of aura-2, and the 6 of nova-3.
  expect(await read(sql`select sum(requests) as requests from usage_copy`)).toEqual([{ requests: "15" }]);
});

test("a day comes again when its finality has changed", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 3 });
  const days = [7, 6, 4, 3].map(back);
  for (const day of days) await store(db, seriesId, { [day]: { listen: "1" } });
  const yesterday = { [back(1)]: { listen: "1" } };
  await store(db, seriesId, yesterday, { askedMs: performance.now() - DAY_MS });
  await read(sql`update usage_export.slice set changed_at = now() - interval '4 days' where series_id = ${seriesId}`);
  await store(db, seriesId, yesterday);
  const rows = await read(sql<{ usage_date: string }>`
    select usage_date from bi.changed_days(now() - interval '3 days') where project_id = ${project.id} order by usage_date
  `);
  // Since three days ago the window has passed the days from six to four days back, and yesterday was read after its end.
  expect(rows.map((row) => row.usage_date)).toEqual([back(6), back(4), back(1)]);
});

test("a load that finds nothing new returns the days of the newest change only", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { usage: { [back(2)]: { listen: "1" } } });
  await store(db, seriesId, { [back(1)]: { listen: "1" } });
  await expect
    .poll(async () => (await load((await load(FIRST_LOAD)).next)).days.filter((day) => day.includes(project.id)))
    .toEqual([expect.stringContaining(back(1))]);
});
