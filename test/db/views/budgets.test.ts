// bi.budgets: what counts for which budget, exactly, and what is said of days that are missing or not final.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { databaseNow } from "../../../src/db/connection/database.ts";
import { inTransaction, readSnapshot } from "../../../src/db/connection/transaction.ts";
import { budgetsIn, storeBudgets, storePrices } from "../../../src/db/prices-and-budgets.ts";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import { addDays, type Day, dayOf } from "../../../src/usage/days.ts";
import { configuredSeries } from "../../../src/usage/plan.ts";
import type { Grouping } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { type BilledRow, billed } from "../stored-billing.ts";
import { rowOf, rowsOn, store, total } from "../stored-usage.ts";

const { db } = await testDatabase();

beforeEach(async () => {
  await sql`
    truncate usage_export.configured, usage_export.budget, usage_export.price, usage_export.series, usage_export.snapshot_row, usage_export.api_key,
      usage_export.rotation cascade
  `.execute(db);
});

const today = dayOf(await databaseNow(db));
/** The first day of the month before the last. */
const MONTH = `${addDays(`${today.slice(0, 7)}-01`, -40).slice(0, 7)}-01`;
const EXPORT = { name: "nightly", schedule: "15 2 * * *", window: { days: 300 }, projects: ["one"] };
const PRICE = { metric: "hours", model: "nova-3", currency: "USD", price: "0.3", from: "2020-01-01" };

type Parts = {
  readonly budgets: readonly object[];
  readonly exports?: readonly object[];
  readonly prices?: readonly object[];
};

/** Stores the budgets of a configuration with two projects, and registers its series. */
async function configure({ budgets, exports, prices = [] }: Parts) {
  const config = parseConfig(
    JSON.stringify({
      service: { baseUrl: "https://api.example.com" },
      projects: ["one", "two"].map((name) => ({ id: name, name, key: { env: "KEY" } })),
      exports: exports ?? [{ ...EXPORT, groupings: ["none", "model", "accessor", "tags"] }],
      budgets: budgets.map((budget) => ({ name: "b", metric: "hours", amount: 1, from: MONTH, ...budget })),
      prices,
    }),
    { source: "test", baseDir: "/" },
  );
  const series = configuredSeries(config.exports);
  const ids = await registerSeries(db, series);
  await storePrices(db, config.prices);
  await storeBudgets(db, config.budgets);
  return (project: string, grouping: string) => {
    const one = series.findLast(({ series }) => series.project.id === project && series.grouping === grouping);
    if (!one) throw new Error(`no series of ${project} by ${grouping}`);
    return seriesIdOf(ids, one.series);
  };
}

async function budgets(columns: readonly string[], where = sql`true`): Promise<readonly unknown[][]> {
  const list = sql.join(columns.map((column) => sql.id(column)));
  const { rows } = await sql<Record<string, unknown>>`
    select ${list} from bi.budgets where ${where} order by budget, period_start
  `.execute(db);
  return rows.map((row) => columns.map((column) => row[column]));
}

const daysOfMonth = Number(addDays(addDays(MONTH, 31).slice(0, 7).concat("-01"), -1).slice(8));
const isMonth = sql`period_start = ${MONTH}::date`;

test("the use of a month is the exact sum of its days, over all projects, and of no other month", async () => {
  const id = await configure({
    budgets: [
      { name: "all", amount: "100.5", thresholds: [0.5, 80, 100] },
      { name: "one", project: "one", metric: "requests", amount: 3 },
    ],
    exports: [{ ...EXPORT, projects: ["one", "two"], groupings: ["none"] }],
  });
  for (const project of ["one", "two"]) {
    await store(
      db,
      id(project, "none"),
      [
        total(addDays(MONTH, -1), { hours: "7", requests: "7" }),
        total(MONTH, { hours: "0.1", requests: "1" }),
        total(addDays(MONTH, 27), { hours: "0.2000000000000000000000000001", requests: "2" }),
      ],
      { grouping: "none" },
    );
  }
  const columns = ["budget", "project", "scope", "amount", "used", "share", "threshold_reached"];
  expect(await budgets(columns, isMonth)).toEqual([
    ["all", null, "all", "100.5", "0.6000000000000000000000000002", "0.005970149", "0.5"],
    ["one", "one", "all", "3", "3", "1.000000000", "100"],
  ]);
});

