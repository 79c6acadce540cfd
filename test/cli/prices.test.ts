// What usage costs, from the service's answers to the views: over restated days, changed prices and tiers every amount is the one
// that the tests calculate from the answers. And what `check` says of the price book.

import { sql } from "kysely";
import { expect } from "vitest";
import { addDays } from "../../src/emulator/days.ts";
import { madeUpUsage } from "../../src/emulator/usage.ts";
import { inOrder, storedCosts } from "../db/stored-costs.ts";
import { testDatabase } from "../support/database.ts";
import type { Emulator } from "../support/emulator.ts";
import { type ConfiguredPrice, expectedCosts, type Used } from "../usage/expected-costs.ts";
import { lastDays, servedNumbers } from "./numbers.ts";
import { PROJECT_ID, programTest } from "./program-context.ts";
import { smallConfig } from "./small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const DAYS = 12;
const WINDOW = lastDays(DAYS);
const CHANGED_ON = addDays(WINDOW.end, -4);

const NOVA: ConfiguredPrice = {
  metric: "hours",
  model: "nova-*",
  currency: "USD",
  price: "0.0077",
  per: "minute",
  from: "2026-01-01",
  tiers: [
    { above: "20", price: "0.0065" },
    { above: "90.5", price: "0.0052123456789012345678901234" },
  ],
};
const BOOK = [
  NOVA,
  { ...NOVA, from: CHANGED_ON, price: "0.0081" },
  { metric: "tts_characters", model: "*", currency: "USD", price: "0.030", per: 1000, from: "2026-01-01" },
  {
    metric: "tokens_in",
    model: "*",
    endpoint: "agent",
    currency: "EUR",
    price: "0.1",
    per: 1_000_000,
    from: CHANGED_ON,
  },
];

const EXPORT = {
  groupings: ["none", "model"],
  filters: [{ name: "all" }, { name: "agents", dimensions: { endpoint: "agent" } }],
  window: { days: DAYS },
};

/** What the service answers now, row by row and metric by metric. */
async function usedNow(emulator: Emulator, key: string): Promise<readonly Used[]> {
  const filters = { all: "", agents: "endpoint=agent" };
  const served = await servedNumbers(emulator, key, { groupings: EXPORT.groupings, filters, window: WINDOW });
  return Object.entries(served).flatMap(([series, rows]) => {
    const [grouping, filter] = series.split(" / ");
    // Totals under a filter are not priced.
    if (grouping === "none" && filter !== "all") return [];
    return rows.flatMap(({ usage_date, group, ...metrics }) =>
      Object.entries(metrics).flatMap(([metric, quantity]) =>
        quantity === null
          ? []
          : [
              {
                project: PROJECT_ID,
                day: usage_date ?? "",
                grouping: grouping === "none" ? ("none" as const) : ("model" as const),
                ...(filter === "agents" && { endpoint: "agent" }),
                models: group == null ? null : group.startsWith("[") ? JSON.parse(group).map(String) : [group],
                metric,
                quantity,
              },
            ],
      ),
    );
  });
}

test("every amount is the calculated one, over restated days, a changed price and tiers", async ({ context }) => {
  const made = madeUpUsage(7);
  let ageDays = 1;
  const emulator = await context.serve({ usage: (project, day) => made(project, day, ageDays) });
  await context.configure({ ...smallConfig(emulator.url, { exports: [EXPORT] }), prices: BOOK });

  for (const age of [1, 10]) {
    ageDays = age;
    expect(await context.run(["export"])).toMatchObject({ status: 0 });
    const expected = expectedCosts(await usedNow(emulator, context.key), BOOK);
    expect(inOrder(await storedCosts(db))).toEqual(inOrder(expected));

    const priced = expected.filter(({ status }) => status === "priced");
    expect(new Set(priced.map(({ tier }) => tier)).size).toBe(3);
    expect(new Set(expected.map(({ status }) => status)).size).toBe(3);
  }
});

async function bookText(): Promise<readonly string[]> {
  const { rows } = await sql<{ text: string }>`
    select concat_ws(' ', metric, valid_from, valid_until, price) as text
    from bi.price_book where tier_above = 0 order by price_id
  `.execute(db);
  return rows.map(({ text }) => text);
}

test("an export stores the prices as the file has them, and logs that they changed once", async ({ context }) => {
  const emulator = await context.serve();
  const price = { ...NOVA, tiers: [] };
  const configure = (...prices: readonly object[]) =>
    context.configure({ ...smallConfig(emulator.url, { exports: [EXPORT] }), prices });
  const exported = async () => (await context.run(["export"])).stderr.match(/"prices changed"/g)?.length ?? 0;
  await configure(price);
  expect([await exported(), await exported()]).toEqual([1, 0]);
  expect(await bookText()).toEqual(["hours 2026-01-01 0.0077"]);

  await configure({ ...price, until: "2026-02-28" }, { ...price, price: "0.01", from: "2026-03-01" });
  expect(await exported()).toBe(1);
  expect(await bookText()).toEqual(["hours 2026-01-01 2026-02-28 0.0077", "hours 2026-03-01 0.01"]);

  await configure();
  await exported();
  expect(await bookText()).toEqual([]);
});
