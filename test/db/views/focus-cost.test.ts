// bi.focus_cost against the rules of FOCUS 1.1: the mandatory columns, what may be NULL, allowed values, and how costs, quantities and
// periods belong together.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { storePrices } from "../../../src/db/prices-and-budgets.ts";
import { storeListedKeys } from "../../../src/db/project-facts.ts";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import type { ConfiguredSeries } from "../../../src/usage/plan.ts";
import type { Grouping, Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { forgetAll } from "../reported-usage.ts";
import { type BilledRow, billed } from "../stored-billing.ts";
import { configured, newProject, rowOf, rowsOn, store, type ViewRow } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAY = "2026-02-28";
const NEXT_DAY = "2026-03-01";

beforeEach(async () => {
  await forgetAll(db);
  await sql`truncate usage_export.configured, usage_export.price cascade`.execute(db);
});

const NOVA = { model: "nova-*", metric: "hours", currency: "EUR", price: "0.0077", per: "minute", from: "2026-01-01" };

async function storePriceBook(): Promise<void> {
  const prices = [
    { ...NOVA, tiers: [{ above: 5, price: "0.0065" }] },
    { ...NOVA, model: "aura", metric: "tts_characters", price: "0.03", per: 1000, currency: "USD" },
  ];
  const config = {
    service: { baseUrl: "https://api.example.com" },
    projects: [{ id: "p", name: "p", key: { env: "KEY" } }],
    prices,
  };
  await storePrices(db, parseConfig(JSON.stringify(config), { source: "test", baseDir: "/" }).prices);
}

/** All series of the test, because only the registered ones are read. */
async function storeAll(
  project: Project,
  billing: readonly (readonly [Grouping, string, readonly BilledRow[]])[],
  usageDays: readonly string[] = [],
): Promise<void> {
  const ofBilling = (grouping: Grouping): ConfiguredSeries => ({
    series: { project, source: "billing", grouping, filter: { name: "all", features: {}, dimensions: {} } },
    windowDays: 7,
  });
  const byModel = configured(project, "model");
  const groupings = new Set(billing.map(([grouping]) => grouping));
  const ids = await registerSeries(db, [byModel, ...[...groupings].map(ofBilling)]);
  for (const [grouping, day, rows] of billing) {
    await store(db, seriesIdOf(ids, ofBilling(grouping).series), [billed(day, grouping, rows)], { grouping });
  }
  for (const day of usageDays) {
    const rows = [
      rowOf("nova-3", { hours: "7.5" }, null, "model"),
      rowOf("aura", { tts_characters: "12345" }, null, "model"),
      rowOf("free", { hours: "1" }, null, "model"),
    ];
    await store(db, seriesIdOf(ids, byModel.series), [rowsOn(day, rows)], { grouping: "model" });
  }
}

async function focus(): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`
    select * from bi.focus_cost order by "x_UsageDate", "SkuPriceId", "ResourceId", "BilledCost"
  `.execute(db);
  return rows;
}

/** A day that was billed by key, line item and tags, with a credit, and one that is estimated. */
async function storeBoth(): Promise<Project> {
  const project = newProject();
  await storePriceBook();
  await storeListedKeys(db, project.id, [{ apiKeyId: "k1", comment: "the exporter", scopes: [], tags: [] }]);
  await storeAll(
    project,
    [
      [
        "accessor,line_item,tags",
        DAY,
        [
          [
            "0.1000000000000000055511151231257827",
            { accessor: "k1", line_item: "streaming::nova-3", tags: ["b", "a"] },
          ],
          ["0.2", { accessor: null, line_item: "sync::aura-2", tags: [] }],
          ["-0.05", { accessor: "k1", line_item: "streaming::nova-3", tags: null }],
        ],
      ],
      ["none", DAY, [["0.25"]]],
    ],
    [DAY, NEXT_DAY],
  );
  return project;
}