test("a threshold is reached at exactly its share, not a digit below", async () => {
  const id = await configure({ budgets: [{ amount: 3, thresholds: ["33.333", "66.6666666666666666666666667"] }] });
  const use = (hours: string) =>
    store(db, id("one", "none"), [total(MONTH, { hours })], { grouping: "none", cliffGuard: "off" });
  const reached = () => budgets(["threshold_reached"], isMonth);
  await use("0.99998");
  expect(await reached()).toEqual([[null]]);
  await use("0.99999");
  expect(await reached()).toEqual([["33.333"]]);
  await use("2");
  expect(await reached()).toEqual([["33.333"]]);
  await use("2.000000000000000000000000001");
  expect(await reached()).toEqual([["66.6666666666666666666666667"]]);
});

test("a tag counts with every set that holds it, a model too, and a key with all keys of its rotation", async () => {
  const id = await configure({
    budgets: [
      { name: "key", key: "exporter" },
      { name: "lone key", key: "k3" },
      { name: "made by the rotation", key: "k2" },
      { name: "model", model: "nova-3" },
      { name: "nobody's tag", tag: "none" },
      { name: "tag", tag: 'a"[b' },
    ],
  });
  await sql`insert into usage_export.rotation (name) values ('exporter')`.execute(db);
  for (const key of ["k1", "k2"]) {
    await sql`
      insert into usage_export.api_key (intent_id, rotation, project_id, project, api_key_id, state, comment, scopes_asked)
      values (${key}, 'exporter', 'one', 'one', ${key}, 'retired', 'c', '{}')
    `.execute(db);
  }
  const put = (grouping: "accessor" | "model" | "tags", rows: readonly (readonly [unknown, string])[]) =>
    store(
      db,
      id("one", grouping),
      [
        rowsOn(
          MONTH,
          rows.map(([value, hours]) => rowOf(value, { hours }, null, grouping)),
        ),
      ],
      { grouping },
    );
  await put("accessor", [
    ["k1", "1"],
    ["k2", "2"],
    ["k3", "4"],
    [null, "8"],
  ]);
  await put("model", [
    ["nova-3", "1"],
    [["nova-3", "other"], "2"],
    ["nova-3-x", "4"],
    [null, "8"],
    ["[nova-3", "16"],
  ]);
  await put("tags", [
    [['a"[b'], "1"],
    [["z", 'a"[b'], "2"],
    [["a"], "4"],
    [[], "8"],
    [["a\u0000", 'a"[b'], "16"],
  ]);
  expect(await budgets(["budget", "scope", "scope_value", "used"], isMonth)).toEqual([
    ["key", "key", "exporter", "3"],
    ["lone key", "key", "k3", "4"],
    ["made by the rotation", "key", "k2", "2"],
    ["model", "model", "nova-3", "3"],
    ["nobody's tag", "tag", "none", "0"],
    ["tag", "tag", 'a"[b', "19"],
  ]);
});

test("a priced filter that is not exported any more makes no day of a budget missing", async () => {
  const filters = [{ name: "all" }, { name: "listened", dimensions: { endpoint: "listen" } }];
  const id = await configure({
    budgets: [{ metric: "cost", currency: "USD" }],
    prices: [PRICE, { ...PRICE, model: "nova-2", endpoint: "listen" }],
    exports: [{ ...EXPORT, groupings: ["model"], filters }],
  });
  const { rows: series } = await sql<{ id: number }>`
    select series_id as id from usage_export.series where filter = 'all'
  `.execute(db);
  expect(id("one", "model")).not.toBe(series[0]?.id);
  await store(db, series[0]?.id ?? 0, [rowsOn(MONTH, [rowOf("nova-3", { hours: "10" }, null, "model")])], {
    grouping: "model",
  });
  expect(await budgets(["days_read"], isMonth)).toEqual([[0]]);
  await sql`update usage_export.series set retired_at = now() where filter = 'listened'`.execute(db);
  expect(await budgets(["days_read"], isMonth)).toEqual([[1]]);
});

