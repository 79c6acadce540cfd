// Billing in the tables of usage: it is stored by the same rules, and no number of usage includes it.

import fc from "fast-check";
import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { readByStatements } from "../../../src/db/connection/transaction.ts";
import { storePrices } from "../../../src/db/prices-and-budgets.ts";
import { markDue, registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import type { AnswerToStore } from "../../../src/db/usage/writer.ts";
import { keyStatuses } from "../../../src/facts/keys.ts";
import { overview } from "../../../src/facts/overview.ts";
import type { Day } from "../../../src/usage/days.ts";
import type { Filter, Grouping, Series } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { newRotation } from "../keys/written-ledger.ts";
import { type BilledRow, billed, visibleCost } from "../stored-billing.ts";
import { configured, daysBack, newProject, rowOf, rowsOn, store, totalRow, type ViewRow } from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

beforeEach(async () => {
  await sql`truncate usage_export.configured, usage_export.series, usage_export.snapshot_row, usage_export.superseded_row, usage_export.group_value cascade`.execute(
    db,
  );
});

const ALL: Filter = { name: "all", features: {}, dimensions: {} };
const PROD: Filter = { name: "prod", features: {}, dimensions: { tags: "prod" } };
const DAY = "2026-03-16";

/** Registers one series of billing, and returns a function that stores an answer for DAY. */
async function billingSeries(grouping: Grouping) {
  const one = configured(newProject(), grouping, { source: "billing", windowDays: 7 });
  const seriesId = seriesIdOf(await registerSeries(db, [one]), one.series);
  return {
    seriesId,
    storeRows: (rows: readonly BilledRow[], part: Partial<AnswerToStore> = {}) =>
      store(db, seriesId, [billed(DAY, grouping, rows)], { grouping, ...part }),
  };
}

async function read(view: ReturnType<typeof sql<ViewRow>>): Promise<readonly ViewRow[]> {
  return (await view.execute(db)).rows;
}

test("each dimension of a group has the value that it has by itself", async () => {
  const { storeRows } = await billingSeries("accessor,line_item,tags");
  await storeRows([
    ["0.1", { accessor: "a1", line_item: "streaming::nova-3", tags: ["prod", "eu"] }],
    ["0.20", { accessor: null, line_item: 'a "b", c', tags: [] }],
    ["0.3", { accessor: "a\0b", line_item: "streaming::nova-3", tags: ["n\0ul", "x"] }],
    ["-4", { line_item: "credit", tags: null, accessor: ["a2", "a1"] }],
  ]);
  const of = (accessor: string | null, line_item: string, tags: string | null, dollars: string) => ({
    ...{ usage_date: DAY, grouping: "accessor,line_item,tags", deployment: null },
    ...{ accessor, line_item, tags, dollars },
  });
  expect(await visibleCost(db)).toEqual([
    of('["a1","a2"]', "credit", null, "-4"),
    of("a1", "streaming::nova-3", '["eu","prod"]', "0.1"),
    of("a\\u0000b", "streaming::nova-3", '["n\\\\u0000ul","x"]', "0.3"),
    of(null, 'a "b", c', null, "0.2"),
  ]);
});

test("no digit of an amount is lost, and an amount that is not known is not 0", async () => {
  const { storeRows } = await billingSeries("line_item");
  const digits = fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: 1, maxLength: 28 });
  const amount = fc
    .tuple(fc.constantFrom("", "-"), digits, digits)
    .map(([sign, whole, fraction]) => `${sign}${BigInt(whole)}.${fraction}`);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(amount), { minLength: 1, maxLength: 5 }), async (amounts) => {
      const rows = amounts.map((dollars, i): BilledRow => [dollars, { line_item: `item ${i}` }]);
      await storeRows(rows, { cliffGuard: "off" });
      const compared = await read(sql`
        select count(*)::integer as n, bool_and(v.dollars is not distinct from a.dollars::numeric) as equal,
          sum(v.dollars) is not distinct from sum(a.dollars::numeric) as same_sum
        from unnest(${amounts}::text[]) with ordinality as a (dollars, i)
        left join usage_export.visible_cost v on v.line_item = 'item ' || (i - 1)
      `);
      expect(compared).toEqual([{ n: amounts.length, equal: true, same_sum: true }]);
    }),
    { numRuns: 50 },
  );
});

test("a restated amount replaces the old one, which bi.restatements has", async () => {
  const { storeRows } = await billingSeries("line_item,tags");
  const group = { line_item: "sync::aura-2", tags: ["prod"] };
  await storeRows([["0.1", group]]);
  expect(await storeRows([["0.1", group]])).toMatchObject({ rowsChanged: 0 });
  await storeRows([["0.30", group]]);
  expect((await visibleCost(db)).map(({ dollars }) => dollars)).toEqual(["0.3"]);
  const restated = await read(sql`
    select source, "grouping", group_value, metric, old_value::text, new_value::text from bi.restatements
  `);
  expect(restated).toEqual([
    {
      ...{ source: "billing", grouping: "line_item,tags", metric: "dollars", old_value: "0.1", new_value: "0.3" },
      group_value: '{"line_item":"sync::aura-2","tags":["prod"]}',
    },
  ]);
});

test.each<[string, readonly BilledRow[], RegExp]>([
  ["no rows", [], /no rows/],
  ["over 90 % less", [["1.99", { line_item: "a" }]], /1.99 dollars for this day, which had 20/],
])("an answer with %s is suspect, and what is stored stays", async (_, rows, error) => {
  const { storeRows } = await billingSeries("line_item");
  await storeRows([["20", { line_item: "a" }]]);
  expect((await storeRows(rows)).slices).toMatchObject([{ day: DAY, decision: "suspect" }]);
  expect((await visibleCost(db)).map(({ dollars }) => dollars)).toEqual(["20"]);
  const [slice] = await read(sql`select source, status, error from bi.coverage`);
  expect(slice).toEqual({ source: "billing", status: "suspect", error: expect.stringMatching(error) });
});

