import { expect, test } from "vitest";
import type { UsageRecord } from "../../src/emulator/usage.ts";
import { sumOf } from "../db/stored-charges.ts";
import type { Emulator, EmulatorOptions } from "../support/emulator.ts";
import { exact } from "../usage/expected-costs.ts";
import { ask, CONSOLE_KEY, start as startAtNoon } from "./ask.ts";

const BILLING_KEY = { ...CONSOLE_KEY, scopes: ["member", "billing:read"] };
const WEEK = "start=2026-03-09&end=2026-03-15";
const DAY = "start=2026-03-10&end=2026-03-10";

const start = (options: Partial<EmulatorOptions> = {}) => startAtNoon({ consoleKeys: [BILLING_KEY], ...options });

type Row = { readonly dollars: string; readonly grouping: Readonly<Record<string, string | string[] | null>> };

/** The parsed answer, in which numbers are texts with every digit that was sent. */
async function read(emulator: Emulator, path: string) {
  const response = await ask(emulator, path);
  expect(response.status, path).toBe(200);
  return JSON.parse(await response.text(), numberAsText);
}

function numberAsText(_: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" ? context?.source : value;
}

async function readRows(emulator: Emulator, query: string): Promise<readonly Row[]> {
  return (await read(emulator, `billing/breakdown?${query}`)).results;
}

const sum = (rows: readonly Row[]) => sumOf(rows.map(({ dollars }) => dollars));

function sumByDay(rows: readonly Row[]): Record<string, string> {
  const days = Map.groupBy(rows, ({ grouping }) => String(grouping.start));
  return Object.fromEntries([...days].map(([day, ofDay]) => [day, sum(ofDay)]));
}

const GROUPINGS = ["accessor", "deployment", "line_item", "tags"];
const COMBINATIONS = ["none", "tags", "line_item and tags", GROUPINGS.join(" and ")];

test.each(COMBINATIONS)("the groups by %s add up to the total exactly", async (combination) => {
  const groupings = GROUPINGS.filter((name) => combination.includes(name));
  await using emulator = await start();
  const total = await readRows(emulator, WEEK);
  const grouped = await readRows(emulator, `${WEEK}&${groupings.map((name) => `grouping=${name}`).join("&")}`);
  expect(total).toHaveLength(7);
  expect(sumByDay(grouped)).toEqual(sumByDay(total));
  if (groupings.length > 0) expect(grouped.length).toBeGreaterThan(2 * total.length);
  for (const { grouping } of grouped) {
    const withValue = Object.entries(grouping).filter(([name, value]) => value !== null && GROUPINGS.includes(name));
    expect(groupings).toEqual(expect.arrayContaining(withValue.map(([name]) => name)));
  }
});

const RECORDS: readonly UsageRecord[] = [
  { line_item: "streaming::nova-3", accessor: "k1", tags: ["b", "a"], deployment: "hosted", dollars: "1" },
  { line_item: "streaming::nova-3", accessor: "k2", tags: ["a", "b"], deployment: "dedicated", dollars: "2" },
  { line_item: "sync::aura-2", accessor: "k1", tags: ["a"], deployment: "hosted", dollars: "4" },
  { line_item: null, accessor: null, tags: null, deployment: null, dollars: "8" },
];
const usage = () => RECORDS;

test.each([
  ["accessor=k1", "5"],
  ["accessor=k1&accessor=k2", "7"],
  ["tags=a", "7"],
  ["line_item=sync::aura-2", "4"],
  ["line_item=sync%3A%3Aaura-2&line_item=streaming::nova-3&accessor=k2", "2"],
  ["deployment=dedicated&accessor=k1", undefined],
  ["a_name_nobody_knows=true", "15"],
])("of 15 dollars, the filter %s selects %s", async (filter, dollars) => {
  await using emulator = await start({ usage });
  expect((await readRows(emulator, `${DAY}&${filter}`)).map((row) => row.dollars)).toEqual(dollars ? [dollars] : []);
});

const BY_KEY_AND_ITEM = ["k1 streaming::nova-3 1", "k2 streaming::nova-3 2", "k1 sync::aura-2 4", "  8"];

test.each([
  ["grouping=line_item", ["streaming::nova-3 3", "sync::aura-2 4", " 8"]],
  ["grouping=tags&grouping=line_item", ["streaming::nova-3 b,a 3", "sync::aura-2 a 4", "  8"]],
  ["grouping=line_item&grouping=accessor", BY_KEY_AND_ITEM],
  ["grouping=model&grouping=deployment", ["hosted 5", "dedicated 2", " 8"]],
])("%s has the groups %j", async (query, groups) => {
  await using emulator = await start({ usage });
  const asked = new URLSearchParams(query).getAll("grouping");
  const names = GROUPINGS.filter((name) => asked.includes(name));
  const found = (await readRows(emulator, `${DAY}&${query}`)).map(({ dollars, grouping }) =>
    [...names.map((name) => String(grouping[name] ?? "")), dollars].join(" "),
  );
  expect(found).toEqual(groups);
});

test("amounts of 28 digits, amounts below 0 and tenths are added up exactly", async () => {
  const amounts = ["0.1", "0.2", "12345678901234.56789012345678", "-12345678901234.06789012345677"];
  await using emulator = await start({ usage: () => amounts.map((dollars) => ({ dollars })) });
  expect(await readRows(emulator, DAY)).toMatchObject([{ dollars: "0.80000000000001" }]);
  await using credit = await start({ usage: () => [{ dollars: "-0.05" }] });
  expect(await readRows(credit, DAY)).toMatchObject([{ dollars: "-0.05" }]);
});

test("billing/fields lists what cost something on the days asked for, with a display name for each line item", async () => {
  await using emulator = await start({
    usage: (_, day) => [
      { accessor: "k2", deployment: "hosted", tags: ["b", "a"], model: ["nova-3"], method: "streaming" },
      { accessor: "k1", tags: [day], model: ["aura-2-thalia-en"], method: "sync" },
      { endpoint: "read" },
      {},
    ],
  });
  expect(await read(emulator, "billing/fields?start=2026-03-09&end=2026-03-09")).toEqual({
    accessors: ["k1", "k2"],
    deployments: ["hosted"],
    tags: ["2026-03-09", "a", "b"],
    line_items: {
      "streaming::nova-3": "Nova - 3 (Stream)",
      "sync::aura-2": "Aura - 2 (Batch)",
      "text-intelligence": "Text - Intelligence",
    },
  });
});

test("the balance is $25,000 less the cost of each day since `firstPaidDay`, today (2026-03-18) included", async () => {
  await using emulator = await start({ firstPaidDay: "2026-03-16" });
  const { balances } = await read(emulator, "balances");
  expect(balances).toEqual([
    { balance_id: expect.any(String), amount: expect.any(String), units: "usd", purchase_order_id: expect.any(String) },
  ]);
  const spent = sum(await readRows(emulator, "start=2026-03-16&end=2026-03-18"));
  expect(exact(balances[0].amount) + exact(spent)).toBe(exact("25000"));
});

const OPERATIONS = ["billing/breakdown", "billing/fields", "balances"];

test.each(OPERATIONS)("%s needs the scope billing:read", async (path) => {
  const admin = { ...CONSOLE_KEY, secret: "of-an-admin", scopes: ["admin"] };
  await using emulator = await start({ consoleKeys: [CONSOLE_KEY, admin] });
  const refused = await ask(emulator, path);
  expect(refused.status).toBe(403);
  expect(await refused.text()).toContain("'billing:read' scope");
  expect((await ask(emulator, path, { secret: "of-an-admin" })).status).toBe(200);
});