test("a cost is that of bi.cost_estimated in the currency, and what has no price is said", async () => {
  const id = await configure({
    budgets: [
      { name: "eur", metric: "cost", currency: "EUR" },
      { name: "nova", metric: "cost", currency: "USD", model: "nova-3" },
      { name: "usd", metric: "cost", currency: "USD" },
    ],
    prices: [PRICE, { ...PRICE, model: "base", price: "0.01" }],
  });
  const rows = [
    ["nova-3", "0.1"],
    ["base", "0.7"],
    ["unpriced", "5"],
  ] as const;
  await store(
    db,
    id("one", "model"),
    [
      rowsOn(
        MONTH,
        rows.map(([model, hours]) => rowOf(model, { hours }, null, "model")),
      ),
    ],
    {
      grouping: "model",
    },
  );
  expect(await budgets(["budget", "cost_source", "currency", "used", "has_unpriced"], isMonth)).toEqual([
    ["eur", "estimated", "EUR", "0", true],
    ["nova", "estimated", "USD", "0.03", false],
    ["usd", "estimated", "USD", "0.037", true],
  ]);
});

test("a cost is the billed one where billing is read as the budget needs it, and estimated in other projects", async () => {
  const id = await configure({
    budgets: [
      { name: "both", metric: "cost", currency: "USD" },
      { name: "estimated", metric: "cost", currency: "USD", project: "two" },
      { name: "key", metric: "cost", currency: "USD", project: "one", key: "exporter" },
      { name: "model", metric: "cost", currency: "USD", project: "one", model: "nova-3" },
      { name: "tag", metric: "cost", currency: "USD", project: "one", tag: "a" },
    ],
    prices: [PRICE],
    exports: [
      { ...EXPORT, projects: ["one", "two"], groupings: ["model"] },
      { ...EXPORT, name: "bills", source: "billing", groupings: ["none", "accessor", "tags", ["line_item", "tags"]] },
    ],
  });
  await sql`insert into usage_export.rotation (name) values ('exporter')`.execute(db);
  await sql`
    insert into usage_export.api_key (intent_id, rotation, project_id, project, api_key_id, state, comment, scopes_asked)
    values ('k1', 'exporter', 'one', 'one', 'k1', 'retired', 'c', '{}')
  `.execute(db);
  for (const project of ["one", "two"]) {
    const rows = rowsOn(MONTH, [rowOf("nova-3", { hours: "10" }, null, "model")]);
    await store(db, id(project, "model"), [rows], { grouping: "model" });
  }
  const bill = (grouping: Grouping, rows: readonly BilledRow[]) =>
    store(db, id("one", grouping), [billed(MONTH, grouping, rows)], { grouping });
  await bill("none", [["7.0000000000000000000000000001"]]);
  await bill("accessor", [
    ["1.5", { accessor: "k1" }],
    ["2", { accessor: "k2" }],
    [null, { accessor: "exporter" }],
  ]);
  await bill("tags", [
    ["1", { tags: ["a"] }],
    ["-0.25", { tags: ["a", "n\0ul"] }],
    ["4", { tags: ["b"] }],
  ]);
  await bill("line_item,tags", [["100", { line_item: "x", tags: ["a"] }]]);
  expect(await budgets(["budget", "cost_source", "used"], isMonth)).toEqual([
    ["both", "billed and estimated", "10.0000000000000000000000000001"],
    ["estimated", "estimated", "3.0"],
    ["key", "billed", "1.5"],
    ["model", "estimated", "3.0"],
    ["tag", "billed", "0.75"],
  ]);
});

