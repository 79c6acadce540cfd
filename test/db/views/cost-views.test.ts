// bi.cost_estimated: every amount equals the tests' own calculation with whole numbers, no usage is priced twice, and what has no
// price is shown.

import fc from "fast-check";
import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { storePrices } from "../../../src/db/prices-and-budgets.ts";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import type { Price } from "../../../src/usage/prices.ts";
import { seriesKey } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { type ConfiguredPrice, decimal, exact, expectedCosts, type Used } from "../../usage/expected-costs.ts";
import { inOrder, storedCosts } from "../stored-costs.ts";
import { configured, rowOf, rowsOn, store, total } from "../stored-usage.ts";

const { db } = await testDatabase();

async function forgetAll(): Promise<void> {
  await sql`truncate usage_export.configured, usage_export.price, usage_export.series, usage_export.snapshot_row, usage_export.superseded_row cascade`.execute(
    db,
  );
}

beforeEach(forgetAll);

function parsed(prices: readonly object[]): readonly Price[] {
  const service = { baseUrl: "https://api.example.com" };
  const projects = [{ id: "p", name: "p", key: { env: "KEY" } }];
  return parseConfig(JSON.stringify({ service, projects, prices }), { source: "test", baseDir: "/" }).prices;
}

async function price(...prices: readonly object[]): Promise<void> {
  await storePrices(db, parsed(prices));
}

const NOVA = { metric: "hours", model: "nova-3", currency: "USD", price: "0.3", from: "2026-01-01" };

/** Stores rows by model, or totals, each series and day with all its rows at once. */
async function use(used: readonly Used[]): Promise<void> {
  const seriesOf = ({ project, grouping, endpoint, method }: Used) => {
    const dimensions = { ...(endpoint && { endpoint }), ...(method && { method }) };
    const name = Object.values(dimensions).join(" ") || "all";
    return configured({ id: project, name: project }, grouping, { filter: { name, features: {}, dimensions } });
  };
  const series = new Map(used.map(seriesOf).map((one) => [seriesKey(one.series), one]));
  const ids = await registerSeries(db, [...series.values()]);
  for (const [id, rows] of Map.groupBy(used, (row) => seriesIdOf(ids, seriesOf(row).series))) {
    const grouping = rows[0]?.grouping ?? "none";
    const slices = [...Map.groupBy(rows, ({ day }) => day)].map(([day, ofDay]) => {
      const groups = [...Map.groupBy(ofDay, ({ models }) => JSON.stringify(models)).values()].map((same) => ({
        models: same[0]?.models,
        numbers: Object.fromEntries(same.map(({ metric, quantity }) => [metric, quantity])),
      }));
      return grouping === "none"
        ? total(day, groups[0]?.numbers ?? {})
        : rowsOn(
            day,
            groups.map(({ models, numbers }) => rowOf(models, numbers, null, "model")),
          );
    });
    await store(db, id, slices, { grouping });
  }
}

const hours = (quantity: string, part: Partial<Used> = {}): Used => ({
  ...{ project: "p1", day: "2026-03-10", grouping: "model", models: ["nova-3"], metric: "hours", quantity },
  ...part,
});

const shownCosts = async () =>
  (await storedCosts(db))
    .map(({ day, model, endpoint, status, quantity, price, amount }) =>
      [day.slice(5), model, endpoint, status, quantity, price, amount].filter((value) => value !== null).join(" "),
    )
    .sort();

test("a price per thousand, per minute and per second is the exact price of one unit", async () => {
  await price(
    { ...NOVA, price: "0.0077", per: "minute" },
    { ...NOVA, metric: "agent_hours", price: "0.0001", per: "second" },
    { ...NOVA, metric: "tts_characters", price: 0.03, per: 1000 },
  );
  await use([hours("2.5"), hours("2.5", { metric: "agent_hours" }), hours("123", { metric: "tts_characters" })]);
  expect(await shownCosts()).toEqual([
    "03-10 nova-3 priced 123 0.00003 0.00369",
    "03-10 nova-3 priced 2.5 0.36 0.9",
    "03-10 nova-3 priced 2.5 0.462 1.155",
  ]);
});

test("a set of models is priced by a beginning that all of them have, and no model only by *", async () => {
  await price({ ...NOVA, model: "nova*" }, { ...NOVA, metric: "requests", model: "*" });
  const sets = [["a", "b"], ["b", "a", "c"], ["nova-2", "nova-3"], ["aura", "nova-3"], ["a"], null];
  await use(sets.flatMap((models, i) => [hours(`${i + 1}`, { models }), hours("9", { models, metric: "requests" })]));
  const costs = await storedCosts(db);
  const statuses = costs
    .filter(({ metric }) => metric === "hours")
    .map(({ quantity, status }) => `${quantity} ${status}`);
  expect(statuses.sort()).toEqual(["1 unpriced", "2 unpriced", "3 priced", "4 unpriced", "5 unpriced", "6 unpriced"]);
  expect(costs.filter(({ metric, status }) => metric === "requests" && status === "priced")).toHaveLength(6);
});

test("what a price with conditions leaves of a group has no amount", async () => {
  await price({ ...NOVA, endpoint: "listen" });
  await use([hours("5"), hours("2", { endpoint: "listen" })]);
  expect(await shownCosts()).toEqual(["03-10 nova-3 listen priced 2 0.3 0.6", "03-10 nova-3 unpriced 3"]);
});

