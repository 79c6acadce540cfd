// bi.budgets: which usage counts for a budget, its exact sum, and how missing days and days that are not final show.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { databaseNow } from "../../../src/db/connection/database.ts";
import { inTransaction, readAtOneMoment } from "../../../src/db/connection/transaction.ts";
import { budgetsIn, storeBudgets, storePrices } from "../../../src/db/prices-and-budgets.ts";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import { addDays, type Day, dayOf } from "../../../src/usage/days.ts";
import { configuredSeries } from "../../../src/usage/export-plan.ts";
import type { Grouping } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { storeFormerKeys } from "../keys/written-ledger.ts";
import { forgetAll } from "../reported-usage.ts";
import { type BilledRow, billed } from "../stored-billing.ts";
import { failOn, type Numbers, store, UNGUARDED, type Usage } from "../stored-usage.ts";

const { db, read } = await testDatabase();

beforeEach(() => forgetAll(db));

const today = dayOf(await databaseNow(db));
/** The first days of this month, of the next one, and of the month before the last. Most tests use MONTH. */
const THIS_MONTH = `${today.slice(0, 7)}-01`;
const NEXT_MONTH = `${addDays(THIS_MONTH, 31).slice(0, 7)}-01`;
const MONTH = `${addDays(THIS_MONTH, -40).slice(0, 7)}-01`;
const EXPORT = { name: "nightly", schedule: "15 2 * * *", window: { days: 300 }, projects: ["one"] };
const BOTH = { ...EXPORT, projects: ["one", "two"] };
const BILLS = { ...EXPORT, name: "bills", source: "billing", groupings: ["none"] };
const PRICE = { metric: "hours", model: "nova-3", currency: "USD", price: "0.3", from: "2020-01-01" };
const COST = { metric: "cost", currency: "USD" };
const nova = (hours: string) => ({ "nova-3": { hours } });

type Parts = Readonly<Partial<Record<"exports" | "prices", readonly object[]>>>;

/** Stores the budgets of a configuration with two projects, and registers its series. Returns a function for the id of a series. */
async function configure({ budgets, exports, prices = [] }: Parts & { readonly budgets: readonly object[] }) {
  const config = parseConfig(
    JSON.stringify({
      service: { baseUrl: "https://api.example.com" },
      projects: ["one", "two"].map((name) => ({ id: name, name, key: { env: "KEY" } })),
      exports: exports ?? [{ ...EXPORT, groupings: ["none", "model", "accessor", "tags"] }],
      budgets: budgets.map((budget) => ({ name: "b", metric: "hours", amount: 1, from: MONTH, ...budget })),
      prices,
    }),
    "test",
    "/",
  );
  const series = configuredSeries(config.exports);
  const ids = await registerSeries(db, series);
  await storePrices(db, config.prices);
  await storeBudgets(db, config.budgets);
  return (project: string, grouping: string, source?: string, filter = "all") => {
    const one = series.findLast(
      ({ series: one }) =>
        one.project.id === project &&
        one.grouping === grouping &&
        one.source === (source ?? one.source) &&
        one.filter.name === filter,
    );
    if (!one) throw new Error(`no series of ${project} by ${grouping}`);
    return seriesIdOf(ids, one.series);
  };
}

async function budgets(columns: readonly string[], where = sql`true`): Promise<readonly unknown[][]> {
  const list = sql.join(columns.map((column) => sql.id(column)));
  const rows = await read(sql<Record<string, unknown>>`
    select ${list} from bi.budgets where ${where} order by budget, period_start
  `);
  return rows.map((row) => columns.map((column) => row[column]));
}

const daysOfMonth = Number(addDays(addDays(MONTH, 31).slice(0, 7).concat("-01"), -1).slice(8));
const isMonth = sql`period_start = ${MONTH}::date`;
const ofMonth = (...columns: readonly string[]) => budgets(columns, isMonth);

/** The same usage on each of the days. */
const everyDay = (days: readonly Day[], usage: Usage[Day]): Usage =>
  Object.fromEntries(days.map((day) => [day, usage]));
const lastDays = (count: number) => Array.from({ length: count }, (_, i) => addDays(today, i - count));
const monthDays = Array.from({ length: daysOfMonth }, (_, i) => addDays(MONTH, i));
const [FIRST = MONTH, SECOND = MONTH] = monthDays;

const bill = (seriesId: number, day: Day, rows: readonly BilledRow[], grouping: Grouping = "none") =>
  store(db, seriesId, [billed(day, grouping, rows)], UNGUARDED);