test("a day without billing is estimated, also while billing is configured", async () => {
  const parts = (billingDays: number) => ({
    budgets: [{ metric: "cost", currency: "USD", amount: 10, thresholds: [60] }],
    prices: [PRICE],
    exports: [
      { ...EXPORT, window: { days: 1 }, groupings: ["model"] },
      { ...EXPORT, name: "bills", source: "billing", window: { days: billingDays }, groupings: ["none"] },
    ],
  });
  const id = await configure(parts(300));
  const columns = ["cost_source", "used", "threshold_reached", "days_read", "days_not_final"];
  expect(await budgets(columns, isMonth)).toEqual([[null, null, null, 0, 0]]);

  const rows = [rowOf("nova-3", { hours: "10" }, null, "model")];
  const days = [MONTH, addDays(MONTH, 1)].map((day) => rowsOn(day, rows));
  await store(db, id("one", "model"), days, { grouping: "model" });
  // The days' billing may still be read, also if the service refused it once.
  const failure = { seriesId: id("one", "none"), days: [MONTH], fetchNo: await nextFetchNo(db), reason: "down" };
  await recordFailure(db, failure);
  expect(await budgets(columns, isMonth)).toEqual([["estimated", "6.0", "60", 2, 2]]);

  const bill = (day: Day, dollars: readonly BilledRow[]) =>
    store(db, id("one", "none"), [billed(day, "none", dollars)], { grouping: "none", emptyGuard: "off" });
  await bill(MONTH, [["4.5"]]);
  expect(await budgets(columns, isMonth)).toEqual([["billed and estimated", "7.5", "60", 2, 2]]);
  await bill(addDays(MONTH, 1), []);
  expect(await budgets(columns, isMonth)).toEqual([["billed", "4.5", null, 2, 2]]);
  await configure(parts(1));
  expect(await budgets(columns, isMonth)).toEqual([["billed", "4.5", null, 2, 0]]);
});

test("a charge without an amount is said to be missing in what was used", async () => {
  const id = await configure({
    budgets: [{ metric: "cost", currency: "USD" }],
    exports: [{ ...EXPORT, source: "billing", groupings: ["none"] }],
  });
  await store(db, id("one", "none"), [billed(MONTH, "none", [[null]])], { grouping: "none" });
  expect(await budgets(["cost_source", "used", "has_unpriced"], isMonth)).toEqual([["billed", "0", true]]);
});

test("days that were not read are counted and not taken for zero; a period is final once each day is", async () => {
  const windowed = (days: number) => [{ ...EXPORT, window: { days }, groupings: ["none"] }];
  const id = await configure({ budgets: [{}], exports: windowed(300) });
  const columns = ["used", "days_read", "days_missing", "days_not_final", "is_final"];
  const days = daysOfMonth;
  expect(await budgets(columns, isMonth)).toEqual([[null, 0, days, 0, false]]);

  const all = Array.from({ length: days }, (_, i) => total(addDays(MONTH, i), { hours: "1" }));
  await store(db, id("one", "none"), all.slice(2), { grouping: "none" });
  expect(await budgets(columns, isMonth)).toEqual([[String(days - 2), days - 2, 2, days - 2, false]]);

  await store(db, id("one", "none"), all.slice(0, 2), { grouping: "none" });
  await configure({ budgets: [{}], exports: windowed(1) });
  expect(await budgets(columns, isMonth)).toEqual([[String(days), days, 0, 0, true]]);
});

