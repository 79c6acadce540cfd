// The views of cost show exactly the amounts that the service answered, over restated days, and balances as they were read.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { BILLING_GROUPINGS, servedBalances, servedBills, servedLineItems, storedBills } from "../bills.ts";
import { lastDays } from "../numbers.ts";
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
  const { rows: named } = await sql<{ line_item: string; label: string }>`select * from bi.line_items`.execute(db);
  expect(Object.fromEntries(named.map((one) => [one.line_item, one.label]))).toEqual(
    await servedLineItems(emulator, context.key),
  );
  // Some of them have more digits than a double, and late usage has changed some.
  expect(amounts.some((amount) => String(Number(amount)) !== amount)).toBe(true);
  expect(amounts.slice(0, 4)).not.toEqual(amounts.slice(4));
});

function ownView(dimension = "none"): string {
  if (dimension === "none") return "cost_total";
  return dimension === "accessor" ? "cost_by_key" : `cost_by_${dimension}`;
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

for (const status of [403, 404]) {
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
    expect(stderr.split("balances not read")).toHaveLength(2);
    expect(emulator.requests.filter(isBalances)).toHaveLength(1);
  });
}

test("a worker reads the balances once for a run of billing", async ({ context }) => {
  const emulator = await context.serve({ scopes: SCOPES });
  await context.configure(smallConfig(emulator.url, { exports: [{ ...COSTS, groupings: ["none", "line_item"] }] }));
  context.start(["start"]);
  await waitForRuns(db, 1);
  await expect.poll(async () => (await sql`select amount from bi.balances`.execute(db)).rows).toHaveLength(1);
  expect(emulator.requests.filter(({ path }) => path.endsWith("/balances"))).toHaveLength(1);
});
