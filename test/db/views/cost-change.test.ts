// bi.cost_change: the change of the estimated cost in volume and price effect, which add up to the change exactly.

import fc from "fast-check";
import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { storePrices } from "../../../src/db/prices-and-budgets.ts";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import type { Filter } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { forgetAll, storeSeries, storeUsage, type Usage } from "../reported-usage.ts";
import { newProject, type ViewRow } from "../stored-usage.ts";

const { db } = await testDatabase();

beforeEach(async () => {
  await forgetAll(db);
  await sql`truncate usage_export.configured, usage_export.price cascade`.execute(db);
});

const NOVA = { metric: "hours", model: "nova", currency: "USD", price: "0.3", from: "2026-01-01" };

async function price(...prices: readonly object[]): Promise<void> {
  const service = { baseUrl: "https://api.example.com" };
  const projects = [{ id: "p", name: "p", key: { env: "KEY" } }];
  const config = parseConfig(JSON.stringify({ service, projects, prices }), { source: "test", baseDir: "/" });
  await storePrices(db, config.prices);
}

async function use(hours: Readonly<Record<string, Readonly<Record<string, string>>>>): Promise<void> {
  const usage: Usage = Object.fromEntries(
    Object.entries(hours).map(([day, models]) => [
      `2026-03-${day}`,
      Object.entries(models).map(([model, amount]) => [model, { hours: amount }] as const),
    ]),
  );
  await storeSeries(db, [{ project: newProject(), grouping: "model", usage }]);
}

async function changes(from: string, to: string): Promise<readonly string[]> {
  const { rows } = await sql<ViewRow>`
    select part, model, currency, status, trim_scale(quantity_before)::text || '>' || trim_scale(quantity_after)::text as quantity,
      trim_scale(change)::text as change, trim_scale(volume_effect)::text as volume, trim_scale(price_effect)::text as price
    from bi.cost_change(${`2026-03-${from}`}::date, ${`2026-03-${to}`}::date) order by part desc, model, currency
  `.execute(db);
  return rows.map((row) =>
    Object.values(row)
      .filter((value) => value !== null)
      .join(" "),
  );
}

test("more at the same price is a volume effect, the same at another price is a price effect", async () => {
  await price(
    { ...NOVA, until: "2026-03-10" },
    { ...NOVA, price: "0.5", from: "2026-03-11" },
    { ...NOVA, model: "base", price: "0.1" },
  );
  await use({ 10: { nova: "10", base: "3" }, 11: { nova: "30", base: "7" } });
  expect(await changes("11", "11")).toEqual([
    "group base USD changed 3>7 0.4 0.4 0",
    // 20 hours more at 0.3, and 30 hours at 0.2 more.
    "group nova USD changed 10>30 12 6 6",
  ]);
});

test("a new model and a vanished one are volume, and usage without a price has no amount", async () => {
  await price(NOVA, { ...NOVA, model: "base" });
  await use({ 10: { nova: "10", free: "1" }, 11: { base: "5", free: "2" } });
  expect(await changes("11", "11")).toEqual([
    "group base USD new 0>5 1.5 1.5 0",
    "group free unpriced 1>2",
    "group nova USD vanished 10>0 -3 -3 0",
  ]);
});

test("a day that only one period has is a row of its own", async () => {
  await price(NOVA);
  await use({ 10: { nova: "10" }, 12: { nova: "20" }, 13: { nova: "30" } });
  expect(await changes("12", "13")).toEqual(["group nova USD changed 10>20 3 3 0", "days not compared USD 0>30 9"]);
});