test("a project that joins later is missing on no day before its first due one, unless nothing else was read of that day", async () => {
  const id = await configure({
    budgets: [{}],
    exports: [{ ...EXPORT, projects: ["one", "two"], groupings: ["none"] }],
  });
  const days = Array.from({ length: 20 }, (_, i) => addDays(MONTH, i));
  const put = (project: string, read: readonly Day[]) =>
    store(
      db,
      id(project, "none"),
      read.map((day) => total(day, { hours: "1" })),
      { grouping: "none" },
    );
  await put("one", days.slice(2));
  await put("two", days.slice(10));
  const columns = ["used", "days_read"];
  expect(await budgets(columns, isMonth)).toEqual([["28", 10]]);
  await sql`
    update usage_export.series set due_from = ${days[10]}::date where project_id = 'two'
  `.execute(db);
  expect(await budgets(columns, isMonth)).toEqual([["28", 18]]);
  await sql`update usage_export.series set due_from = ${days[2]}::date where project_id = 'one'`.execute(db);
  expect(await budgets([...columns, "days_missing"], isMonth)).toEqual([["28", 18, daysOfMonth - 18]]);
});

test("a day waits for a series with conditions only if a price for it is valid on the day", async () => {
  const filters = [{ name: "all" }, { name: "listened", dimensions: { endpoint: "listen" } }];
  const from = addDays(MONTH, 3);
  await configure({
    budgets: [{ metric: "cost", currency: "USD" }],
    prices: [PRICE, { ...PRICE, model: "nova-2", endpoint: "listen", from, until: addDays(MONTH, 4) }],
    exports: [{ ...EXPORT, groupings: ["model"], filters }],
  });
  const { rows: series } = await sql<{ id: number }>`
    select series_id as id from usage_export.series where filter = 'all'
  `.execute(db);
  const days = Array.from({ length: 8 }, (_, i) => addDays(MONTH, i));
  const slices = days.map((day) => rowsOn(day, [rowOf("nova-3", { hours: "10" }, null, "model")]));
  await store(db, series[0]?.id ?? 0, slices, { grouping: "model" });
  expect(await budgets(["days_read", "used"], isMonth)).toEqual([[6, "24.0"]]);
});

test("billing of the same grouping says nothing of a budget of usage", async () => {
  const exports = [
    { ...EXPORT, groupings: ["none"] },
    { ...EXPORT, name: "bills", source: "billing", groupings: ["none"] },
  ];
  const id = await configure({ budgets: [{}], exports });
  const { rows } = await sql<{
    id: number;
  }>`select series_id as id from usage_export.series where source = 'usage'`.execute(db);
  const days = [MONTH, addDays(MONTH, 1)];
  await store(
    db,
    rows[0]?.id ?? 0,
    days.map((day) => total(day, { hours: "2" })),
    { grouping: "none" },
  );
  await store(db, id("one", "none"), [billed(MONTH, "none", [["100"]])], { grouping: "none" });
  expect(await budgets(["used", "days_read"], isMonth)).toEqual([["4", 2]]);
});

test("a budget of a tag that no usage has says so once other tags were read", async () => {
  const parts = {
    budgets: [
      { name: "prodd", tag: "prodd" },
      { name: "prod", tag: "prod" },
      { name: "key", key: "k" },
    ],
  };
  const id = await configure(parts);
  const unseen = async () => {
    const window = { start: MONTH, end: MONTH };
    const uses = await readSnapshot(db, (tx) => budgetsIn(tx, window));
    return uses.flatMap(({ name, isNeverSeen }) => (isNeverSeen ? [name] : []));
  };
  await sql`truncate usage_export.group_value cascade`.execute(db);
  expect(await unseen()).toEqual([]);
  const rows = rowsOn(MONTH, [rowOf(["prod", "x"], { hours: "1" }, null, "tags")]);
  await store(db, id("one", "tags"), [rows], { grouping: "tags" });
  expect(await unseen()).toEqual(["prodd"]);
});

test("a budget of which nearly all is used is not shown as used up", async () => {
  const id = await configure({ budgets: [{ amount: 1000 }] });
  await store(db, id("one", "none"), [total(MONTH, { hours: "999.999" })], { grouping: "none" });
  const uses = await readSnapshot(db, (tx) => budgetsIn(tx, { start: MONTH, end: MONTH }));
  expect(uses.map(({ percent }) => percent)).toEqual(["99.99"]);
});

