// Billing from the configuration to the views. The views show exactly the amounts and balances that the service answered.

import { sql } from "kysely";
import { expect } from "vitest";
import type { UsageSource } from "../../../src/emulator/usage.ts";
import { BILLING_GROUPINGS } from "../../../src/usage/series.ts";
import { visibleCost } from "../../db/stored-billing.ts";
import { makeDoubtsAnHourOlder } from "../../db/stored-usage.ts";
import type { EmulatorOptions, SeenRequest } from "../../support/emulator.ts";
import { waitForRuns } from "../evidence.ts";
import { ask, lastDays, servedBills, storedBills } from "../numbers.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";

const { test, db } = await databaseTest();

const DAY_MS = 86_400_000;
const SCOPES = ["member", "billing:read"];
const NOVA = { endpoint: "listen", method: "streaming", requests: 1, accessor: "key-1", deployment: "hosted" } as const;

/** The same on each day. The first two records have the same tags in another order, so they belong to one group. */
const BILLED: UsageSource = () => [
  { ...NOVA, line_item: "streaming::nova-3", tags: ["b", "a"], dollars: "0.1000000000000000000000000001" },
  { ...NOVA, line_item: "streaming::nova-3", tags: ["a", "b"], dollars: "0.2" },
  { ...NOVA, line_item: "sync::aura-2", tags: null, dollars: "12.25" },
];

type Fields = Readonly<Record<string, unknown>>;

/** Without `options` the emulator serves BILLED, and with {} its own usage. */
function setUp(
  context: ProgramContext,
  job: Fields = {},
  options: Partial<EmulatorOptions> & Fields = { usage: BILLED },
) {
  const exports = [{ name: "bills", source: "billing", groupings: [["tags", "line_item"]], ...job }];
  return context.setUp({ exports }, { scopes: SCOPES, ...options });
}

const OK = { status: 0 };
const FAILED = { status: 1 };

/** The statuses of each series, with their errors but without request ids. */
async function coverageStatuses(): Promise<readonly unknown[]> {
  const { rows } = await sql`
    select distinct source, "grouping", filter, status, regexp_replace(error, ' \\(request id [^)]*\\)', '') as error
    from bi.coverage order by 1, 2, 3, 4
  `.execute(db);
  return rows;
}

/** The values and the amount of each group on the newest stored day. */
async function newestCost(): Promise<readonly unknown[]> {
  const rows = await visibleCost(db);
  const newest = rows.filter(({ usage_date }) => usage_date === rows.at(-1)?.usage_date);
  return newest.map(({ line_item, tags, dollars }) => [line_item, tags, dollars]);
}

test("every view of every grouping and filter shows the service's amounts", async ({ context }) => {
  const days = 4;
  const window = lastDays(days);
  const groupings = BILLING_GROUPINGS.map((grouping) => (grouping === "none" ? grouping : grouping.split(",")));
  const filters = [{ name: "all" }, { name: "of prod", dimensions: { tags: "prod" } }];
  const emulator = await setUp(context, { groupings, filters, window: { days } }, {});
  const amounts: unknown[] = [];
  for (const daysLater of [0, 1]) {
    emulator.now = () => new Date(Date.now() + daysLater * DAY_MS);
    expect(await context.run(["export"])).toMatchObject(OK);
    for (const name of BILLING_GROUPINGS) {
      const served = await servedBills(emulator, context.key, name, window);
      expect(served.length, name).toBeGreaterThanOrEqual(days);
      expect(await storedBills(db, "cost_by_group", name, sql`"grouping" = ${name}`), name).toEqual(served);
      const ownView = { none: "cost_total", accessor: "cost_by_key" }[name as string] ?? `cost_by_${name}`;
      if (!name.includes(",")) expect(await storedBills(db, ownView, name), name).toEqual(served);
      const filtered = await servedBills(emulator, context.key, name, window, "tags=prod");
      const where = sql`"grouping" = ${name} and filter = 'of prod'`;
      expect(await storedBills(db, "cost_filtered", name, where), `${name} of prod`).toEqual(filtered);
      if (name === "none") amounts.push(...served.map(({ amount }) => amount));
    }
  }
  const { rows: named } = await sql<{ line_item: string; label: string }>`select * from bi.line_items`.execute(db);
  expect(await ask(emulator, context.key, "billing/fields")).toMatchObject({
    line_items: Object.fromEntries(named.map((one) => [one.line_item, one.label])),
  });
  // Some amounts have more digits than a double can hold, and late usage has changed some of the first run's amounts.
  expect(amounts.some((amount) => String(Number(amount)) !== amount)).toBe(true);
  expect(amounts.slice(0, days)).not.toEqual(amounts.slice(days));
});

test("a filter by tag narrows the amounts in each dialect, by the dialect's own parameter", async ({ context }) => {
  for (const dialect of ["interface", "2026"] as const) {
    const filters = [{ name: "tagged", dimensions: { tags: "a" } }];
    const exports = [{ name: "bills", source: "billing", groupings: ["line_item"], filters }];
    await context.setUp({ service: { dialect: "auto" }, exports }, { dialect, usage: BILLED, scopes: SCOPES });
    expect(await context.run(["export"])).toMatchObject(OK);
    expect(await newestCost()).toEqual([["streaming::nova-3", null, "0.3000000000000000000000000001"]]);
  }
});