test("a day is compared only if the series with the conditions of a price was read as well", async () => {
  await price({ ...NOVA, endpoint: "listen", until: "2026-03-11" });
  const project = newProject();
  const listen: Filter = { name: "listen", features: {}, dimensions: { endpoint: "listen" } };
  const usage = (...days: readonly number[]): Usage =>
    Object.fromEntries(days.map((day) => [`2026-03-${day}`, [["nova", { hours: "10" }]]]));
  const due = { start: "2026-03-10", end: "2026-03-13" };
  const [, filtered = 0] = await storeSeries(db, [
    { project, grouping: "model", due, usage: usage(10, 11, 12, 13) },
    { project, grouping: "model", due, filter: listen, usage: usage(10) },
  ]);
  expect(await changes("11", "11")).toEqual(["days not compared USD 10>0 -3", "days not compared 0>10"]);
  const { rows } = await sql<ViewRow>`
    select distinct days_compared, days_lacking_before, days_lacking_after, is_final
    from bi.cost_change('2026-03-11', '2026-03-11')
  `.execute(db);
  expect(rows).toEqual([{ days_compared: 0, days_lacking_before: 0, days_lacking_after: 1, is_final: false }]);

  await storeUsage(db, filtered, "model", usage(11));
  const isFinal = async () =>
    (await sql<ViewRow>`select is_final from bi.cost_change('2026-03-11', '2026-03-11')`.execute(db)).rows;
  expect(await changes("11", "11")).toEqual(["group nova USD same 10>10 0 0 0"]);
  expect(await isFinal()).toEqual([{ is_final: true }]);
  await recordFailure(db, { seriesId: filtered, days: ["2026-03-10"], fetchNo: await nextFetchNo(db), reason: "down" });
  expect(await isFinal()).toEqual([{ is_final: false }]);

  // By then the price is over, and nobody needs the series.
  expect(await changes("13", "13")).toEqual(["group nova unpriced 10>10"]);
});

test("on random usage and prices the rows, and the effects of each row, add up to the change of bi.cost_estimated", async () => {
  const amount = fc
    .tuple(fc.integer({ min: 0, max: 999 }), fc.integer({ min: 1, max: 999_999_999 }))
    .map(([a, b]) => `${a}.${b}`);
  const day = fc.dictionary(fc.constantFrom("nova", "base", "free"), amount);
  const days = fc.array(fc.option(day, { nil: undefined, freq: 5 }), { minLength: 12, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(days, fc.array(amount, { minLength: 3, maxLength: 3 }), async (usage, [first, second, base]) => {
      await forgetAll(db);
      await price(
        { ...NOVA, price: first, until: "2026-03-15" },
        { ...NOVA, price: second, from: "2026-03-16" },
        { ...NOVA, model: "base", price: base, currency: "EUR" },
      );
      await use(Object.fromEntries(usage.flatMap((models, i) => (models ? [[String(10 + i), models]] : []))));
      const { rows } = await sql<{ wrong: number; rows: number }>`
        with asked as (
          select d as from_date, d + length - 1 as to_date
          from generate_series(0, 9) n cross join lateral (select date '2026-03-12' + n as d) as first cross join generate_series(1, 3) as length
        ), explained as (
          select a.*, c.currency, sum(c.change) as change, sum(c.amount_before) as before, sum(c.amount_after) as after,
            bool_and(c.part <> 'group' or c.volume_effect + c.price_effect = c.change) as effects_add_up
          from asked a cross join lateral bi.cost_change(a.from_date, a.to_date) c
          where c.currency is not null group by a.from_date, a.to_date, c.currency
        ), expected as (
          select a.*, c.currency,
            coalesce(sum(c.amount) filter (where c.usage_date < a.from_date), 0) as before,
            coalesce(sum(c.amount) filter (where c.usage_date >= a.from_date), 0) as after
          from asked a
          join bi.cost_estimated c on c.usage_date between a.from_date - (a.to_date - a.from_date + 1) and a.to_date
          where c.currency is not null group by a.from_date, a.to_date, c.currency
        )
        select count(*)::integer as rows, (count(*) filter (
          where e.change is distinct from x.after - x.before or e.before is distinct from x.before
            or e.after is distinct from x.after or not e.effects_add_up
        ))::integer as wrong
        from expected x full join explained e using (from_date, to_date, currency)
      `.execute(db);
      expect(rows[0]?.wrong).toBe(0);
    }),
    { numRuns: 20 },
  );
});