test("a budget of days has a row a day", async () => {
  const from = addDays(today, -3);
  const id = await configure({ budgets: [{ period: "day", from }] });
  await store(
    db,
    id("one", "none"),
    [1, 2].map((i) => total(addDays(today, -i), { hours: String(i) })),
    { grouping: "none" },
  );
  expect(await budgets(["period_start", "period_end", "used"])).toEqual(
    [3, 2, 1, 0].map((i): [Day, Day, string | null] => {
      const day = addDays(today, -i);
      return [day, day, i === 1 || i === 2 ? String(i) : null];
    }),
  );
});

test("a changed budget holds for all of its periods, and one that is removed has none", async () => {
  const thisMonth = `${today.slice(0, 7)}-01`;
  const amounts = () => budgets(["budget", "amount"], sql`period_start >= ${MONTH}::date`);
  await configure({ budgets: [{ amount: 5 }] });
  const months = (await amounts()).length;
  const changed = Array.from({ length: months }, () => ["b", "6"]);
  await configure({ budgets: [{ amount: 6 }] });
  expect(await amounts()).toEqual(changed);
  await configure({ budgets: [{ amount: 6 }, { name: "new", amount: 7, from: thisMonth }] });
  expect(await amounts()).toEqual([...changed, ["new", "7"]]);
  await configure({ budgets: [] });
  expect(await amounts()).toEqual([]);
});

test("a budget that is changed before it begins still begins on its day", async () => {
  const nextMonth = `${addDays(`${today.slice(0, 7)}-01`, 31).slice(0, 7)}-01`;
  for (const amount of [5, 6]) await configure({ budgets: [{ amount, from: nextMonth }] });
  const { rows } = await sql`
    select valid_from::text as start, amount::text from usage_export.budget
  `.execute(db);
  expect(rows).toEqual([{ start: nextMonth, amount: "6" }]);
});

test("the same budgets again change nothing, and of two processes that start at once one stores them", async () => {
  const parts = {
    budgets: [
      { amount: "1.50", thresholds: ["50.0", 80], tag: "a" },
      { name: "c", metric: "requests" },
    ],
  };
  await configure(parts);
  const stored = () => sql`select *, xmin::text from usage_export.budget order by name`.execute(db);
  const { rows } = await stored();
  await Promise.all([configure(parts), configure(parts)]);
  expect((await stored()).rows).toEqual(rows);
});

test("the forecast of the current month is that of bi.usage_forecast for the same days, and goes up with each project", async () => {
  const exports = [{ ...EXPORT, projects: ["one", "two"], window: { days: 3 }, groupings: ["none", "model"] }];
  const id = await configure({
    budgets: [
      { name: "both" },
      { name: "day", period: "day", from: today },
      { name: "model", model: "nova-3", project: "one" },
      { name: "one", project: "one" },
    ],
    exports,
  });
  const days = Array.from({ length: 60 }, (_, i) => addDays(today, -60 + i));
  for (const project of ["one", "two"]) {
    await store(
      db,
      id(project, "none"),
      days.map((day) => total(day, { hours: "2" })),
      { grouping: "none" },
    );
  }
  const byModel = days.map((day) => rowsOn(day, [rowOf("nova-3", { hours: "0.5" }, null, "model")]));
  await store(db, id("one", "model"), byModel, { grouping: "model" });
  const { rows } = await sql<{ forecast: string }>`
    select trim_scale(forecast)::text as forecast from bi.usage_forecast where project = 'one' and metric = 'hours'
  `.execute(db);
  const ofOne = rows[0]?.forecast;
  const length = Number(addDays(`${addDays(`${today.slice(0, 7)}-01`, 31).slice(0, 7)}-01`, -1).slice(8));
  expect(Number(ofOne)).toBe(2 * length);
  const { rows: found } = await sql`
    select budget, trim_scale(forecast)::text as forecast from bi.budgets where period_end >= ${today}::date order by budget
  `.execute(db);
  expect(found).toEqual([
    { budget: "both", forecast: String(4 * length) },
    { budget: "day", forecast: null },
    { budget: "model", forecast: String(length / 2) },
    { budget: "one", forecast: ofOne },
  ]);
});