async function retire(where: ReturnType<typeof sql>): Promise<void> {
  await sql`update usage_export.series set retired_at = now() where ${where}`.execute(db);
}

/** Gives the rotation "exporter" these keys, whose ids are their names. */
const storeKeys = (...keys: readonly string[]) => storeFormerKeys(db, "exporter", { id: "one", name: "one" }, keys);

test("the use of a month is the exact sum of its days", async () => {
  const idOf = await configure({
    budgets: [
      { name: "all", amount: "100.5", thresholds: [0.5, 80, 100] },
      { name: "one", project: "one", metric: "requests", amount: 3 },
    ],
    exports: [{ ...BOTH, groupings: ["none"] }],
  });
  for (const project of ["one", "two"]) {
    await store(db, idOf(project, "none"), {
      [addDays(MONTH, -1)]: { hours: "7", requests: "7" },
      [MONTH]: { hours: "0.1", requests: "1" },
      [addDays(MONTH, 27)]: { hours: "0.2000000000000000000000000001", requests: "2" },
    });
  }
  expect(await ofMonth("budget", "project", "scope", "amount", "used", "share", "threshold_reached")).toEqual([
    ["all", null, "all", "100.5", "0.6000000000000000000000000002", "0.005970149", "0.5"],
    ["one", "one", "all", "3", "3", "1.000000000", "100"],
  ]);
});

test.each([
  ["0.99998", null],
  ["0.99999", "33.333"],
  ["2", "33.333"],
  ["2.000000000000000000000000001", "66.6666666666666666666666667"],
])("a threshold is reached at exactly its share, not a digit below: %s of 3 hours", async (hours, reached) => {
  const idOf = await configure({ budgets: [{ amount: 3, thresholds: ["33.333", "66.6666666666666666666666667"] }] });
  await store(db, idOf("one", "none"), { [MONTH]: { hours } });
  expect(await ofMonth("threshold_reached")).toEqual([[reached]]);
});

test("a budget counts every group that has its tag, model or key", async () => {
  const idOf = await configure({
    budgets: [
      { name: "key", key: "exporter" },
      { name: "lone key", key: "k3" },
      { name: "made by the rotation", key: "k2" },
      { name: "model", model: "nova-3" },
      { name: "nobody's tag", tag: "none" },
      { name: "tag", tag: 'a"[b' },
    ],
  });
  await storeKeys("k1", "k2");
  /** The groups have 1, 2, 4, 8 and 16 hours. */
  const put = (grouping: string, ...values: readonly unknown[]) => {
    const rows = values.map((value, i): [unknown, Numbers] => [value, { hours: `${2 ** i}` }]);
    return store(db, idOf("one", grouping), { [MONTH]: rows });
  };
  await put("accessor", "k1", "k2", "k3", null);
  await put("model", "nova-3", ["nova-3", "other"], "nova-3-x", null, "[nova-3");
  await put("tags", ['a"[b'], ["z", 'a"[b'], ["a"], [], ["a\u0000", 'a"[b']);
  expect(await ofMonth("budget", "scope", "scope_value", "used")).toEqual([
    ["key", "key", "exporter", "3"],
    ["lone key", "key", "k3", "4"],
    ["made by the rotation", "key", "k2", "2"],
    ["model", "model", "nova-3", "3"],
    ["nobody's tag", "tag", "none", "0"],
    ["tag", "tag", 'a"[b', "19"],
  ]);
});

test("a day waits for a series with conditions while a price needs it and it is exported", async () => {
  const filters = [{ name: "all" }, { name: "listened", dimensions: { endpoint: "listen" } }];
  const idOf = await configure({
    budgets: [COST],
    prices: [
      PRICE,
      { ...PRICE, model: "nova-2", endpoint: "listen", from: addDays(MONTH, 3), until: addDays(MONTH, 4) },
    ],
    exports: [{ ...EXPORT, groupings: ["model"], filters }],
  });
  await store(db, idOf("one", "model"), everyDay(monthDays.slice(0, 8), nova("10")));
  expect(await ofMonth("days_read", "used")).toEqual([[6, "24.0"]]); // 8 days of 10 hours at 0.3; 2 days wait
  await retire(sql`filter = 'listened'`);
  expect(await ofMonth("days_read", "used")).toEqual([[8, "24.0"]]);
});

