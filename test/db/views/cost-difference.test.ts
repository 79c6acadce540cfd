// bi.cost_difference: the estimate of the price book beside what is charged, matched by model, with nothing left out.

import fc from "fast-check";
import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { storePrices } from "../../../src/db/money.ts";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/series.ts";
import type { Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { billed } from "../stored-billing.ts";
import { type BillingGrouping, type Charge, decimal, exact, storeBills, sumOf } from "../stored-charges.ts";
import { configured, newProject, rowOf, rowsOn, store } from "../stored-usage.ts";

const { db } = await testDatabase();

const WINDOW = { start: "2026-03-16", end: "2026-03-17" };
const DAY = WINDOW.end;
const PRICE = "0.3";

beforeEach(async () => {
  await sql`
    truncate usage_export.price, usage_export.series, usage_export.snapshot_row, usage_export.superseded_row, usage_export.group_value cascade
  `.execute(db);
  await price({});
});

/** A price of hours for all models, unless it says otherwise. */
async function price(...prices: readonly object[]): Promise<void> {
  const service = { baseUrl: "https://api.example.com" };
  const projects = [{ id: "p", name: "p", key: { env: "KEY" } }];
  const all = prices.map((part) => ({
    ...{ metric: "hours", model: "*", currency: "USD", price: PRICE, from: "2026-01-01" },
    ...part,
  }));
  const config = parseConfig(JSON.stringify({ service, projects, prices: all }), { source: "test", baseDir: "/" });
  await storePrices(db, config.prices, "the test");
}

type Used = { readonly day: string; readonly models: readonly string[] | null; readonly hours: string };

/** Every day of the window is read, also one without usage. */
async function use(project: Project, used: readonly Used[], days = [WINDOW.start, WINDOW.end]): Promise<void> {
  const one = configured(project, "model");
  const ids = await registerSeries(db, [one]);
  const slices = days.map((day) => {
    const ofDay = [
      ...Map.groupBy(
        used.filter((row) => row.day === day),
        ({ models }) => JSON.stringify(models),
      ).values(),
    ];
    return rowsOn(
      day,
      ofDay.map((same) => rowOf(same[0]?.models, { hours: sumOf(same.map(({ hours }) => hours)) }, null, "model")),
    );
  });
  await store(db, seriesIdOf(ids, one.series), slices, { grouping: "model", emptyGuard: "off" });
}

type Difference = {
  readonly day: string;
  readonly model: string | null;
  readonly currency: string;
  readonly estimated: string | null;
  readonly billed: string | null;
  readonly difference: string | null;
  readonly status: string;
  readonly has_unpriced: boolean;
  readonly line_items: string | null;
  readonly used_models: string | null;
};

async function differences({ id }: Project): Promise<readonly Difference[]> {
  const { rows } = await sql<Difference>`
    select usage_date::text as day, model, currency, trim_scale(estimated_amount)::text as estimated,
      trim_scale(billed_amount)::text as billed, trim_scale(difference)::text as difference, status, has_unpriced, line_items, used_models
    from bi.cost_difference where project_id = ${id}
    order by usage_date, model collate "C", line_items collate "C", used_models collate "C"
  `.execute(db);
  return rows;
}

const bill = (project: Project, charges: readonly Charge[], grouping: BillingGrouping = "line_item", window = WINDOW) =>
  storeBills(db, project, [grouping], window, charges);

const hours = (amount: string, ...models: readonly string[]): Used => ({ day: DAY, models, hours: amount });
const charged = (dollars: string, line_item: string | null): Charge => ({ day: DAY, line_item, dollars });

/** In one text each: model, estimated, billed, difference and status. */
const texts = (rows: readonly Difference[]) =>
  rows.map(({ model, estimated, billed, difference, status }) =>
    [model, estimated, billed, difference, status].map((value) => value ?? "-").join(" "),
  );

test("a model is compared over all line items that charge for it, and the difference is exact", async () => {
  const project = newProject();
  await use(project, [hours("0.1", "nova-3"), hours("0.2", "nova-2")]);
  await bill(project, [
    charged("0.1", "streaming::nova-3"),
    charged("0.2", "sync::nova-3"),
    charged("0.05", "sync::nova-2"),
  ]);
  expect(await differences(project)).toMatchObject([
    {
      model: "nova-2",
      estimated: "0.06",
      billed: "0.05",
      difference: "-0.01",
      status: "compared",
      has_unpriced: false,
    },
    {
      ...{ model: "nova-3", currency: "USD", estimated: "0.03", billed: "0.3", difference: "0.27", status: "compared" },
      ...{ line_items: '["streaming::nova-3","sync::nova-3"]', used_models: '["nova-3"]' },
    },
  ]);
});

test("usage belongs to the longest model of a line item that its name equals or begins with, followed by a hyphen", async () => {
  const project = newProject();
  const used = [
    "nova-3",
    "nova-3-medical",
    "nova-3-medical-eu",
    "nova-30",
    "aura-2-thalia-en",
    "aura-asteria-en",
    "nova",
  ];
  await use(
    project,
    used.map((model) => hours("1", model)),
  );
  await bill(
    project,
    ["streaming::nova-3", "sync::nova-3-medical", "sync::aura-2", "sync::aura"].map((name) => charged("1", name)),
  );
  expect((await differences(project)).map(({ model, used_models, status }) => [model, used_models, status])).toEqual([
    ["aura", '["aura-asteria-en"]', "compared"],
    ["aura-2", '["aura-2-thalia-en"]', "compared"],
    ["nova", '["nova"]', "estimated_only"],
    ["nova-3", '["nova-3"]', "compared"],
    ["nova-3-medical", '["nova-3-medical","nova-3-medical-eu"]', "compared"],
    ["nova-30", '["nova-30"]', "estimated_only"],
  ]);
});

test("what names no model, or several, is shown in rows of its own", async () => {
  const project = newProject();
  await use(project, [hours("1", "nova-3", "aura"), { day: DAY, models: null, hours: "2" }, hours("3", "nova-3")]);
  await bill(
    project,
    [null, "text-intelligence", "a::b::c", "::x", "x::", "sync::nova-9"].map((name, i) => charged(`${i + 1}`, name)),
  );
  const rows = await differences(project);
  expect(rows.filter(({ status }) => status === "unmapped").map((row) => row.line_items ?? row.used_models)).toEqual([
    '["::x"]',
    '["a::b::c"]',
    '["text-intelligence"]',
    '["x::"]',
    '["[\\"aura\\",\\"nova-3\\"]"]',
    null,
    null,
  ]);
  expect(texts(rows.filter(({ model }) => model !== null))).toEqual([
    "nova-3 0.9 - -0.9 estimated_only",
    "nova-9 - 6 6 billed_only",
  ]);
  expect(sumOf(rows.map(({ billed }) => billed ?? "0"))).toBe("21");
  expect(sumOf(rows.map(({ estimated }) => estimated ?? "0"))).toBe("1.8");
});

test("usage without a price is beside what is charged for it, and an estimate in another currency is compared with nothing", async () => {
  const project = newProject();
  await sql`truncate usage_export.price cascade`.execute(db);
  await price({ model: "nova-2", currency: "EUR" });
  await use(project, [hours("1", "nova-3"), hours("1", "nova-2")]);
  await bill(project, [charged("5", "sync::nova-3"), charged("6", "sync::nova-2")]);
  expect((await differences(project)).map((row) => [...texts([row]), row.currency, row.has_unpriced])).toEqual(
    expect.arrayContaining([
      ["nova-2 0.3 - - other_currency", "EUR", false],
      ["nova-2 - 6 6 billed_only", "USD", false],
      ["nova-3 - 5 5 compared", "USD", true],
    ]),
  );
});

test("a day of which only one of both was read has no difference, and one that was read and cost nothing has", async () => {
  const project = newProject();
  await use(project, [hours("1", "nova-3"), { day: WINDOW.start, models: ["nova-3"], hours: "2" }]);
  await bill(project, [], "line_item", { start: DAY, end: DAY });
  expect(texts(await differences(project))).toEqual([
    "nova-3 0.6 - - billing_not_read",
    "nova-3 0.3 - -0.3 estimated_only",
  ]);
  const other = newProject();
  await bill(other, [charged("5", "sync::nova-3")]);
  expect(texts(await differences(other))).toEqual(["nova-3 - 5 - usage_not_read"]);
});

test("a day is taken from one series: by line item, else from one that has line items among others; other groupings count for nothing", async () => {
  const project = newProject();
  await use(project, []);
  const charges = [WINDOW.start, DAY].flatMap((day) =>
    [["a"], ["b"], null].map((tags) => ({ day, line_item: "sync::nova-3", tags, accessor: "k", dollars: "1" })),
  );
  await storeBills(db, project, ["line_item,tags", "accessor,line_item,tags", "none", "tags"], WINDOW, charges);
  const single = charges.filter(({ day }) => day === DAY).map((one) => ({ ...one, dollars: "2" }));
  await storeBills(db, project, ["line_item"], { start: DAY, end: DAY }, single);
  expect(texts(await differences(project))).toEqual(["nova-3 - 3 3 billed_only", "nova-3 - 6 6 billed_only"]);
});

test("a model with a line item without an amount has no difference", async () => {
  const project = newProject();
  await use(project, [hours("10", "nova-3"), hours("10", "nova-2")]);
  await bill(project, []);
  const one = configured(project, "line_item", { source: "billing" });
  const day = billed(DAY, "line_item", [
    [null, { line_item: "sync::nova-3" }],
    ["1", { line_item: "streaming::nova-3" }],
    ["2", { line_item: "sync::nova-2" }],
    [null, { line_item: "sync::other" }],
  ]);
  await store(db, seriesIdOf(await registerSeries(db, [one]), one.series), [day], {
    ...{ grouping: "line_item", emptyGuard: "off", cliffGuard: "off" },
  });
  expect(texts(await differences(project))).toEqual([
    "nova-2 3 2 -1 compared",
    "nova-3 3 1 - amount_unknown",
    "other - - - amount_unknown",
  ]);
});

test("a series by line item that is read no more does not hide one that is, whose amounts are newer", async () => {
  const project = newProject();
  await use(project, []);
  await bill(project, [charged("1", "sync::nova-3")]);
  await bill(project, [charged("50", "sync::nova-3")], "line_item,tags");
  expect(texts(await differences(project))).toEqual(["nova-3 - 50 50 billed_only"]);
});

test("whatever is used and charged, each row is the tests' own sum, and all rows add up to what was estimated and charged", async () => {
  const models = fc.constantFrom(
    ["nova-3"],
    ["nova-3-medical"],
    ["aura-2-thalia-en"],
    ["aura-2", "nova-3"],
    ["other"],
    null,
  );
  const lineItems = ["streaming::nova-3", "sync::nova-3", "sync::aura-2", "text", null];
  const amount = fc
    .tuple(fc.bigInt({ min: 1n, max: 10n ** 28n }), fc.nat(28))
    .map(([digits, places]) => decimal(digits * 10n ** BigInt(60 - places)));
  const day = fc.constantFrom(WINDOW.start, WINDOW.end);
  const used = fc.array(fc.record({ day, models, hours: amount }), { maxLength: 8 });
  const charges = fc.array(
    fc.record({
      day,
      line_item: fc.constantFrom(...lineItems),
      dollars: fc.oneof(amount, fc.constantFrom("0.1", "-0.2")),
    }),
    { maxLength: 8 },
  );
  // Line items that were ever seen decide what usage belongs to.
  await bill(
    newProject(),
    lineItems.map((name) => charged("1", name)),
  );
  await fc.assert(
    fc.asyncProperty(used, charges, async (usage, billed) => {
      const project = newProject();
      await use(project, usage);
      await bill(project, billed);
      const rows = await differences(project);
      const found = new Map(rows.map((row) => [`${row.day} ${row.model ?? row.line_items ?? row.used_models}`, row]));
      const place = (one: Used | Charge) =>
        "hours" in one ? `${one.day} ${modelOf(one.models)}` : `${one.day} ${chargedModel(one.line_item ?? null)}`;
      for (const name of new Set([...usage, ...billed].map(place))) {
        // Usage of no model and a line item without a name have a row each.
        if (name.endsWith("null")) continue;
        const estimate = usage.filter((one) => place(one) === name).map((one) => times(one.hours, PRICE));
        const charge = billed.filter((one) => place(one) === name).map(({ dollars }) => dollars);
        expect(found.get(name)?.estimated ?? "0").toBe(sumOf(estimate));
        expect(found.get(name)?.billed ?? "0").toBe(sumOf(charge));
      }
      expect(sumOf(rows.map(({ estimated }) => estimated ?? "0"))).toBe(
        sumOf(usage.map((one) => times(one.hours, PRICE))),
      );
      expect(sumOf(rows.map((row) => row.billed ?? "0"))).toBe(sumOf(billed.map(({ dollars }) => dollars)));
      for (const { estimated, billed: of, difference } of rows) {
        expect(difference).toBe(decimal(exact(of ?? "0") - exact(estimated ?? "0")));
      }
    }),
    { numRuns: 20 },
  );
});

/** Where the sets of usage in the property test belong. */
function modelOf(models: readonly string[] | null): string | null {
  if (models === null) return null;
  if (models.length > 1) return JSON.stringify([JSON.stringify(models.toSorted())]);
  const [model = ""] = models;
  return model.startsWith("nova-3") ? "nova-3" : model.startsWith("aura-2") ? "aura-2" : model;
}

function chargedModel(lineItem: string | null): string | null {
  if (lineItem === null) return null;
  return lineItem.split("::")[1] ?? JSON.stringify([lineItem]);
}

function times(a: string, b: string): string {
  return decimal((exact(a) * exact(b)) / 10n ** 60n);
}
