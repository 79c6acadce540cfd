// On 1,000 random pairs of periods: the change of the estimated cost, its parts and their effects add up, by an independent calculation
// from the stored usage and the prices. Prices change, one has tiers, and days are missing.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { readSnapshot } from "../../../src/db/connection/transaction.ts";
import { storePrices } from "../../../src/db/prices.ts";
import { readCostChange } from "../../../src/db/report/cost-change.ts";
import { readReportData } from "../../../src/db/report/report.ts";
import type { CostChange } from "../../../src/report/cost-change.ts";
import { addDays, daysOf, type Window } from "../../../src/usage/days.ts";
import { testDatabase } from "../../support/database.ts";
import { newProject } from "../stored-usage.ts";
import { forgetAll, storeSeries, type Usage } from "./reported-usage.ts";

const { db } = await testDatabase();

beforeEach(async () => {
  await forgetAll(db);
  await sql`truncate usage_export.price cascade`.execute(db);
});

const FIRST_DAY = "2026-01-20";
const DAYS = 50;
const PAIRS = 1_000;
const TIER_ABOVE = 400;
const PRICE_CHANGE = "2026-02-10";
const SCALE = 24;

const PRICES = [
  { model: "nova", metric: "hours", currency: "USD", price: "0.0077", from: "2026-01-01", until: "2026-02-09" },
  { model: "nova", metric: "hours", currency: "USD", price: "0.0081", from: PRICE_CHANGE },
  { model: "aura", metric: "tts_characters", currency: "EUR", price: "0.3", per: 1000, from: "2026-01-01" },
  {
    ...{ model: "base", metric: "hours", currency: "USD", price: "0.3", from: "2026-01-01" },
    tiers: [{ above: TIER_ABOVE, price: "0.1" }],
  },
];

async function storeAllPrices(): Promise<void> {
  const service = { baseUrl: "https://api.example.com" };
  const projects = [{ id: "p", name: "p", key: { env: "KEY" } }];
  const text = JSON.stringify({ service, projects, prices: PRICES });
  await storePrices(db, parseConfig(text, { source: "test", baseDir: "/" }).prices, "the test");
}