/** By FOCUS 1.1 every data set has these columns; those with `true` may be NULL. */
const MANDATORY: Readonly<Record<string, boolean>> = {
  BilledCost: false,
  BillingAccountId: false,
  BillingAccountName: true,
  BillingCurrency: false,
  BillingPeriodEnd: false,
  BillingPeriodStart: false,
  ChargeCategory: false,
  ChargeClass: true,
  ChargeDescription: true,
  ChargePeriodEnd: false,
  ChargePeriodStart: false,
  ContractedCost: false,
  EffectiveCost: false,
  InvoiceIssuerName: false,
  ListCost: false,
  PricingQuantity: true,
  PricingUnit: true,
  ProviderName: false,
  PublisherName: false,
  ServiceCategory: false,
  ServiceName: false,
};

test("every mandatory column is there, and is NULL only where FOCUS allows it", async () => {
  await storeBoth();
  const rows = await focus();
  expect(new Set(rows.map((row) => row.x_CostSource))).toEqual(new Set(["billed", "estimated"]));
  for (const row of rows) {
    expect(Object.keys(row)).toEqual(expect.arrayContaining(Object.keys(MANDATORY)));
    const missing = Object.entries(MANDATORY).filter(([column, isNullable]) => !isNullable && row[column] === null);
    expect(missing).toEqual([]);
  }
});

test("usage has quantity, unit, SKU and unit price, except what the service billed, which says no quantity", async () => {
  await storeBoth();
  for (const row of await focus()) {
    const isEstimated = row.x_CostSource === "estimated";
    for (const column of ["PricingQuantity", "PricingUnit", "ContractedUnitPrice", "ConsumedQuantity", "ConsumedUnit"])
      expect([column, row[column] !== null]).toEqual([column, isEstimated]);
    expect(row.SkuId).not.toBeNull();
    expect(row.SkuPriceId).not.toBeNull();
    // FOCUS ties the type and the name of a resource to its identifier.
    expect(row.ResourceType === null).toBe(row.ResourceId === null);
  }
});

test("the values are those that FOCUS allows", async () => {
  await storeBoth();
  const { rows } = await sql<ViewRow>`
    select count(*)::integer as rows, count(*) filter (where
      "ChargeCategory" in ('Usage', 'Credit') and "ChargeClass" is null and "ChargeFrequency" = 'Usage-Based'
      and "PricingCategory" = 'Standard' and "ServiceCategory" = 'AI and Machine Learning'
      and "ServiceSubcategory" = 'Natural Language Processing' and "BillingCurrency" ~ '^[A-Z]{3}$'
      and ("ChargeCategory" = 'Credit') = ("BilledCost" < 0)
    )::integer as allowed from bi.focus_cost
  `.execute(db);
  expect(rows).toEqual([{ rows: 6, allowed: 6 }]);
});

test("a unit price times the quantity is the cost exactly, and one price belongs to one SKU", async () => {
  await storeBoth();
  const { rows } = await sql<ViewRow>`
    select "SkuPriceId" like '%-5' as upper_tier, "PricingUnit", "ContractedUnitPrice" * "PricingQuantity" = "ContractedCost" as is_exact,
      trim_scale("ContractedCost")::text as cost, "BillingCurrency"
    from bi.focus_cost where "ContractedUnitPrice" is not null order by "ContractedCost"
  `.execute(db);
  expect(rows).toEqual([
    { upper_tier: false, PricingUnit: "Characters", is_exact: true, cost: "0.37035", BillingCurrency: "USD" },
    { upper_tier: true, PricingUnit: "Hours", is_exact: true, cost: "0.975", BillingCurrency: "EUR" },
    { upper_tier: false, PricingUnit: "Hours", is_exact: true, cost: "2.31", BillingCurrency: "EUR" },
  ]);
  const { rows: several } = await sql`
    select "SkuPriceId" from bi.focus_cost group by "SkuPriceId" having count(distinct "SkuId") > 1
  `.execute(db);
  expect(several).toEqual([]);
});