const UNLISTED = /not list the line_item "streaming::nova-33".*did you mean "streaming::nova-3"/;
test.for([
  ["that the service does not list stays in doubt", "streaming::nova-33", UNLISTED, FAILED],
  ["that is free is doubted until a later run confirms it", "sync::aura-2", /no amount .* 2 of the days have some/, OK],
] as const)("a filter by a line item %s", async ([, line_item, error, later], { context }) => {
  const usage: UsageSource = (...args) =>
    BILLED(...args).map((row) => (row.line_item === "sync::aura-2" ? { ...row, dollars: "0" } : row));
  await setUp(context, { filters: [{ name: "narrow", dimensions: { line_item } }] }, { usage });
  for (const expected of [FAILED, later]) {
    expect(await context.run(["export"])).toMatchObject(expected);
    const narrowed = {
      filter: "narrow",
      ...(expected === OK ? { status: "complete" } : { status: "suspect", error: expect.stringMatching(error) }),
    };
    expect(await coverageStatuses()).toMatchObject([narrowed]);
    await makeDoubtsAnHourOlder(db);
  }
  // After the confirmation one more day without an amount is not doubted. The unlisted item stays in doubt.
  const deleteNewest = sql`delete from usage_export.slice where usage_date = (select max(usage_date) from usage_export.slice)`;
  await deleteNewest.execute(db);
  expect(await context.run(["export"])).toMatchObject(later);
});

test("if the key lacks the scope for billing, the errors name it", async ({ context }) => {
  const emulator = await setUp(context, {}, { scopes: ["member"] });
  const { status, stderr } = await context.run(["export"]);
  expect(status).toBe(1);
  expect(await coverageStatuses()).toMatchObject([
    { status: "failed", error: expect.stringContaining("billing:read") },
  ]);
  expect(stderr).toContain("billing request failed");
  expect((await context.run(["check"])).stdout).toMatch(/FAIL key: .*; reading billing needs billing:read/);
  expect(emulator.requests.filter(({ path }) => path.includes("/billing/breakdown"))).toHaveLength(1);
});

test("slices of billing fail if the service has no billing", async ({ context }) => {
  const groupings = ["accessor", "deployment", "line_item", "none", "tags"];
  await setUp(context, { groupings }, { billing: "missing" });
  expect(await context.run(["export"])).toMatchObject(FAILED);
  const error = expect.stringContaining(
    'the service does not offer the billing breakdown for this project: remove the export with "source": "billing", or ask the vendor; if its usage can\'t be read either, check the project id',
  );
  expect(await coverageStatuses()).toEqual(
    groupings.map((grouping) => ({ source: "billing", grouping, filter: "all", status: "failed", error })),
  );
  const { status, stdout } = await context.run(["check"]);
  expect(status).toBe(1);
  expect(stdout.match(/does not offer the billing breakdown/g)).toHaveLength(1);
});

test("check says of each grouping and filter of billing that it works", async ({ context }) => {
  const filters = [{ name: "all" }, { name: "tagged", dimensions: { tags: "a" } }];
  await setUp(context, { groupings: ["none", ["tags", "line_item"]], filters });
  const { status, stdout } = await context.run(["check"]);
  expect(stdout).toMatch(/ok {3}billing grouping line_item,tags: 2 rows yesterday/);
  expect(stdout).toMatch(/ok {3}billing filter tagged: the filter narrows the numbers/);
  expect(status).toBe(0);
});

const isBalances = ({ path }: Pick<SeenRequest, "path">) => path.endsWith("/balances");

test("each run reads the balances once into bi.balances", async ({ context }) => {
  const emulator = await setUp(context, { groupings: ["none", "tags"] }, {});
  const served: unknown[] = [];
  for (const [run, daysLater] of [0, 0.5, 1].entries()) {
    const now = new Date(Date.now() + daysLater * DAY_MS);
    emulator.now = () => now;
    const { balances } = await ask<{ balances: Record<string, string>[] }>(emulator, context.key, "balances");
    served.push(...balances.map(({ balance_id = "", amount }) => ({ [balance_id]: amount })));
    expect(await context.run(["export"])).toMatchObject(OK);
    // One request is the test's own, the other is the run's.
    expect(emulator.requests.filter(isBalances)).toHaveLength(2 * (run + 1));
  }
  const { rows } = await sql<{ balance: unknown }>`
    select json_build_object(balance_id, trim_scale(amount)::text) as balance from bi.balances where units = 'usd' order by read_at
  `.execute(db);
  expect(rows.map(({ balance }) => balance)).toEqual(served);
  const newest = await sql`select 1 from bi.balances where ended_at is null and last_read_at >= read_at`.execute(db);
  expect(newest.rows).toHaveLength(1);
});

test("a run of usage reads no balances", async ({ context }) => {
  const emulator = await context.setUp({}, { scopes: SCOPES });
  expect(await context.run(["export"])).toMatchObject(OK);
  // A run of billing would read its balances together with the list of keys.
  expect(emulator.requests.filter(({ path }) => path.includes("/keys"))).toHaveLength(1);
  expect(emulator.requests.filter(isBalances)).toEqual([]);
});

test.for([403, 404])("a %i for the balances costs a run only one warning", async (status, { context }) => {
  const emulator = await setUp(context, { groupings: ["none", "tags"] });
  emulator.fault = (request) => (isBalances(request) ? { kind: "answer", status } : undefined);
  const result = await context.run(["export"]);
  expect(result).toMatchObject(OK);
  expect(result.stderr.match(/balances not read/g)).toHaveLength(1);
  expect(emulator.requests.filter(isBalances)).toHaveLength(1);
});

test("a worker reads the balances once for a run of billing", async ({ context }) => {
  const emulator = await setUp(context, { groupings: ["none", "line_item"] });
  context.work();
  await waitForRuns(db, 1);
  await expect.poll(async () => (await sql`select amount from bi.balances`.execute(db)).rows).toHaveLength(1);
  expect(emulator.requests.filter(isBalances)).toHaveLength(1);
});
