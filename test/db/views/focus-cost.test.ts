// bi.focus_cost against the rules of FOCUS 1.1: the mandatory columns, what may be NULL, allowed values, and how costs, quantities and
// periods belong together.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { storeListedKeys } from "../../../src/db/project-facts.ts";
import type { Grouping, Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { usedKeys } from "../keys/written-ledger.ts";
import { forgetAll } from "../reported-usage.ts";
import { type BilledRow, billed } from "../stored-billing.ts";
import { storePriceBook } from "../stored-costs.ts";
import { configured, newProject, register, store, textsOf, type ViewRow } from "../stored-usage.ts";

const { db, read } = await testDatabase();

const DAY = "2026-02-28";
const NEXT_DAY = "2026-03-01";

beforeEach(() => forgetAll(db));

const NOVA = { model: "nova-*", metric: "hours", currency: "EUR", price: "0.0077", per: "minute", from: "2026-01-01" };
const PRICES = [
  { ...NOVA, tiers: [{ above: 5, price: "0.0065" }] },
  { ...NOVA, model: "aura", metric: "tts_characters", price: "0.03", per: 1000, currency: "USD" },
];

type Bill = readonly [day: string, grouping: Grouping, ...rows: readonly BilledRow[]];

/** Stores usage and bills, and registers all their series at once: the view reads only the series that were registered last. */
async function storeAll(project: Project, bills: readonly Bill[], usageDays: readonly string[] = []): Promise<void> {
  const groupings = [...new Set(bills.map(([, grouping]) => grouping))];
  const [byModel, ...ids] = await register(
    db,
    configured(project, "model"),
    ...groupings.map((grouping) => configured(project, grouping, { source: "billing", windowDays: 7 })),
  );
  for (const [day, grouping, ...rows] of bills)
    await store(db, ids[groupings.indexOf(grouping)] ?? 0, [billed(day, grouping, rows)]);
  for (const day of usageDays) {
    const usage = { "nova-3": { hours: "7.5" }, aura: { tts_characters: "12345" }, free: { hours: "1" } };
    await store(db, byModel, { [day]: usage });
  }
}

const focus = () =>
  read(sql<ViewRow>`select * from bi.focus_cost order by "x_UsageDate", "SkuPriceId", "ResourceId", "BilledCost"`);

/** A day that was billed by key, line item and tags, with a credit, and one that is estimated. */
async function storeBilledAndEstimatedDay(): Promise<Project> {
  const project = newProject();
  await storePriceBook(db, ...PRICES);
  const [made = ""] = (await usedKeys(db, project, 1)).keys;
  const listed = (apiKeyId: string, comment: string) => ({ apiKeyId, comment, scopes: [], tags: [] });
  await storeListedKeys(db, project.id, [listed("k1", "the exporter"), listed(made, "")]);
  const nova = { accessor: "k1", line_item: "streaming::nova-3" };
  const bills: readonly Bill[] = [
    [
      ...([DAY, "accessor,line_item,tags"] as const),
      ["0.1000000000000000055511151231257827", { ...nova, tags: ["b", "a"] }],
      ["0.2", { accessor: null, line_item: "sync::aura-2", tags: [] }],
      ["-0.05", { ...nova, accessor: made, tags: null }],
    ],
    [DAY, "none", ["0.25"]],
  ];
  await storeAll(project, bills, [DAY, NEXT_DAY]);
  return project;
}

const at = (day: string) => new Date(`${day}T00:00:00Z`);

test("a billed charge has the columns of FOCUS except the quantity", async () => {
  const project = await storeBilledAndEstimatedDay();
  const [credit, charge, keyless] = await focus();
  const amount = "0.1000000000000000055511151231257827";
  expect(charge).toEqual({
    ...{ BilledCost: amount, EffectiveCost: amount, ListCost: amount, ContractedCost: amount, BillingCurrency: "USD" },
    ...{ BillingAccountId: project.id, BillingAccountName: project.name },
    ...{ SubAccountId: project.id, SubAccountName: project.name },
    ...{ BillingPeriodStart: at("2026-02-01"), BillingPeriodEnd: at("2026-03-01") },
    ...{ ChargePeriodStart: at(DAY), ChargePeriodEnd: at(NEXT_DAY), ChargeFrequency: "Usage-Based" },
    ...{ ChargeCategory: "Usage", ChargeClass: null, ChargeDescription: "streaming::nova-3" },
    ...{ PricingCategory: "Standard", PricingQuantity: null, PricingUnit: null, ContractedUnitPrice: null },
    ...{ ConsumedQuantity: null, ConsumedUnit: null },
    ...{ ServiceCategory: "AI and Machine Learning", ServiceSubcategory: "Natural Language Processing" },
    ...{ ServiceName: "Speech processing", ProviderName: "Deepgram" },
    ...{ PublisherName: "Deepgram", InvoiceIssuerName: "Deepgram" },
    ...{ SkuId: "streaming::nova-3", SkuPriceId: "streaming::nova-3" },
    ...{ ResourceId: "k1", ResourceName: "the exporter", ResourceType: "API key", Tags: { a: true, b: true } },
    ...{ x_CostSource: "billed", x_UsageDate: DAY, x_Model: null, x_Metric: null },
    ...{ x_Grouping: "accessor,line_item,tags", x_Finality: "final" },
  });
  expect(credit).toMatchObject({ BilledCost: "-0.05", ChargeCategory: "Credit", Tags: null });
  // The service lists this key without its comment, which the ledger has.
  expect(`${credit?.ResourceId} ${credit?.ResourceName}`).toMatch(/^id-of-\S+ \S/);
  expect(keyless).toMatchObject({ BilledCost: "0.2", ResourceId: null, ResourceType: null, Tags: null });
});

test("the cost of an estimate is exactly its quantity times its unit price", async () => {
  const project = await storeBilledAndEstimatedDay();
  const estimates = await read(sql<{ text: string; is_exact: boolean; sku_price: string }>`
    select concat_ws(' ', trim_scale("BilledCost"), "BillingCurrency", trim_scale("PricingQuantity"), "PricingUnit", trim_scale("ContractedUnitPrice"),
        "SkuId") as text, "SkuPriceId" as sku_price,
      "ContractedUnitPrice" * "PricingQuantity" = "ContractedCost" and "ConsumedQuantity" = "PricingQuantity" and "ConsumedUnit" = "PricingUnit" as is_exact
    from bi.focus_cost where "x_CostSource" = 'estimated' order by "ContractedCost"
  `);
  expect(estimates.map(({ text }) => text)).toEqual([
    "0.37035 USD 12345 Characters 0.00003 aura tts_characters",
    "0.975 EUR 2.5 Hours 0.39 nova-* hours",
    "2.31 EUR 5 Hours 0.462 nova-* hours",
  ]);
  expect(estimates.every(({ is_exact }) => is_exact)).toBe(true);
  const [, upper, lower] = estimates.map(({ sku_price }) => sku_price);
  expect(upper).toBe(lower?.replace(/-0$/, "-5"));
  expect((await focus()).find((row) => row.x_Model === "aura")).toMatchObject({
    ...{ BillingAccountId: project.id, ChargeCategory: "Usage", x_UsageDate: NEXT_DAY, x_Metric: "tts_characters" },
    ...{ BillingPeriodStart: at("2026-03-01"), BillingPeriodEnd: at("2026-04-01"), ResourceId: null, Tags: null },
    ...{ ChargeDescription: "aura: characters turned into speech", x_Grouping: "model" },
  });
});

test("a charge is of one day in UTC, within its billing period, in every time zone of the reader", async () => {
  await storeBilledAndEstimatedDay();
  const periods = (zone: string) =>
    db.transaction().execute(async (tx) => {
      await sql`select set_config('timezone', ${zone}, true)`.execute(tx);
      const { rows } = await sql`
        select distinct "ChargePeriodStart", "ChargePeriodEnd", "BillingPeriodStart", "BillingPeriodEnd" from bi.focus_cost order by 1
      `.execute(tx);
      return rows;
    });
  for (const zone of ["Asia/Tokyo", "America/Los_Angeles"]) expect(await periods(zone)).toEqual(await periods("UTC"));
});

const shown = async () => textsOf(await focus(), "x_UsageDate x_CostSource x_Grouping BilledCost ChargeDescription");

test("bills by line item count before bills by key or in total", async () => {
  await storeAll(newProject(), [
    [DAY, "none", ["1"]],
    [DAY, "accessor", ["1", { accessor: "k1" }]],
    [DAY, "line_item", ["1", { line_item: "not in the next answer" }]],
    [DAY, "line_item", ["1", { line_item: "sync::aura-2" }]],
    [NEXT_DAY, "none", ["2"]],
  ]);
  expect(await shown()).toEqual([`${DAY} billed line_item 1 sync::aura-2`, `${NEXT_DAY} billed none 2 All usage`]);
});

test("a grouping that is no longer read does not hide the newer amounts of one that still is", async () => {
  const project = newProject();
  const item = { line_item: "sync::nova-3", tags: null };
  await storeAll(project, [
    [DAY, "line_item,tags", ["1", item]],
    [NEXT_DAY, "line_item,tags", ["3", item]],
  ]);
  await storeAll(project, [[DAY, "none", ["50"]]]);
  expect(await shown()).toEqual([
    `${DAY} billed none 50 All usage`,
    `${NEXT_DAY} billed line_item,tags 3 sync::nova-3`,
  ]);
});

test("a grouping whose newest reading failed does not hide a complete one, as its amounts may be old", async () => {
  await storeAll(newProject(), [
    [DAY, "line_item", ["1", { line_item: "sync::aura-2" }]],
    [DAY, "none", ["2"]],
  ]);
  await sql`
    update usage_export.slice set status = 'failed' from usage_export.series s
    where s.series_id = slice.series_id and s."grouping" = 'line_item'
  `.execute(db);
  expect(await shown()).toEqual([`${DAY} billed none 2 All usage`]);
});

test("a day of which a charge lacks its amount is taken from another grouping, or else estimated", async () => {
  await storePriceBook(db, ...PRICES);
  const bills: readonly Bill[] = [
    [DAY, "line_item", [null, { line_item: "sync::aura-2" }]],
    [DAY, "none", ["5"]],
    [NEXT_DAY, "none", [null]],
  ];
  await storeAll(newProject(), bills, [DAY, NEXT_DAY]);
  expect(textsOf(await focus(), "x_UsageDate x_CostSource x_Grouping")).toEqual([
    `${DAY} billed none`,
    ...Array.from({ length: 3 }, () => `${NEXT_DAY} estimated model`),
  ]);
});