test("a project that has vanished counts until its last day, and keeps no later day from being known", async () => {
  const exports = [{ ...EXPORT, projects: ["one", "two"], window: { days: 3 }, groupings: ["none"] }];
  const id = await configure({ budgets: [{}], exports });
  const put = (project: string, days: readonly Day[]) =>
    store(
      db,
      id(project, "none"),
      days.map((day) => total(day, { hours: "2" })),
      { grouping: "none" },
    );
  const days = Array.from({ length: 60 }, (_, i) => addDays(today, -60 + i));
  await put("one", days);
  await put("two", days.slice(0, 20));
  const current = sql`period_end >= ${today}::date`;
  const columns = ["used", "days_missing", "forecast"];
  const [before = []] = await budgets(columns, current);
  await sql`update usage_export.series set retired_at = now() where project_id = 'two'`.execute(db);
  const [after = []] = await budgets(columns, current);
  expect(after.slice(0, 2)).toEqual([before[0], 0]);
  // The days that only the other project has are known by now: half as much a day is to be expected.
  expect(Number(before[2])).toBeGreaterThan(3 * 28);
  expect(Number(after[2])).toBeGreaterThan(0);
  expect(Number(after[2])).toBeLessThan(3 * 28);
});

test("a day is not read while the billing of a project is missing whose usage is not exported any more", async () => {
  const usage = { ...EXPORT, projects: ["one", "two"], groupings: ["model"] };
  const bills = { ...usage, name: "bills", source: "billing", groupings: ["none"] };
  const id = await configure({ budgets: [{ metric: "cost", currency: "USD", amount: 10 }], exports: [usage, bills] });
  const bill = (project: string, day: Day) =>
    store(db, id(project, "none"), [billed(day, "none", [["4.5"]])], { grouping: "none" });
  for (const project of ["one", "two"]) {
    await store(db, id(project, "model"), [rowsOn(MONTH, [rowOf("nova-3", { hours: "1" }, null, "model")])], {
      grouping: "model",
    });
    await bill(project, MONTH);
  }
  await sql`update usage_export.series set retired_at = now() where source = 'usage'`.execute(db);
  await bill("one", addDays(MONTH, 1));
  const columns = ["used", "days_read"];
  expect(await budgets(columns, isMonth)).toEqual([["13.5", 1]]);
  await bill("two", addDays(MONTH, 1));
  expect(await budgets(columns, isMonth)).toEqual([["18.0", 2]]);
});

test("what a project that has vanished was billed stays its cost", async () => {
  const bills = { ...EXPORT, source: "billing", projects: ["one", "two"], groupings: ["none"] };
  const id = await configure({ budgets: [{ metric: "cost", currency: "USD", amount: 10 }], exports: [bills] });
  for (const project of ["one", "two"]) {
    await store(db, id(project, "none"), [billed(MONTH, "none", [["4.5"]])], { grouping: "none" });
  }
  const columns = ["cost_source", "used", "days_read"];
  expect(await budgets(columns, isMonth)).toEqual([["billed", "9.0", 1]]);
  await store(db, id("one", "none"), [billed(addDays(MONTH, 1), "none", [["1"]])], { grouping: "none" });
  await sql`update usage_export.series set retired_at = now() where project_id = 'two'`.execute(db);
  expect(await budgets(columns, isMonth)).toEqual([["billed", "10.0", 2]]);
});

test("a program whose prices, budgets and series are stored already waits for no other that stores them", async () => {
  const parts = { budgets: [{}], prices: [PRICE] };
  await configure(parts);

  await inTransaction(db, async (tx) => {
    await sql`
      lock table usage_export.price, usage_export.budget, usage_export.series in share row exclusive mode
    `.execute(tx);
    await configure(parts);
  });
});
