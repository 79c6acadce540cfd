// The views of cost show exactly the amounts that the service answered, over restated days, and balances as they were read.

import { sql } from "kysely";
import { expect } from "vitest";
import { exact, sumOf } from "../../db/stored-charges.ts";
import { testDatabase } from "../../support/database.ts";
import { BILLING_GROUPINGS, servedBalances, servedBills, storedBills } from "../bills.ts";
import { lastDays, servedNumbers } from "../numbers.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const DAY_MS = 86_400_000;
const SCOPES = ["member", "billing:read"];
const WINDOW = lastDays(4);
const COSTS = { source: "billing", groupings: ["none"], window: { days: 4 } };

test("every view of every grouping and filter shows the service's amounts, before and after late usage arrived", async ({
  context,
}) => {
  const emulator = await context.serve({ scopes: SCOPES });
  const groupings = BILLING_GROUPINGS.map((dimensions) => (dimensions.length === 0 ? "none" : dimensions));
  const filters = [{ name: "all" }, { name: "of prod", dimensions: { tags: "prod" } }];
  await context.configure(smallConfig(emulator.url, { exports: [{ ...COSTS, groupings, filters }] }));
  const amounts: string[] = [];
  for (const daysLater of [0, 1]) {
    emulator.now = () => new Date(Date.now() + daysLater * DAY_MS);
    expect(await context.run(["export"])).toMatchObject({ status: 0 });
    for (const dimensions of BILLING_GROUPINGS) {
      const name = dimensions.join(",") || "none";
      const served = await servedBills(emulator, context.key, dimensions, WINDOW);
      expect(served.length, name).toBeGreaterThanOrEqual(4);
      expect(await storedBills(db, "cost_by_group", sql`"grouping" = ${name}`), name).toEqual(served);
      if (dimensions.length < 2) expect(await storedBills(db, ownView(dimensions[0])), name).toEqual(served);
      const filtered = await servedBills(emulator, context.key, dimensions, WINDOW, "tags=prod");
      const stored = await storedBills(db, "cost_filtered", sql`"grouping" = ${name} and filter = 'of prod'`);
      expect(stored, `${name} of prod`).toEqual(filtered);
      if (name === "none") amounts.push(...served.map(({ amount }) => amount));
    }
  }
  // Some of them have more digits than a double, and late usage has changed some.
  expect(amounts.some((amount) => String(Number(amount)) !== amount)).toBe(true);
  expect(amounts.slice(0, 4)).not.toEqual(amounts.slice(4));
});

function ownView(dimension = "none"): string {
  if (dimension === "none") return "cost_total";
  return dimension === "accessor" ? "cost_by_key" : `cost_by_${dimension}`;
}

test("a restated amount is in bi.restatements with the one before, and its day in bi.coverage is complete", async ({
  context,
}) => {
  const emulator = await context.serve({ scopes: SCOPES });
  await context.configure(smallConfig(emulator.url, { exports: [{ ...COSTS, groupings: ["line_item"] }] }));
  const before = await servedBills(emulator, context.key, ["line_item"], WINDOW);
  await context.run(["export"]);
  emulator.now = () => new Date(Date.now() + DAY_MS);
  const after = await servedBills(emulator, context.key, ["line_item"], WINDOW);
  await context.run(["export"]);

  const key = ({ day, line_item }: { day: string; line_item: string | null }) => `${day} ${line_item}`;
  const old = new Map(before.map((bill) => [key(bill), bill.amount]));
  const changed = after.filter((bill) => old.get(key(bill)) !== bill.amount);
  const { rows } = await sql`
    select usage_date::text as day, group_value as line_item, trim_scale(old_value)::text as old, trim_scale(new_value)::text as new
    from bi.restatements where metric = 'dollars' order by usage_date, group_value collate "C"
  `.execute(db);
  expect(changed.length).toBeGreaterThan(5);
  expect(rows).toEqual(
    changed.map((bill) => ({
      day: bill.day,
      line_item: bill.line_item,
      old: old.get(key(bill)) ?? null,
      new: bill.amount,
    })),
  );
  const slices = await sql`select distinct source, status from bi.coverage`.execute(db);
  expect(slices.rows).toEqual([{ source: "billing", status: "complete" }]);
});

/** Dollars for an hour, of every model. */
const PRICE = "0.4312345678901234567890123456";