/** Decimals as whole numbers of 10^-24. */
function scaled(text: string): bigint {
  const [, sign = "", whole = "", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  return BigInt(`${sign}${whole}${fraction.padEnd(SCALE, "0")}`);
}

function times(a: string, b: string): bigint {
  return (scaled(a) * scaled(b)) / 10n ** BigInt(SCALE);
}

const random = (below: number) => Math.floor(Math.random() * below);

type DayUsage = { readonly nova: string; readonly base: string; readonly aura: string; readonly free: string };

const decimal = () => `${random(60)}.${String(random(1_000_000)).padStart(6, "0")}1`;

/** By day and currency: what the usage of the day costs. */
function costs(
  usage: ReadonlyMap<string, DayUsage>,
): ReadonlyMap<string, { readonly USD: bigint; readonly EUR: bigint }> {
  const result = new Map<string, { USD: bigint; EUR: bigint }>();
  const baseOfMonth = new Map<string, bigint>();
  for (const [day, { nova, base, aura }] of [...usage].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const month = day.slice(0, 7);
    const used = baseOfMonth.get(month) ?? 0n;
    const through = used + scaled(base);
    baseOfMonth.set(month, through);
    const limit = scaled(String(TIER_ABOVE));
    const below = (through < limit ? through : limit) - (used < limit ? used : limit);
    const above = scaled(base) - below;
    const ofNova = times(nova, day < PRICE_CHANGE ? "0.0077" : "0.0081");
    result.set(day, { USD: ofNova + (below * 3n) / 10n + above / 10n, EUR: times(aura, "0.0003") });
  }
  return result;
}

async function madeUp(): Promise<ReadonlyMap<string, DayUsage>> {
  const all = daysOf({ start: FIRST_DAY, end: addDays(FIRST_DAY, DAYS - 1) }).filter(() => random(8) > 0);
  const usage = new Map(
    all.map((day) => [day, { nova: decimal(), base: decimal(), aura: String(random(100_000)), free: decimal() }]),
  );
  const stored: Usage = Object.fromEntries(
    [...usage].map(([day, { nova, base, aura, free }]) => [
      day,
      [
        ["nova", { hours: nova }],
        ["base", { hours: base }],
        ["aura", { tts_characters: aura }],
        ["free", { hours: free }],
      ],
    ]),
  );
  await storeSeries(db, [{ project: newProject(), grouping: "model", usage: stored }]);
  return usage;
}

function sumOf(
  daily: ReadonlyMap<string, { readonly USD: bigint; readonly EUR: bigint }>,
  window: Window,
  currency: "USD" | "EUR",
): bigint {
  return daysOf(window).reduce((sum, day) => sum + (daily.get(day)?.[currency] ?? 0n), 0n);
}

const window = (start: number, length: number): Window => ({
  start: addDays(FIRST_DAY, start),
  end: addDays(FIRST_DAY, start + length - 1),
});

test(`on ${PAIRS} random pairs of periods the cost adds up to the cost of the usage, and each effect to its change`, async () => {
  await storeAllPrices();
  const daily = costs(await madeUp());
  const pairs = Array.from({ length: PAIRS }, (_, pair) => {
    const length = 1 + random(12);
    const beforeLength = random(2) === 0 ? length : 1 + random(12);
    return { pair, after: window(random(DAYS), length), before: window(random(DAYS), beforeLength) };
  });
  const { rows } = await sql<{
    pair: number;
    currency: "USD" | "EUR";
    before: string;
    after: string;
    change: string;
    exact: boolean;
  }>`
    select p.pair, c.currency, sum(c.amount_before)::text as before, sum(c.amount_after)::text as after, sum(c.change)::text as change,
      bool_and(c.part <> 'group' or c.volume_effect + c.price_effect = c.change) as exact
    from json_to_recordset(${JSON.stringify(pairs.map(({ pair, after, before }) => ({ pair, a: after.start, b: after.end, c: before.start, d: before.end })))}::json)
      as p (pair integer, a date, b date, c date, d date)
    cross join lateral bi.cost_change(p.a, p.b, p.c, p.d) c
    where c.currency is not null
    group by p.pair, c.currency
  `.execute(db);
  const answers = new Map(rows.map((row) => [`${row.pair} ${row.currency}`, row]));
  for (const { pair, after, before } of pairs) {
    for (const currency of ["USD", "EUR"] as const) {
      const answer = answers.get(`${pair} ${currency}`);
      const [was, is] = [sumOf(daily, before, currency), sumOf(daily, after, currency)];
      const amounts = [answer?.before, answer?.after, answer?.change].map((amount) => scaled(amount ?? "0"));
      expect([pair, currency, ...amounts]).toEqual([pair, currency, was, is, is - was]);
      expect(answer?.exact ?? true).toBe(true);
    }
  }
  expect(rows.length).toBeGreaterThan(PAIRS);
});

test("what explain and the report read is the same change, and the models beyond the limit are one part", async () => {
  await storeAllPrices();
  const daily = costs(await madeUp());
  for (let i = 0; i < 20; i++) {
    const [period, before] = [window(20 + random(20), 10), window(random(20), 10)];
    const read = await readSnapshot(db, (tx) => readCostChange(tx, { period, before, groupsMax: 1 }));
    for (const cost of read) {
      const currency = cost.currency as "USD" | "EUR";
      const [was, is] = [sumOf(daily, before, currency), sumOf(daily, period, currency)];
      expect([cost.before, cost.after, cost.change].map(scaled)).toEqual([was, is, is - was]);
      expect(partSum(cost, "change")).toBe(is - was);
      expect(partSum(cost, "volume") + partSum(cost, "price")).toBe(scaled(cost.compared.change));
      expect(cost.parts.filter(({ part }) => part === "group")).toHaveLength(1);
      expect(cost.unpricedModels).toBe(1);
    }
    expect(read.map(({ currency }) => currency)).toEqual(["EUR", "USD"]);
  }
});

test("without prices there is no cost", async () => {
  await madeUp();
  const read = readSnapshot(db, (tx) =>
    readCostChange(tx, { period: window(10, 5), before: window(5, 5), groupsMax: 5 }),
  );
  expect(await read).toEqual([]);
});

function partSum({ parts }: CostChange, name: "change" | "volume" | "price"): bigint {
  return parts.reduce((sum, part) => sum + scaled(part[name] ?? "0"), 0n);
}

test("a page leaves the change out if it is calculated from more rows than allowed, and says from how many", async () => {
  await storeAllPrices();
  await madeUp();
  const period = window(20, 10);
  const withLimit = (costRowsMax?: number) => readReportData(db, period, new Date(), { costRowsMax });
  const all = await withLimit();
  expect(all.costs.length).toBeGreaterThan(0);
  expect(all.costRowsLeftOut).toBe(0);
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer from bi.usage_by_model
    where usage_date between ${window(10, 1).start}::date and ${period.end}::date
  `.execute(db);
  const count = rows[0]?.count ?? 0;
  expect(await withLimit(count)).toMatchObject({ costs: all.costs, costRowsLeftOut: 0 });
  expect(await withLimit(count - 1)).toMatchObject({ costs: [], costRowsLeftOut: count });

  await sql`truncate usage_export.price cascade`.execute(db);
  expect(await withLimit(0)).toMatchObject({ costs: [], costRowsLeftOut: 0 });
});