test("a charge is of one day in UTC, within its billing period, the calendar month", async () => {
  await storeBoth();
  for (const zone of ["UTC", "Asia/Tokyo", "America/Los_Angeles"]) {
    const { rows } = await db.transaction().execute(async (tx) => {
      await sql`select set_config('timezone', ${zone}, true)`.execute(tx);
      return sql<ViewRow>`
        select distinct "ChargePeriodStart", "ChargePeriodEnd", "BillingPeriodStart", "BillingPeriodEnd" from bi.focus_cost
        order by "ChargePeriodStart"
      `.execute(tx);
    });
    const at = (day: string) => new Date(`${day}T00:00:00Z`);
    expect(rows).toEqual([
      {
        ChargePeriodStart: at(DAY),
        ChargePeriodEnd: at(NEXT_DAY),
        BillingPeriodStart: at("2026-02-01"),
        BillingPeriodEnd: at("2026-03-01"),
      },
      {
        ChargePeriodStart: at(NEXT_DAY),
        ChargePeriodEnd: at("2026-03-02"),
        BillingPeriodStart: at("2026-03-01"),
        BillingPeriodEnd: at("2026-04-01"),
      },
    ]);
  }
});

test("a day that was billed has no estimate, and its amounts are those of one grouping, with every digit", async () => {
  const project = await storeBoth();
  const rows = await focus();
  const ofDay = rows.filter((row) => row.x_UsageDate === DAY);
  expect(ofDay).toMatchObject([
    { BilledCost: "-0.05", ChargeCategory: "Credit", SkuId: "streaming::nova-3", ResourceId: "k1", Tags: null },
    {
      ...{ BilledCost: "0.1000000000000000055511151231257827", ChargeCategory: "Usage", x_CostSource: "billed" },
      ...{ ResourceName: "the exporter", ResourceType: "API key", Tags: { a: true, b: true }, BillingCurrency: "USD" },
      ...{ BillingAccountId: project.id, BillingAccountName: project.name, x_Grouping: "accessor,line_item,tags" },
    },
    { BilledCost: "0.2", SkuId: "sync::aura-2", ResourceId: null, ResourceType: null, Tags: null },
  ]);
  expect(rows.filter((row) => row.x_UsageDate === NEXT_DAY).map((row) => row.x_CostSource)).toEqual([
    ...["estimated", "estimated", "estimated"],
  ]);
});

test("of several groupings of billing the one with the most dimensions counts, by line item before others", async () => {
  await storeAll(newProject(), [
    ["none", DAY, [["1"]]],
    ["accessor", DAY, [["1", { accessor: "k1" }]]],
    ["line_item", DAY, [["1", { line_item: "sync::aura-2" }]]],
    ["none", NEXT_DAY, [["2"]]],
  ]);
  const rows = await focus();
  expect(rows.map((row) => [row.x_UsageDate, row.x_Grouping, row.BilledCost, row.ChargeDescription])).toEqual([
    [DAY, "line_item", "1", "sync::aura-2"],
    [NEXT_DAY, "none", "2", "All usage"],
  ]);
});

test("a grouping that is read no more does not hide one that is, whose amounts are newer", async () => {
  const project = newProject();
  await storeAll(project, [
    ["line_item,tags", DAY, [["1", { line_item: "sync::nova-3", tags: null }]]],
    ["line_item,tags", NEXT_DAY, [["3", { line_item: "sync::nova-3", tags: null }]]],
  ]);
  await storeAll(project, [["none", DAY, [["50"]]]]);
  expect((await focus()).map((row) => [row.x_UsageDate, row.x_Grouping, row.BilledCost])).toEqual([
    [DAY, "none", "50"],
    [NEXT_DAY, "line_item,tags", "3"],
  ]);
});

test("a day with a charge without an amount is taken from another grouping, else estimated", async () => {
  await storePriceBook();
  const billing = [
    ["line_item", DAY, [[null, { line_item: "sync::aura-2" }]]],
    ["none", DAY, [["5"]]],
    ["none", NEXT_DAY, [[null]]],
  ] as const;
  await storeAll(newProject(), billing, [DAY, NEXT_DAY]);
  const rows = await focus();
  expect(rows.map((row) => [row.x_UsageDate, row.x_CostSource, row.x_Grouping])).toEqual([
    [DAY, "billed", "none"],
    ...Array.from({ length: 3 }, () => [NEXT_DAY, "estimated", "model"]),
  ]);
});