test("bi.cost_difference has the estimate and the charge of each model and day, and leaves out no amount of either", async ({
  context,
}) => {
  const emulator = await context.serve({ scopes: SCOPES });
  const usage = { name: "usage", groupings: ["model"], window: { days: 4 } };
  const config = smallConfig(emulator.url, {
    exports: [{ ...COSTS, name: "bills", groupings: [["tags", "line_item"]] }, usage],
  });
  const price = { metric: "hours", model: "*", currency: "USD", price: PRICE, from: "2026-01-01" };
  await context.configure({ ...config, prices: [price] });
  for (const daysLater of [0, 1]) {
    emulator.now = () => new Date(Date.now() + daysLater * DAY_MS);
    expect(await context.run(["export"])).toMatchObject({ status: 0 });
    const bills = await servedBills(emulator, context.key, ["line_item"], WINDOW);
    const served = await servedNumbers(emulator, context.key, { groupings: ["model"], window: WINDOW });
    const used = (served["model / all"] ?? []).filter(({ hours }) => hours !== "0");
    const { rows } = await sql<Readonly<Record<string, string>>>`
      select usage_date::text as day, model, coalesce(estimated_amount, 0)::text as estimated, coalesce(billed_amount, 0)::text as billed,
        difference::text as difference
      from bi.cost_difference
    `.execute(db);
    const models = new Set(bills.map(({ line_item }) => line_item?.split("::")[1]));
    expect(models.size).toBeGreaterThan(6);
    for (const model of models) {
      // The voices of a generation are charged as one model.
      const isOfModel = (name: string | null | undefined) =>
        name === model || (model?.startsWith("aura") && name?.replace(/-[a-z]+-[a-z]+$/, "") === model);
      for (const day of new Set(bills.map((bill) => bill.day))) {
        const charge = bills.filter((bill) => bill.day === day && bill.line_item?.split("::")[1] === model);
        const hours = used.filter((row) => row.usage_date === day && isOfModel(row.group));
        const [row] = rows.filter((one) => one.day === day && one.model === model);
        if (model === undefined || charge.length + hours.length === 0) continue;
        expect(exact(row?.billed ?? ""), `${day} ${model}`).toBe(exact(sumOf(charge.map(({ amount }) => amount))));
        expect(exact(row?.estimated ?? ""), `${day} ${model}`).toBe(estimateOf(hours.map((one) => one.hours ?? "0")));
      }
    }
    expect(sumOf(rows.map(({ billed }) => billed ?? ""))).toBe(sumOf(bills.map(({ amount }) => amount)));
    expect(exact(sumOf(rows.map((row) => row.estimated ?? "")))).toBe(estimateOf(used.map((one) => one.hours ?? "0")));
    expect(
      rows.every((row) => exact(row.difference ?? "") === exact(row.billed ?? "") - exact(row.estimated ?? "")),
    ).toBe(true);
  }
});

function estimateOf(hours: readonly string[]): bigint {
  return (exact(sumOf(hours)) * exact(PRICE)) / exact("1");
}

test("balances are read once a run, and bi.balances has each amount that the service answered", async ({ context }) => {
  const emulator = await context.serve({ scopes: SCOPES });
  await context.configure(smallConfig(emulator.url, { exports: [{ ...COSTS, groupings: ["none", "tags"] }] }));
  const served: unknown[] = [];
  for (const daysLater of [0, 0, 1]) {
    const now = new Date(Date.now() + daysLater * DAY_MS);
    emulator.now = () => now;
    served.push(await servedBalances(emulator, context.key));
    const asked = () => emulator.requests.filter(({ path }) => path.endsWith("/balances")).length;
    const before = asked();
    expect(await context.run(["export"])).toMatchObject({ status: 0 });
    expect(asked()).toBe(before + 1);
  }
  const { rows } = await sql<{ balance: unknown }>`
    select json_build_object(balance_id, trim_scale(amount)::text) as balance from bi.balances where units = 'usd' order by read_at
  `.execute(db);
  expect(rows.map(({ balance }) => balance)).toEqual(served);
  const newest = await sql`select 1 from bi.balances where ended_at is null and last_read_at >= read_at`.execute(db);
  expect(newest.rows).toHaveLength(1);
});

test("a run of usage reads no balances", async ({ context }) => {
  const emulator = await context.serve({ scopes: SCOPES });
  await context.configure(smallConfig(emulator.url));
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(emulator.requests.filter(({ path }) => path.includes("/keys"))).toHaveLength(1);
  expect(emulator.requests.filter(({ path }) => path.endsWith("/balances"))).toEqual([]);
});

for (const [status, text] of [
  [403, "the key may not read balances"],
  [404, "the service does not offer balances"],
] as const) {
  test(`a ${status} to balances is said once, is not asked again in the run, and the run succeeds`, async ({
    context,
  }) => {
    const isBalances = ({ path }: { path: string }) => path.endsWith("/balances");
    const emulator = await context.serve({
      scopes: SCOPES,
      fault: (request) => (isBalances(request) ? { kind: "answer", status } : undefined),
    });
    await context.configure(smallConfig(emulator.url, { exports: [{ ...COSTS, groupings: ["none", "tags"] }] }));
    const { status: exit, stderr } = await context.run(["export"]);
    expect(exit).toBe(0);
    expect(stderr.split(text)).toHaveLength(2);
    expect(emulator.requests.filter(isBalances)).toHaveLength(1);
  });
}

test("a worker reads the balances once for a run of billing", async ({ context }) => {
  const emulator = await context.serve({ scopes: SCOPES });
  await context.configure(smallConfig(emulator.url, { exports: [{ ...COSTS, groupings: ["none", "line_item"] }] }));
  const worker = context.start(["start"]);
  await waitForRuns(db, 1);
  await expect
    .poll(async () => (await sql`select amount from bi.balances`.execute(db)).rows, { timeout: 20_000 })
    .toHaveLength(1);
  worker.kill("SIGTERM");
  await worker.ended;
  expect(emulator.requests.filter(({ path }) => path.endsWith("/balances"))).toHaveLength(1);
});
