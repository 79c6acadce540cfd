// Billing from the configuration to the stored rows, with the emulator's billing operations.

import { sql } from "kysely";
import { expect } from "vitest";
import type { UsageSource } from "../../../src/emulator/usage.ts";
import { visibleCost } from "../../db/stored-billing.ts";
import { makeDoubtsAnHourOlder } from "../../db/stored-usage.ts";
import { testDatabase } from "../../support/database.ts";
import type { EmulatorOptions } from "../../support/emulator.ts";
import { PROJECT_ID, type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const NOVA = { endpoint: "listen", method: "streaming", requests: 1, accessor: "key-1", deployment: "hosted" } as const;

/** The same on each day. Two of the records are one group by tags. */
const BILLED: UsageSource = () => [
  { ...NOVA, line_item: "streaming::nova-3", tags: ["b", "a"], dollars: "0.1000000000000000000000000001" },
  { ...NOVA, line_item: "streaming::nova-3", tags: ["a", "b"], dollars: "0.2" },
  { ...NOVA, line_item: "sync::aura-2", tags: null, dollars: "12.25" },
];

type Fields = Readonly<Record<string, unknown>>;

async function serve(
  context: ProgramContext,
  options: Partial<EmulatorOptions> = {},
  job: Fields = {},
  scopes: readonly string[] = ["member", "billing:read"],
) {
  const secret = context.newSecret();
  const emulator = await context.serve({
    usage: BILLED,
    ...options,
    consoleKeys: [{ secret, projectId: PROJECT_ID, scopes }],
  });
  const billing = { name: "bills", source: "billing", window: { days: 2 }, groupings: [["tags", "line_item"]], ...job };
  const projects = [{ id: PROJECT_ID, name: "production", key: { env: "BILLING_KEY" } }];
  await context.configure(smallConfig(emulator.url, { projects, exports: [billing] }));
  const run = (...args: string[]) => context.run(args, { BILLING_KEY: secret });
  return { emulator, run };
}

async function coverage(): Promise<readonly unknown[]> {
  const { rows } = await sql`
    select distinct source, "grouping", filter, status, regexp_replace(error, ' \\(request id [^)]*\\)', '') as error
    from bi.coverage order by 1, 2, 3, 4
  `.execute(db);
  return rows;
}

/** Of the newer of the two days: the values and the amount. */
async function newestCost(): Promise<readonly unknown[]> {
  const rows = await visibleCost(db);
  const newest = rows.at(-1)?.usage_date;
  return rows
    .filter(({ usage_date }) => usage_date === newest)
    .map(({ line_item, tags, dollars }) => [line_item, tags, dollars]);
}

test("amounts by two dimensions are stored with every digit, and a second run writes no row", async ({ context }) => {
  const { emulator, run } = await serve(context, {}, { groupings: ["none", ["tags", "line_item"]] });
  expect(await run("export")).toMatchObject({ status: 0 });
  expect(await newestCost()).toEqual([
    ["streaming::nova-3", '["a","b"]', "0.3000000000000000000000000001"],
    ["sync::aura-2", null, "12.25"],
    [null, null, "12.5500000000000000000000000001"],
  ]);
  const asked = emulator.requests.map(({ path }) => new URL(path, emulator.url));
  const grouped = asked.filter(({ searchParams }) => searchParams.has("grouping"));
  expect(grouped.map(({ searchParams }) => searchParams.getAll("grouping"))).toEqual([["line_item", "tags"]]);
  expect(asked.filter(({ pathname }) => pathname.includes("/usage/"))).toEqual([]);
  expect(await coverage()).toEqual([
    { source: "billing", grouping: "line_item,tags", filter: "all", status: "complete", error: null },
    { source: "billing", grouping: "none", filter: "all", status: "complete", error: null },
  ]);
  expect((await run("export", "--json")).stdout).toContain('"rowsChanged":0');
});

test("a filter by tag narrows the amounts, whichever name the service's dialect has for it", async ({ context }) => {
  for (const dialect of ["interface", "2026"] as const) {
    const filters = [{ name: "tagged", dimensions: { tags: "a" } }];
    const { emulator, run } = await serve(context, { dialect }, { groupings: ["line_item"], filters });
    await context.configure({
      ...smallConfig(emulator.url, {
        service: { dialect: "auto" },
        projects: [{ id: PROJECT_ID, name: "production", key: { env: "BILLING_KEY" } }],
        exports: [{ name: "bills", source: "billing", groupings: ["line_item"], filters }],
      }),
    });
    expect(await run("export")).toMatchObject({ status: 0 });
    expect(await newestCost()).toEqual([["streaming::nova-3", null, "0.3000000000000000000000000001"]]);
  }
});

test("a value that the service does not list, and no amount has, is doubted until the service lists it", async ({
  context,
}) => {
  const filters = [{ name: "typo", dimensions: { line_item: "streaming::nova-33" } }];
  const { run } = await serve(context, {}, { filters });
  expect(await run("export")).toMatchObject({ status: 1 });
  const error = expect.stringMatching(/not list the line_item "streaming::nova-33".*did you mean "streaming::nova-3"/);
  await makeDoubtsAnHourOlder(db);
  expect(await run("export")).toMatchObject({ status: 1 });
  expect(await coverage()).toMatchObject([{ filter: "typo", status: "suspect", error }]);
});

test("a filter that leaves no amount is doubted until a later run confirms it", async ({ context }) => {
  const filters = [{ name: "free", dimensions: { line_item: "sync::aura-2" } }];
  const usage: UsageSource = (...day) => BILLED(...day).map((row) => (row.tags ? row : { ...row, dollars: "0" }));
  const { run } = await serve(context, { usage }, { filters });
  expect(await run("export")).toMatchObject({ status: 1 });
  const error = expect.stringContaining("no amount with the filter on any of 2 days on which there is some");
  expect(await coverage()).toMatchObject([{ filter: "free", status: "suspect", error }]);
  await makeDoubtsAnHourOlder(db);
  expect(await run("export")).toMatchObject({ status: 0 });
});

test("a key without the scope is told which one it needs", async ({ context }) => {
  const { emulator, run } = await serve(context, {}, {}, ["member"]);
  const { status, stderr } = await run("export");
  expect(status).toBe(1);
  expect(await coverage()).toMatchObject([{ status: "failed", error: expect.stringContaining("billing:read") }]);
  expect(stderr).toContain("billing request failed");
  expect((await run("check")).stdout).toMatch(/FAIL key: .*; reading billing needs billing:read/);
  expect(emulator.requests.filter(({ path }) => path.includes("/billing/breakdown"))).toHaveLength(1);
});

test("a service without billing fails the slices of billing, and check says so once", async ({ context }) => {
  const groupings = ["none", "accessor", "deployment", "line_item", "tags"];
  const { run } = await serve(context, { billing: "missing" }, { groupings });
  expect(await run("export")).toMatchObject({ status: 1 });
  const error = expect.stringContaining(
    'the service does not offer the billing breakdown for this project: remove the export with "source": "billing", or ask the vendor; if its usage can\'t be read either, check the project id',
  );
  expect(await coverage()).toEqual(
    groupings.toSorted().map((grouping) => ({ source: "billing", grouping, filter: "all", status: "failed", error })),
  );
  const { status, stdout } = await run("check");
  expect(status).toBe(1);
  expect(stdout.match(/does not offer the billing breakdown/g)).toHaveLength(1);
});

test("check names what works", async ({ context }) => {
  const filters = [{ name: "all" }, { name: "tagged", dimensions: { tags: "a" } }];
  const { run } = await serve(context, {}, { groupings: ["none", ["tags", "line_item"]], filters });
  const { status, stdout } = await run("check");
  expect(stdout).toMatch(/ok {3}billing grouping line_item,tags: 2 rows yesterday/);
  expect(stdout).toMatch(/ok {3}billing filter tagged: the filter narrows the numbers/);
  expect(status).toBe(0);
});

const JSON_TYPE = { "content-type": "application/json" };

/** Answers all requests with the same rows of one day. */
async function answerWith(context: ProgramContext, results: readonly Fields[], job: Fields = {}) {
  const served = await serve(context, {}, { window: { days: 1 }, groupings: [["tags", "line_item"]], ...job });
  served.emulator.fault = ({ path }) => {
    const { pathname, searchParams } = new URL(path, "http://localhost");
    if (!pathname.endsWith("/billing/breakdown")) return undefined;
    const [start, end] = [searchParams.get("start"), searchParams.get("end")];
    const rows = results.map(({ dollars, ...grouping }) => ({ dollars, grouping: { start, end, ...grouping } }));
    const body = JSON.stringify({ start, end, resolution: { units: "day", amount: 1 }, results: rows });
    return { kind: "answer", status: 200, headers: JSON_TYPE, body };
  };
  return served;
}

const GROUP = { line_item: "sync::aura-2", tags: ["a"] };

test.for<[string, readonly Fields[], readonly unknown[]]>([
  [
    "the same row twice",
    [
      { dollars: 1, ...GROUP },
      { dollars: 1, ...GROUP },
    ],
    [["sync::aura-2", '["a"]', "1"]],
  ],
  ["an amount that is null", [{ dollars: null, ...GROUP }], [["sync::aura-2", '["a"]', null]]],
  ["a credit", [{ dollars: -0.5, ...GROUP }], [["sync::aura-2", '["a"]', "-0.5"]]],
  ["a dimension that is null", [{ dollars: 1, ...GROUP, line_item: null }], [[null, '["a"]', "1"]]],
])("an answer with %s is stored", async ([, results, stored], { context }) => {
  const { run } = await answerWith(context, results);
  expect(await run("export")).toMatchObject({ status: 0 });
  expect(await newestCost()).toEqual(stored);
});

test.for<[string, readonly Fields[], RegExp]>([
  [
    "a group with two amounts",
    [
      { dollars: 1, ...GROUP },
      { dollars: 2, ...GROUP },
    ],
    /two rows with different numbers/,
  ],
  ["a dimension that is missing", [{ dollars: 1, tags: ["a"] }], /no row has the dimension "line_item"/],
  ["no amount at all", [{ ...GROUP }], /no row has the member "dollars"/],
  ["an amount that is no number", [{ dollars: "1", ...GROUP }], /expected a number/],
])("an answer with %s is refused", async ([, results, error], { context }) => {
  const { run } = await answerWith(context, results);
  expect(await run("export")).toMatchObject({ status: 1 });
  expect(await newestCost()).toEqual([]);
  expect(await coverage()).toMatchObject([{ status: "failed", error: expect.stringMatching(error) }]);
});