test("a metric without a price is excused only by a price for what it measures too: hours by other hours, requests by any", async () => {
  await price(
    { ...NOVA, model: "llm", metric: "tokens_in" },
    { ...NOVA, model: "agent", metric: "agent_hours" },
    { ...NOVA, model: "asked", metric: "requests" },
  );
  const metrics = ["hours", "total_hours", "agent_hours", "tokens_in", "tokens_out", "tts_characters", "requests"];
  const models = ["llm", "agent", "asked", "free"];
  await use(models.flatMap((model) => metrics.map((metric) => hours("1", { models: [model], metric }))));
  const costs = await storedCosts(db);
  const metricsOf = (wanted: string, status: string) =>
    costs.filter((cost) => cost.model === wanted && cost.status === status).map(({ metric }) => metric);
  expect(metricsOf("llm", "other_metric")).toEqual(["requests"]);
  expect(metricsOf("agent", "other_metric").sort()).toEqual(["hours", "requests", "total_hours"]);
  expect(metricsOf("asked", "other_metric")).toEqual([]);
  expect(metricsOf("llm", "unpriced")).toContain("tokens_out");
  expect(metricsOf("free", "unpriced").sort()).toEqual(metrics.toSorted());
});

test("without a price book the view is empty", async () => {
  await use([hours("1"), hours("1", { grouping: "none", models: null })]);
  expect(await storedCosts(db)).toEqual([]);
});

const TIERED = {
  ...NOVA,
  price: "1",
  tiers: [
    { above: 10, price: "0.5" },
    { above: 100, price: "0.25" },
  ],
};
const days = (...used: [string, string, string?][]) =>
  used.map(([day, quantity, project = "p1"]) => hours(quantity, { day: `2026-${day}`, project }));

test("the tiers of a month count all projects together, begin again with the month, and go on after a price change", async () => {
  await price(TIERED, { ...TIERED, from: "2026-03-20", price: "2", tiers: [{ above: 10, price: "1" }] });
  await use(days(["03-01", "8"], ["03-02", "7"], ["03-02", "90", "p2"], ["03-31", "1"], ["04-01", "3"]));
  expect(await shownCosts()).toEqual([
    "03-01 nova-3 priced 8 1 8",
    "03-02 nova-3 priced 2 1 2",
    "03-02 nova-3 priced 5 0.25 1.25",
    "03-02 nova-3 priced 5 0.5 2.5",
    "03-02 nova-3 priced 85 0.5 42.5",
    "03-31 nova-3 priced 1 1 1",
    "04-01 nova-3 priced 3 2 6",
  ]);
});

const quantity = fc
  .tuple(fc.bigInt({ min: 0n, max: 10n ** 28n }), fc.integer({ min: 0, max: 28 }))
  .map(([digits, places]) => decimal(digits, places));
const DAYS = ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-15", "2026-03-31"];
const MODELS = [["nova-3"], ["nova-2"], ["aura"], ["nova-2", "nova-3"], null];
const FILTERS = [{}, { endpoint: "listen" }, { endpoint: "speak" }];
const METRICS_USED = ["hours", "total_hours", "requests", "tokens_in"];

const usage = fc.uniqueArray(
  fc
    .record({
      project: fc.constantFrom("p1", "p2"),
      day: fc.constantFrom(...DAYS),
      grouping: fc.constantFrom("model", "model", "none"),
      filter: fc.constantFrom(...FILTERS),
      models: fc.constantFrom(...MODELS),
      metric: fc.constantFrom(...METRICS_USED),
      quantity,
    })
    .map(
      ({ filter, ...row }): Used =>
        row.grouping === "none" ? { ...row, grouping: "none", models: null } : { ...row, grouping: "model", ...filter },
    ),
  { selector: ({ quantity: _, ...row }) => JSON.stringify(row), maxLength: 60 },
);

const prices = fc.array(
  fc
    .record({
      metric: fc.constantFrom(...METRICS_USED),
      model: fc.constantFrom("nova-3", "nova-2", "nova*", "*", "aura", ["nova-3", "nova-2"]),
      filter: fc.constantFrom(...FILTERS),
      currency: fc.constantFrom("USD", "JPY"),
      price: quantity,
      per: fc.constantFrom(1, 1000, 1_000_000),
      from: fc.constantFrom("2026-01-01", "2026-02-28", "2026-03-15"),
      until: fc.constantFrom(undefined, undefined, "2026-03-15"),
      tiers: fc.uniqueArray(fc.tuple(quantity, quantity), { selector: ([above]) => exact(above), maxLength: 3 }),
    })
    .map(
      ({ filter, tiers, until, ...price }): ConfiguredPrice => ({
        ...price,
        ...(until && { until }),
        ...filter,
        tiers: tiers
          .filter(([above]) => exact(above) > 0n)
          .toSorted(([a], [b]) => (exact(a) < exact(b) ? -1 : 1))
          .map(([above, price]) => ({ above, price })),
      }),
    ),
  { minLength: 1, maxLength: 12 },
);

/** Leaves out prices that overlap one before them. */
function accepted(all: readonly ConfiguredPrice[]): readonly ConfiguredPrice[] {
  const kept: ConfiguredPrice[] = [];
  for (const one of all) {
    kept.push(one);
    try {
      parsed(kept);
    } catch {
      kept.pop();
    }
  }
  return kept;
}

test("for any usage and any prices, every row of the view is the calculated one, and no quantity is in two rows", async () => {
  await fc.assert(
    fc.asyncProperty(usage, prices, async (used, all) => {
      await forgetAll();
      const book = accepted(all);
      await price(...book);
      await use(used);
      const found = inOrder(await storedCosts(db));
      expect(found).toEqual(inOrder(expectedCosts(used, book)));
    }),
    { numRuns: 40 },
  );
});
