// Billing in the tables of usage: it is stored by the same rules, and no number of usage includes it.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { queryAtOneMoment } from "../../../src/db/connection/transaction.ts";
import { storedValues } from "../../../src/db/usage/stored-series.ts";
import { keyStatuses } from "../../../src/facts/keys.ts";
import { overview } from "../../../src/facts/overview.ts";
import type { Filter, Grouping } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { ALL_USAGE } from "../../usage/sample-request.ts";
import { usedKeys } from "../keys/written-ledger.ts";
import { forgetAll } from "../reported-usage.ts";
import { type BilledRow, billed, visibleCost } from "../stored-billing.ts";
import { storePriceBook } from "../stored-costs.ts";
import {
  type AnswerPart,
  configured,
  daysBack,
  newProject,
  newSeries,
  register,
  setDue,
  store,
  type ViewRow,
} from "../stored-usage.ts";

const { db, read } = await testDatabase();
const back = await daysBack(db);

beforeEach(async () => {
  await forgetAll(db);
  await sql`truncate usage_export.group_value cascade`.execute(db);
});

const PROD: Filter = { name: "prod", features: {}, dimensions: { tags: "prod" } };
const DAY = "2026-03-16";

/** Registers one series of billing, and returns a function that stores an answer for DAY. */
async function billingSeries(grouping: Grouping) {
  const { seriesId } = await newSeries(db, grouping, { source: "billing", windowDays: 7 });
  return (rows: readonly BilledRow[], part: AnswerPart = {}) =>
    store(db, seriesId, [billed(DAY, grouping, rows)], part);
}

test("in a grouping by several dimensions, each column has the same value as in a grouping by that dimension alone", async () => {
  const storeRows = await billingSeries("accessor,line_item,tags");
  await storeRows([
    ["0.1", { accessor: "a1", line_item: "streaming::nova-3", tags: ["prod", "eu"] }],
    ["0.20", { accessor: null, line_item: 'a "b", c', tags: [] }],
    ["0.3", { accessor: "a\0b", line_item: "streaming::nova-3", tags: ["n\0ul", "x"] }],
    ["-4", { line_item: "credit", tags: null, accessor: ["a2", "a1"] }],
  ]);
  // NUL is stored as the text \u0000. In a set, which is JSON, the backslash is escaped once more.
  const costRow = (accessor: string | null, line_item: string, tags: string | null, dollars: string) => ({
    ...{ usage_date: DAY, grouping: "accessor,line_item,tags", deployment: null },
    ...{ accessor, line_item, tags, dollars },
  });
  expect(await visibleCost(db)).toEqual([
    costRow('["a1","a2"]', "credit", null, "-4"),
    costRow("a1", "streaming::nova-3", '["eu","prod"]', "0.1"),
    costRow("a\\u0000b", "streaming::nova-3", '["n\\\\u0000ul","x"]', "0.3"),
    costRow(null, 'a "b", c', null, "0.2"),
  ]);
});

test("an answer with over 90 % less does not change the stored amounts", async () => {
  const storeRows = await billingSeries("line_item");
  await storeRows([["20", { line_item: "a" }]]);
  expect((await storeRows([["1.99", { line_item: "a" }]])).slices).toMatchObject([{ day: DAY, decision: "suspect" }]);
  expect((await visibleCost(db)).map(({ dollars }) => dollars)).toEqual(["20"]);
  const [slice] = await read(sql`select source, status, error from bi.coverage`);
  const error = expect.stringMatching(/1.99 dollars for this day, which had 20/);
  expect(slice).toEqual({ source: "billing", status: "suspect", error });
  const credited = await storeRows([
    ["20", { line_item: "a" }],
    ["-19", { line_item: "credit" }],
  ]);
  expect(credited.slices).toMatchObject([{ decision: "replace" }]);
});

const GROUPINGS: readonly Grouping[] = ["none", "accessor", "deployment", "tags"];