test("a cost is the sum of bi.cost_estimated in the budget's currency", async () => {
  const idOf = await configure({
    budgets: [
      { ...COST, name: "eur", currency: "EUR" },
      { ...COST, name: "nova", model: "nova-3" },
      { ...COST, name: "usd" },
    ],
    prices: [PRICE, { ...PRICE, model: "base", price: "0.01" }],
  });
  await store(db, idOf("one", "model"), {
    [MONTH]: { ...nova("0.1"), base: { hours: "0.7" }, unpriced: { hours: "5" } },
  });
  expect(await ofMonth("budget", "cost_source", "currency", "used", "has_unpriced")).toEqual([
    ["eur", "estimated", "EUR", "0", true],
    ["nova", "estimated", "USD", "0.03", false],
    ["usd", "estimated", "USD", "0.037", true],
  ]);
});

test("a cost is billed where billing is read by the grouping that the budget needs, else estimated", async () => {
  const idOf = await configure({
    budgets: [
      { ...COST, name: "both" },
      { ...COST, name: "estimated", project: "two" },
      { ...COST, name: "key", project: "one", key: "exporter" },
      { ...COST, name: "key of the rotation", project: "one", key: "k1" },
      { ...COST, name: "model", project: "one", model: "nova-3" },
      { ...COST, name: "tag", project: "one", tag: "a" },
    ],
    prices: [PRICE],
    exports: [
      { ...BOTH, groupings: ["model"] },
      { ...BILLS, groupings: ["none", "accessor", "tags", ["line_item", "tags"]] },
    ],
  });
  await storeKeys("k1");
  for (const project of ["one", "two"]) await store(db, idOf(project, "model"), { [MONTH]: nova("10") });
  const billBy = (grouping: Grouping, ...rows: readonly BilledRow[]) =>
    bill(idOf("one", grouping), MONTH, rows, grouping);
  await billBy("none", ["7.0000000000000000000000000001"]);
  await billBy("accessor", ["1.5", { accessor: "k1" }], ["2", { accessor: "k2" }], [null, { accessor: "exporter" }]);
  await billBy("tags", ["1", { tags: ["a"] }], ["-0.25", { tags: ["a", "n\0ul"] }], ["4", { tags: ["b"] }]);
  await billBy("line_item,tags", ["100", { line_item: "x", tags: ["a"] }]);
  expect(await ofMonth("budget", "cost_source", "used", "has_unpriced")).toEqual([
    // Project one is billed with 7.0…1, and the 10 hours of project two are estimated at 0.3.
    ["both", "billed and estimated", "10.0000000000000000000000000001", false],
    ["estimated", "estimated", "3.0", false],
    // One charge of the rotation has no amount.
    ["key", "billed", "1.5", true],
    ["key of the rotation", "billed", "1.5", false],
    ["model", "estimated", "3.0", false],
    ["tag", "billed", "0.75", false],
  ]);
});

test("a day whose billing was not read yet is estimated", async () => {
  const parts = (billingDays: number) => ({
    budgets: [{ ...COST, amount: 10, thresholds: [60] }],
    prices: [PRICE],
    exports: [
      { ...EXPORT, window: { days: 1 }, groupings: ["model"] },
      { ...BILLS, window: { days: billingDays } },
    ],
  });
  const idOf = await configure(parts(300));
  const use = () => ofMonth("cost_source", "used", "threshold_reached", "days_read", "days_not_final");
  expect(await use()).toEqual([[null, null, null, 0, 0]]);

  await store(db, idOf("one", "model"), everyDay([FIRST, SECOND], nova("10")));
  // The days' billing may still be read, also if the service refused it once.
  await failOn(db, idOf("one", "none"), [FIRST]);
  expect(await use()).toEqual([["estimated", "6.0", "60", 2, 2]]);
  await bill(idOf("one", "none"), FIRST, [["4.5"]]);
  expect(await use()).toEqual([["billed and estimated", "7.5", "60", 2, 2]]);
  await bill(idOf("one", "none"), SECOND, []);
  expect(await use()).toEqual([["billed", "4.5", null, 2, 2]]);
  await configure(parts(1));
  expect(await use()).toEqual([["billed", "4.5", null, 2, 0]]);
});

test("days that were not read are counted as missing", async () => {
  const windowed = (days: number) => ({
    budgets: [{}],
    exports: [{ ...EXPORT, window: { days }, groupings: ["none"] }],
  });
  const idOf = await configure(windowed(300));
  const use = () => ofMonth("used", "days_read", "days_missing", "days_not_final", "is_final");
  const days = daysOfMonth;
  expect(await use()).toEqual([[null, 0, days, 0, false]]);
  await store(db, idOf("one", "none"), everyDay(monthDays.slice(2), { hours: "1" }));
  expect(await use()).toEqual([[String(days - 2), days - 2, 2, days - 2, false]]);
  await store(db, idOf("one", "none"), everyDay(monthDays.slice(0, 2), { hours: "1" }));
  await configure(windowed(1));
  expect(await use()).toEqual([[String(days), days, 0, 0, true]]);
});

