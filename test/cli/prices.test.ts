// What usage costs, from the service's answers to the views: over restated days, changed prices and tiers every amount is the one
// that the tests calculate from the answers. And what `check` says of the price book.

import { sql } from "kysely";
import { expect } from "vitest";
import { addDays } from "../../src/emulator/days.ts";
import type { Emulator } from "../../src/emulator/server.ts";
import { madeUpUsage } from "../../src/emulator/usage.ts";
import { inOrder, storedCosts } from "../db/stored-costs.ts";
import { testDatabase } from "../support/database.ts";
import { type ConfiguredPrice, expectedCosts, rounded, sumOf, type Used } from "../usage/expected-costs.ts";
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

async function monthlyAmounts(): Promise<readonly string[]> {
  const { rows } = await sql<{ text: string }>`
    select to_char(month, 'YYYY-MM') || ' ' || currency || ' ' || amount as text from bi.cost_estimated_monthly
  `.execute(db);
  return rows.map(({ text }) => text).sort();
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
    const months = Map.groupBy(priced, ({ day, currency }) => `${day.slice(0, 7)} ${currency}`);
    const amounts = [...months].map(
      ([month, costs]) => `${month} ${rounded(sumOf(costs.map(({ amount }) => amount ?? "")), 2)}`,
    );
    expect(await monthlyAmounts()).toEqual(amounts.sort());
  }
});

async function bookText(): Promise<readonly string[]> {
  const { rows } = await sql<{ text: string }>`
    select concat_ws(' ', metric, valid_from, valid_until, price, case when replaced_at is not null then 'replaced' end) as text
    from bi.price_book where tier_above = 0 order by price_id
  `.execute(db);
  return rows.map(({ text }) => text);
}

test("check and export store the prices once; another price for past days is a new version, and the older one can still be read", async ({
  context,
}) => {
  const emulator = await context.serve();
  const price = { ...NOVA, tiers: [] };
  const configure = (...prices: readonly object[]) =>
    context.configure({ ...smallConfig(emulator.url, { exports: [EXPORT] }), prices });
  await configure(price);
  expect((await context.run(["check"])).stdout).toContain("prices: 1 version added, 0 replaced");
  expect((await context.run(["check"])).stdout).toContain("prices: stored as configured");
  expect(await bookText()).toEqual(["hours 2026-01-01 0.0077"]);

  await configure({ ...price, price: "0.01", from: "2026-03-01", until: "2026-03-31" });
  const runs = await Promise.all([context.run(["export"]), context.run(["check"])]);
  const changes = runs.flatMap(({ stderr }) => stderr.match(/.*"prices changed".*/g) ?? []);
  expect(changes.map((line) => JSON.parse(line))).toEqual([expect.objectContaining({ added: 3, replaced: 1 })]);
  const corrected = [
    "hours 2026-01-01 0.0077 replaced",
    "hours 2026-03-01 2026-03-31 0.01",
    "hours 2026-01-01 2026-02-28 0.0077",
    "hours 2026-04-01 0.0077",
  ];
  expect(await bookText()).toEqual(corrected);

  // Without any price the stored ones stay in force.
  await configure();
  await context.run(["export"]);
  expect(await bookText()).toEqual(corrected);
});

test("check --offline names each price that no export has the usage for, and what to add", async ({ context }) => {
  const config = smallConfig("https://api.example.com", { exports: [{ groupings: ["none", "model"] }] });
  const speak = { ...NOVA, model: "aura", endpoint: "speak" };
  await context.configure({ ...config, prices: [NOVA, speak] });
  const { status, stdout } = await context.run(["check", "--offline"]);
  expect(status).toBe(0);
  expect(stdout).toContain(
    'warn prices[1]: prices nothing in production: no export reads its usage; add the grouping "model" with the filter { "dimensions": {"endpoint":"speak"} } alone to an export',
  );
  expect(stdout).not.toContain("prices[0]");

  await context.configure({ ...smallConfig("https://api.example.com"), prices: [NOVA] });
  expect((await context.run(["check", "--offline"])).stdout).toContain(
    'warn prices[0]: prices nothing in production: no export reads its usage; add the grouping "model" with a filter without conditions to an export',
  );
});
