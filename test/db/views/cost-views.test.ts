// bi.cost_estimated agrees with a separate calculation in the tests, done in bigint. Usage without a price is included. The last tests are
// about the keys and the finality of charges. test/cli/export/billing.test.ts compares the amounts of charges.

import fc from "fast-check";
import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { seriesKey } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import {
  type ConfiguredPrice,
  type Cost,
  decimal,
  exact,
  expectedCosts,
  type Used,
} from "../../usage/expected-costs.ts";
import { usedKeys } from "../keys/written-ledger.ts";
import { forgetAll } from "../reported-usage.ts";
import { storeBills } from "../stored-charges.ts";
import { parsedPrices, storedCosts, storePriceBook } from "../stored-costs.ts";
import { configured, daysBack, newProject, register, store, type Usage, view } from "../stored-usage.ts";

const { db } = await testDatabase();

beforeEach(() => forgetAll(db));

function seriesOf({ project, grouping, endpoint, method }: Used) {
  const dimensions = { ...(endpoint && { endpoint }), ...(method && { method }) };
  const name = Object.values(dimensions).join(" ") || "all";
  return configured({ id: project, name: project }, grouping, { filter: { name, features: {}, dimensions } });
}

/** Stores the rows as usage, with one answer for each series. */
async function storeUsage(used: readonly Used[]): Promise<void> {
  const ofSeries = [...Map.groupBy(used, (row) => seriesKey(seriesOf(row).series)).values()];
  const ids = await register(db, ...ofSeries.flatMap(([first]) => (first ? [seriesOf(first)] : [])));
  for (const [i, rows] of ofSeries.entries()) {
    const days = [...Map.groupBy(rows, ({ day }) => day)].map(([day, ofDay]): [string, Usage[string]] => {
      const groups = Map.groupBy(ofDay, ({ models }) => JSON.stringify(models)).values();
      const numbersOf = (same: readonly Used[]) => same.map(({ metric, quantity }) => [metric, quantity]);
      return [day, [...groups].map((same) => [same[0]?.models, Object.fromEntries(numbersOf(same))])];
    });
    await store(db, ids[i] ?? 0, Object.fromEntries(days));
  }
}

const NOVA_PRICE = { metric: "hours", model: "nova-3", currency: "USD", price: "1", from: "2026-01-01" };
const TIERS = [
  { above: "10", price: "0.5" },
  { above: "100", price: "0.25" },
];
/** Hours on a day of 2026, of project p1 and nova-3 unless `part` names others. */
const hours = (day: string, quantity: string, part: Partial<Used> = {}): Used => ({
  ...{ project: "p1", day: `2026-${day}`, grouping: "model", models: ["nova-3"], metric: "hours", quantity },
  ...part,
});
const quantity = fc
  .tuple(fc.bigInt({ min: 0n, max: 10n ** 28n }), fc.integer({ min: 0, max: 28 }))
  .map(([digits, places]) => decimal(digits, places));
const DAYS = ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-15", "2026-03-31"];
const MODELS = [["nova-3"], ["nova-2"], ["aura"], ["nova-2", "nova-3"], ["aura", "nova-3"], null];
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
      per: fc.constantFrom(1, 1000, 1_000_000, "hour", "minute", "second"),
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
  { maxLength: 12 },
);

/** Leaves out prices that the configuration refuses because they overlap an earlier one. */
function accepted(all: readonly ConfiguredPrice[]): readonly ConfiguredPrice[] {
  const kept: ConfiguredPrice[] = [];
  for (const one of all) {
    kept.push(one);
    try {
      parsedPrices(kept);
    } catch {
      kept.pop();
    }
  }
  return kept;
}

const LISTEN = { endpoint: "listen" };
const TIERED = [hours("03-01", "15"), hours("03-02", "90", { project: "p2" }), hours("04-01", "3")];
const EXAMPLES: [Used[], ConfiguredPrice[]][] = [
  // Without prices the view is empty.
  [[hours("03-10", "1"), hours("03-10", "1", { grouping: "none", models: null })], []],
  // The price covers only the 2 listen hours of that day; the group's other 3 hours have no amount. `until` includes its day.
  [[hours("01-01", "5"), hours("01-01", "2", LISTEN)], [{ ...NOVA_PRICE, ...LISTEN, until: NOVA_PRICE.from }]],
  // The tiers of a month count all projects together, and begin again with the month.
  [TIERED, [{ ...NOVA_PRICE, tiers: TIERS }]],
];

const inOrder = (costs: readonly Cost[]) => costs.map((cost) => JSON.stringify(Object.entries(cost).sort())).sort();

test("for any usage and prices, the view has exactly the calculated rows", async () => {
  await fc.assert(
    fc.asyncProperty(usage, prices, async (used, all) => {
      await forgetAll(db);
      const book = accepted(all);
      await storePriceBook(db, ...book);
      await storeUsage(used);
      const found = inOrder(await storedCosts(db));
      expect(found).toEqual(inOrder(expectedCosts(used, book)));
    }),
    { numRuns: 40, examples: EXAMPLES },
  );
});

test("a price of null ends the price before it", async () => {
  await storePriceBook(db, { ...NOVA_PRICE, price: "5", from: "2026-02-01" });
  await storePriceBook(db, NOVA_PRICE, { ...NOVA_PRICE, price: null, from: "2026-03-02" });
  await storeUsage([hours("03-01", "2"), hours("03-02", "3")]);
  const amounts = (await storedCosts(db)).map(({ day, amount }) => `${day} ${amount}`).sort();
  expect(amounts).toEqual(["2026-03-01 2", "2026-03-02 null"]);
});

test("all keys of a rotation share its lineage", async () => {
  const project = newProject();
  const { rotation, keys } = await usedKeys(db, project);
  const accessors = [...keys, "made in the console", null];
  const charges = accessors.map((accessor, i) => ({ day: "2026-03-17", accessor, dollars: `${i + 1}` }));
  await storeBills(db, project, ["accessor"], { start: "2026-03-17", end: "2026-03-17" }, charges);
  const rows = await view(db, "cost_by_key", project);
  expect(rows.map(({ amount, lineage }) => `${amount} ${lineage}`).sort()).toEqual([
    `1 ${rotation}`,
    `2 ${rotation}`,
    "3 made in the console",
    "4 null",
  ]);
  const named = rows.find(({ accessor }) => accessor === accessors[0]);
  expect(named).toMatchObject({ rotation, key_comment: expect.any(String) });
});

test("a day that has left the window of 7 days is final unless its newest reading failed", async () => {
  const project = newProject();
  const back = await daysBack(db);
  const window = { start: back(9), end: back(1) };
  const charges = [9, 8, 1].map((days) => ({ day: back(days), dollars: "1" }));
  await storeBills(db, project, ["none"], window, charges, { windowDays: 7 });
  await sql`
    update usage_export.slice set status = 'failed' where usage_date = ${back(8)}
      and series_id = (select series_id from usage_export.series where project_id = ${project.id})
  `.execute(db);
  const rows = await view(db, "cost_total", project);
  expect(rows.map((row) => [row.usage_date, row.finality, row.is_final, row.revision])).toEqual([
    [back(9), "final", true, 1],
    [back(8), "final", false, 1],
    [back(1), "settling", false, 1],
  ]);
  expect(rows[0]).toMatchObject({ fetched_at: expect.any(Date), first_seen_at: expect.any(Date), extra_metrics: null });
});