test("a project that joins later is missing only from its first due day on, if others were read before", async () => {
  const idOf = await configure({ budgets: [{}], exports: [{ ...BOTH, groupings: ["none"] }] });
  await store(db, idOf("one", "none"), everyDay(monthDays.slice(2, 20), { hours: "1" }));
  await store(db, idOf("two", "none"), everyDay(monthDays.slice(10, 20), { hours: "1" }));
  const use = () => ofMonth("used", "days_read", "days_missing");
  const dueFrom = (project: string, day: number) =>
    sql`update usage_export.series set due_from = ${monthDays[day]}::date where project_id = ${project}`.execute(db);
  expect(await use()).toEqual([["28", 10, daysOfMonth - 10]]);
  await dueFrom("two", 10);
  expect(await use()).toEqual([["28", 18, daysOfMonth - 18]]);
  await dueFrom("one", 2);
  expect(await use()).toEqual([["28", 18, daysOfMonth - 18]]);
});

test("billing of the same grouping says nothing of a budget of usage", async () => {
  const idOf = await configure({ budgets: [{}], exports: [{ ...EXPORT, groupings: ["none"] }, BILLS] });
  await store(db, idOf("one", "none", "usage"), everyDay([FIRST, SECOND], { hours: "2" }));
  await bill(idOf("one", "none", "billing"), FIRST, [["100"]]);
  expect(await ofMonth("used", "days_read")).toEqual([["4", 2]]);
});

const usesOfMonth = () => readAtOneMoment(db, (tx) => budgetsIn(tx, { start: MONTH, end: MONTH }));

test("a budget by tag is marked as never seen if usage by tags was read and none has the tag", async () => {
  const scopes = [{ tag: "prodd" }, { tag: "prod" }, { key: "k" }];
  const idOf = await configure({ budgets: scopes.map((scope) => ({ ...scope, name: Object.values(scope)[0] })) });
  const unseen = async () => (await usesOfMonth()).flatMap(({ name, isNeverSeen }) => (isNeverSeen ? [name] : []));
  await sql`truncate usage_export.group_value cascade`.execute(db);
  expect(await unseen()).toEqual([]);
  await store(db, idOf("one", "tags"), { [MONTH]: [[["prod", "x"], { hours: "1" }]] });
  expect(await unseen()).toEqual(["prodd"]);
});

test("a budget of which nearly all is used is not shown as used up", async () => {
  const idOf = await configure({ budgets: [{ amount: 1000 }] });
  await store(db, idOf("one", "none"), { [MONTH]: { hours: "999.999" } });
  expect((await usesOfMonth()).map(({ percent }) => percent)).toEqual(["99.99"]);
});

test("a daily budget has one row for each day", async () => {
  const idOf = await configure({ budgets: [{ period: "day", from: addDays(today, -3) }] });
  await store(db, idOf("one", "none"), { [addDays(today, -2)]: { hours: "2" }, [addDays(today, -1)]: { hours: "1" } });
  expect(await budgets(["period_start", "period_end", "used"])).toEqual(
    [null, "2", "1", null].map((used, i) => [addDays(today, i - 3), addDays(today, i - 3), used]),
  );
});

test("a changed budget applies to all of its periods", async () => {
  const amounts = () => budgets(["budget", "amount"], sql`period_start >= ${MONTH}::date`);
  await configure({ budgets: [{ amount: 5 }] });
  const changed = (await amounts()).map(() => ["b", "6"]);
  await configure({ budgets: [{ amount: 6 }] });
  expect(await amounts()).toEqual(changed);
  await configure({ budgets: [{ amount: 6 }, { name: "new", amount: 7, from: THIS_MONTH }] });
  expect(await amounts()).toEqual([...changed, ["new", "7"]]);
  await configure({ budgets: [] });
  expect(await amounts()).toEqual([]);
});

test("a budget that is changed before it begins still begins on its day", async () => {
  for (const amount of [5, 6]) await configure({ budgets: [{ amount, from: NEXT_MONTH }] });
  const stored = await read(sql`select valid_from::text as start, amount::text from usage_export.budget`);
  expect(stored).toEqual([{ start: NEXT_MONTH, amount: "6" }]);
});