/** Reads everything that shows usage, so not the views of billing: bi.balances, bi.focus_cost, and bi.cost_* except bi.cost_estimated*. */
async function allUsage(): Promise<Readonly<Record<string, unknown>>> {
  const views = await read(sql<{ view: string; has_source: boolean }>`
    select c.relname as view, bool_or(a.attname = 'source') as has_source
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relnamespace = 'bi'::regnamespace
      and (c.relname !~ '^(cost_|balances|focus_cost)' or c.relname ~ '^cost_estimated')
    group by c.relname order by c.relname
  `);
  const shown: Record<string, unknown> = {};
  for (const { view, has_source } of views) {
    const usageOnly = has_source ? sql`where source = 'usage'` : sql``;
    const rows = await read(sql<ViewRow>`select v.* from ${sql.id("bi", view)} v ${usageOnly} order by v::text`);
    shown[view] = rows.map(({ age_days: _, ...row }) => row);
  }
  const period = { start: back(3), end: back(1) };
  const between = sql`${period.start}::date, ${period.end}::date`;
  shown.usage_change = await read(sql`select * from bi.usage_change(${between}) c order by c::text`);
  shown.cost_change = await read(sql`select * from bi.cost_change(${between}) c order by c::text`);
  shown.usage_as_of = await read(sql`select * from bi.usage_as_of(now()) c order by c::text`);
  // The overview's cost and splits are left out: once billing is stored, they show the billed cost.
  const { figures, total } = await queryAtOneMoment(db, (run) =>
    overview(run, { period, before: undefined, projects: undefined }, back(0)),
  );
  shown.overview = { figures, total };
  shown.keysLastSeen = (await keyStatuses(db)).map(({ lastSeenInUse }) => lastSeenInUse);
  const projects = await read(sql<{ id: string }>`select distinct project_id as id from usage_export.series`);
  shown.tags = await storedValues(
    db,
    projects.map(({ id }) => id),
    { dimension: "tags", atMost: 50 },
    period,
  );
  return shown;
}

test("storing billing changes no number of usage", async () => {
  const project = newProject();
  const { keys } = await usedKeys(db, project, 1);
  const usage = [ALL_USAGE, PROD].flatMap((filter) =>
    [...GROUPINGS, "model" as const].map((grouping) => configured(project, grouping, { filter, windowDays: 1 })),
  );
  const billing = [ALL_USAGE, PROD].flatMap((filter) =>
    [...GROUPINGS, "line_item,tags" as const].map((grouping) =>
      configured(project, grouping, { source: "billing", filter, windowDays: 1 }),
    ),
  );
  const ids: readonly number[] = await register(db, ...usage, ...billing);
  await setDue(db, ids, back(4), back(1));
  await storePriceBook(db, { metric: "hours", model: "*", currency: "USD", price: "0.3", from: "2020-01-01" });
  for (const [i, { series }] of usage.entries()) {
    // In every grouping the only group is the key's id; the total ignores it.
    const storeDay = (daysAgo: number, requests: string) => {
      const numbers = { requests, hours: "2", total_hours: "2" };
      return store(db, ids[i] ?? 0, { [back(daysAgo)]: [[keys, numbers]] });
    };
    // Day 2 is stored twice, for a restatement. Day 5 is before the due days.
    for (const requests of ["300", "100"]) await storeDay(2, requests);
    await storeDay(5, "100");
    // On this day only the total has usage, and billing has amounts.
    if (series.grouping === "none") await storeDay(3, "100");
  }
  const before = await allUsage();
  expect(before.usage_by_accessor).not.toEqual([]);
  expect(before.cost_estimated).not.toEqual([]);
  expect(before.usage_change).not.toEqual([]);
  expect([before.keysLastSeen, before.tags]).toMatchObject([[back(2)], [{ value: keys[0] }]]);
  expect(before.restatements).not.toEqual([]);

  for (const [i, { series }] of billing.entries()) {
    const seriesId = ids[usage.length + i] ?? 0;
    const group = { accessor: "another key", deployment: "dedicated", line_item: "sync::aura-2", tags: ["prod"] };
    await store(db, seriesId, [billed(back(5), series.grouping, [])]);
    for (const [daysAgo, dollars] of [
      [3, "0.1"],
      [2, "7.7"],
      [2, "7.8"],
      [1, "5"],
    ] as const) {
      await store(db, seriesId, [billed(back(daysAgo), series.grouping, [[dollars, group]])]);
    }
  }
  expect((await visibleCost(db)).length).toBe(3 * billing.length);
  expect(await allUsage()).toEqual(before);
});