test("usage and billing of the same grouping and filter are two series", async () => {
  const project = newProject();
  const usage = configured(project, "accessor");
  const billing = configured(project, "accessor", { source: "billing" });
  const ids = await registerSeries(db, [usage, billing]);
  expect(seriesIdOf(ids, usage.series)).not.toBe(seriesIdOf(ids, billing.series));
  await registerSeries(db, [billing]);
  expect(await read(sql`select source, retired_at is null as active from usage_export.series order by source`)).toEqual(
    [
      { source: "billing", active: true },
      { source: "usage", active: false },
    ],
  );
});

function prices() {
  const service = { baseUrl: "https://api.example.com" };
  const projects = [{ id: "p", name: "p", key: { env: "KEY" } }];
  const price = { metric: "hours", model: "*", currency: "USD", price: "0.3", from: "2020-01-01" };
  return parseConfig(JSON.stringify({ service, projects, prices: [price] }), { source: "test", baseDir: "/" }).prices;
}

const GROUPINGS: readonly Grouping[] = ["none", "accessor", "deployment", "tags"];

async function storeUsageOf({ grouping }: Series, seriesId: number, day: Day, requests: string): Promise<void> {
  const numbers = { requests, hours: "2", total_hours: "2" };
  const value = grouping === "tags" ? ["prod"] : `the ${grouping}`;
  const row = grouping === "none" ? totalRow(numbers) : rowOf(value, numbers, null, grouping);
  await store(db, seriesId, [rowsOn(day, [row])], { grouping });
}

/** Everything that shows usage. The views that show amounts of billing are bi.cost_* without those of estimates, and bi.focus_cost. */
async function allUsage(): Promise<Readonly<Record<string, unknown>>> {
  const views = await read(sql`
    select c.relname as view, bool_or(a.attname = 'source') as has_source
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relnamespace = 'bi'::regnamespace
      and (c.relname !~ '^(cost_|balances|focus_cost)' or c.relname ~ '^cost_estimated')
    group by c.relname order by c.relname
  `);
  const shown: Record<string, unknown> = {};
  for (const { view, has_source } of views) {
    const usageOnly = has_source ? sql`where source = 'usage'` : sql``;
    const rows = await read(sql`select v.* from ${sql.id("bi", String(view))} v ${usageOnly} order by v::text`);
    shown[String(view)] = rows.map(({ age_days: _, ...row }) => row);
  }
  const period = { start: back(3), end: back(1) };
  const between = sql`${period.start}::date, ${period.end}::date`;
  shown.usage_change = await read(sql`select * from bi.usage_change(${between}) c order by c::text`);
  shown.cost_change = await read(sql`select * from bi.cost_change(${between}) c order by c::text`);
  shown.usage_as_of = await read(sql`select * from bi.usage_as_of(now()) c order by c::text`);
  // Its cost is the billed one, and its splits are of the cost.
  const { figures, total } = await readByStatements(db, (run) =>
    overview(run, { period, before: undefined, projects: undefined }, back(0)),
  );
  shown.overview = { figures, total };
  shown.keys = (await keyStatuses(db)).map(({ lastSeenInUse }) => lastSeenInUse);
  return shown;
}

test("where billing is stored, all numbers of usage are as they were", async () => {
  const project = newProject();
  const { key } = await newRotation(db, { project });
  await key("the accessor", "active");
  const usage = [ALL, PROD].flatMap((filter) =>
    [...GROUPINGS, "model" as const].map((grouping) => configured(project, grouping, { filter, windowDays: 1 })),
  );
  const billing = [ALL, PROD].flatMap((filter) =>
    [...GROUPINGS, "line_item,tags" as const].map((grouping) =>
      configured(project, grouping, { source: "billing", filter, windowDays: 1 }),
    ),
  );
  const ids = await registerSeries(db, [...usage, ...billing]);
  const due = { first: back(4), oldest: { start: back(4), end: back(1) }, through: back(1) };
  await markDue(db, [...ids.values()], due);
  await storePrices(db, prices());
  for (const { series } of usage) {
    for (const requests of ["300", "100"]) await storeUsageOf(series, seriesIdOf(ids, series), back(2), requests);
    await storeUsageOf(series, seriesIdOf(ids, series), back(5), "100");
    // A day that only the total and billing have.
    if (series.grouping === "none") await storeUsageOf(series, seriesIdOf(ids, series), back(3), "100");
  }
  const before = await allUsage();
  expect(before.usage_by_accessor).not.toEqual([]);
  expect(before.cost_estimated).not.toEqual([]);
  expect(before.usage_change).not.toEqual([]);
  expect(before.restatements).not.toEqual([]);

  for (const { series } of billing) {
    const { grouping } = series;
    const seriesId = seriesIdOf(ids, series);
    const group = { accessor: "another key", deployment: "dedicated", line_item: "sync::aura-2", tags: ["prod"] };
    await store(db, seriesId, [billed(back(5), grouping, [])], { grouping });
    for (const [day, dollars] of [
      [back(3), "0.1"],
      [back(2), "7.7"],
      [back(2), "7.8"],
      [back(1), "5"],
    ] as const) {
      await store(db, seriesId, [billed(day, grouping, [[dollars, group]])], { grouping });
    }
  }
  expect((await visibleCost(db)).length).toBe(3 * billing.length);
  expect(await allUsage()).toEqual(before);
});