test("a budget without a first day keeps the one that it got, until its period changes", async () => {
  const firstDay = async (budget: object) => {
    await configure({ budgets: [{ ...budget, from: undefined }] });
    return (await read(sql<{ day: Day }>`select valid_from::text as day from usage_export.budget`))[0]?.day;
  };
  await firstDay({});
  await sql`update usage_export.budget set valid_from = ${MONTH}::date`.execute(db);
  expect([await firstDay({ amount: 2 }), await firstDay({ period: "day" })]).toEqual([MONTH, today]);
});

const isCurrent = sql`period_end >= ${today}::date`;

test("the forecast of the current month is that of bi.usage_forecast, added up over all projects", async () => {
  const idOf = await configure({
    budgets: [
      { name: "both" },
      { name: "day", period: "day", from: today },
      { name: "model", model: "nova-3", project: "one" },
      { name: "one", project: "one" },
    ],
    exports: [{ ...BOTH, window: { days: 3 }, groupings: ["none", "model"] }],
  });
  for (const project of ["one", "two"]) await store(db, idOf(project, "none"), everyDay(lastDays(60), { hours: "2" }));
  await store(db, idOf("one", "model"), everyDay(lastDays(60), nova("0.5")));
  const [ofOne] = await read(sql<{ forecast: string }>`
    select trim_scale(forecast)::text as forecast from bi.usage_forecast where project = 'one' and metric = 'hours'
  `);
  const daysOfThisMonth = Number(addDays(NEXT_MONTH, -1).slice(8));
  expect(Number(ofOne?.forecast)).toBe(2 * daysOfThisMonth);
  const found = await read(sql<{ budget: string; forecast: string | null }>`
    select budget, trim_scale(forecast)::text as forecast from bi.budgets where ${isCurrent}
  `);
  expect(Object.fromEntries(found.map(({ budget, forecast }) => [budget, forecast]))).toEqual({
    ...{ both: String(4 * daysOfThisMonth), day: null, model: String(daysOfThisMonth / 2), one: ofOne?.forecast },
  });
});

test("a project that has vanished counts until its last day", async () => {
  const idOf = await configure({ budgets: [{}], exports: [{ ...BOTH, window: { days: 3 }, groupings: ["none"] }] });
  await store(db, idOf("one", "none"), everyDay(lastDays(60), { hours: "2" }));
  await store(db, idOf("two", "none"), everyDay(lastDays(60).slice(0, 20), { hours: "2" }));
  const use = async () => (await budgets(["used", "days_missing", "forecast"], isCurrent))[0] ?? [];
  const before = await use();
  await retire(sql`project_id = 'two'`);
  const after = await use();
  expect(after.slice(0, 2)).toEqual([before[0], 0]);
  // 4 hours a day are expected of both projects, and 2 of the remaining one; a month has 28 days or more.
  expect(Number(before[2])).toBeGreaterThan(3 * 28);
  expect(Number(after[2])).toBeGreaterThan(0);
  expect(Number(after[2])).toBeLessThan(3 * 28);
});

test("a day counts as unread while billing is missing, even of a project whose usage is no longer exported", async () => {
  const exports = [
    { ...BOTH, groupings: ["model"] },
    { ...BILLS, projects: ["one", "two"] },
  ];
  const idOf = await configure({ budgets: [{ ...COST, amount: 10 }], exports });
  for (const project of ["one", "two"]) {
    await store(db, idOf(project, "model"), { [FIRST]: nova("1") });
    await bill(idOf(project, "none"), FIRST, [["4.5"]]);
  }
  await retire(sql`source = 'usage'`);
  await bill(idOf("one", "none"), SECOND, [["4.5"]]);
  expect(await ofMonth("used", "days_read")).toEqual([["13.5", 1]]);
  await bill(idOf("two", "none"), SECOND, [["4.5"]]);
  expect(await ofMonth("used", "days_read")).toEqual([["18.0", 2]]);
});

test("what was billed to a project that has vanished still counts", async () => {
  const exports = [{ ...BILLS, projects: ["one", "two"] }];
  const idOf = await configure({ budgets: [{ ...COST, amount: 10 }], exports });
  for (const project of ["one", "two"]) await bill(idOf(project, "none"), FIRST, [["4.5"]]);
  await bill(idOf("one", "none"), SECOND, [["1"]]);
  await retire(sql`project_id = 'two'`);
  expect(await ofMonth("cost_source", "used", "days_read")).toEqual([["billed", "10.0", 2]]);
});

test("a program that finds its prices, budgets and series stored already waits for no lock", async () => {
  const parts = { budgets: [{}], prices: [PRICE] };
  await configure(parts);
  await inTransaction(db, async (tx) => {
    await sql`
      lock table usage_export.price, usage_export.budget, usage_export.series in share row exclusive mode
    `.execute(tx);
    await configure(parts);
  });
});
