// Fan-out filters: { "each": "accessor" } reads usage for each API key that stored usage has.

import { sql } from "kysely";
import { expect } from "vitest";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import type { UsageRecord } from "../../../src/emulator/usage.ts";
import type { Emulator } from "../../support/emulator.ts";
import { waitForRuns } from "../evidence.ts";
import { databaseTest } from "../program-context.ts";

const { test, db } = await databaseTest();

const USAGE: readonly UsageRecord[] = [
  { accessor: "key-a", model: ["nova-3"], method: "sync", requests: 5, tags: ["prod"] },
  { accessor: "key-a", model: ["aura-2"], method: "async", requests: 2, tags: ["prod", "eu"] },
  { accessor: "key-b", model: ["nova-3"], method: "sync", requests: 3, tags: null },
  { accessor: "key-c", model: ["nova-3"], method: "sync", requests: 1, tags: null },
];
const FAN_OUT = { groupings: ["none", "accessor", "model"], filters: [{ name: "all" }, { each: "accessor" }] };

/** The requests of each key and model, summed over all days. */
async function requestsByKeyAndModel(): Promise<Readonly<Record<string, string>>> {
  const { rows } = await sql<{ name: string; requests: string }>`
    select value || ' ' || group_value as name, sum(requests) as requests from bi.usage_by_two_dimensions
    where dimension = 'accessor' and "grouping" = 'model' group by 1 order by 1
  `.execute(db);
  return Object.fromEntries(rows.map(({ name, requests }) => [name, requests]));
}

/** The keys that calls to the emulator filtered by, not counting the first `since` calls. */
function accessorsAsked({ requests }: Emulator, since = 0): readonly string[] {
  const asked = requests
    .slice(since)
    .flatMap(({ path }) => new URL(path, "http://x").searchParams.get("accessor") ?? []);
  return [...new Set(asked.filter((accessor) => accessor.startsWith("key-")))].sort();
}

test("the second export reads the models of each key that the first one found", async ({ context }) => {
  await context.setUp({ exports: [FAN_OUT] }, { usage: () => USAGE });

  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await requestsByKeyAndModel()).toEqual({});
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  // An export reads two days, and the usage of both is the same.
  expect(await requestsByKeyAndModel()).toEqual({
    "key-a aura-2": "4",
    "key-a nova-3": "10",
    "key-b nova-3": "6",
    "key-c nova-3": "2",
  });
  const { rows } = await sql`
    select "grouping", filter, count(*)::integer as days from bi.coverage
    where status = 'complete' and filter <> 'all' group by 1, 2 order by 2
  `.execute(db);
  // Only the grouping model is read for each key: the other two would only repeat the key's total.
  expect(rows).toEqual(["a", "b", "c"].map((key) => ({ grouping: "model", filter: `accessor=key-${key}`, days: 2 })));
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
});

test("a fan-out reads at most `atMost` values and says how many it leaves out", async ({ context }) => {
  const exports = [{ ...FAN_OUT, filters: [{ name: "all" }, { each: "accessor", atMost: 2 }] }];
  const others = Array.from({ length: 100 }, (_, i) => ({ accessor: `other-${i}`, model: ["nova-3"], requests: 1 }));
  await context.setUp({ exports }, { usage: () => [...USAGE, ...others] });

  await context.run(["export"]);
  const { stderr } = await context.run(["export"]);
  expect(Object.keys(await requestsByKeyAndModel())).toEqual(["key-a aura-2", "key-a nova-3", "key-b nova-3"]);
  expect(stderr).toContain("more values were seen than the filter reads");
  // 103 keys were seen, of which two are read.
  expect(stderr).toMatch(/leftOut\W+101\b/);
});

test("a value that can't be in a filter is neither read nor counted as left out by `atMost`", async ({ context }) => {
  // Two spaces in a row, and more than 256 characters, are not allowed in a filter.
  const unusable = ["key  d", "e".repeat(257)].map((accessor) => ({ accessor, model: ["nova-3"], requests: 9 }));
  const exports = [{ ...FAN_OUT, filters: [{ name: "all" }, { each: "accessor", atMost: 3 }] }];
  await context.setUp({ exports }, { usage: () => [...USAGE, ...unusable] });

  await context.run(["export"]);
  const { status, stderr } = await context.run(["export"]);
  expect(status).toBe(0);
  expect(stderr).not.toContain("more values were seen");
  expect(Object.keys(await requestsByKeyAndModel())).toHaveLength(USAGE.length);
});

test("a fan-out stores nothing if the service does not know the parameter that it filters by", async ({ context }) => {
  // In dialect 2026, which the emulator speaks, the parameter is "tag"; the emulator takes "tags" for a feature.
  const exports = [{ groupings: ["tags", "method"], filters: [{ name: "all" }, { each: "tags" }] }];
  await context.setUp({ service: { dialect: "interface" }, exports }, { usage: () => USAGE, dialect: "2026" });

  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await context.run(["export"])).toMatchObject({ status: 1 });
  const { rows } = await sql`select * from bi.usage_by_two_dimensions`.execute(db);
  expect(rows).toEqual([]);
});

test("a worker that starts reads each key that the last run found", async ({ context }) => {
  const emulator = await context.setUp({ exports: [FAN_OUT] }, { usage: () => USAGE });
  const first = context.work();
  await waitForRuns(db, 1);
  await first[Symbol.asyncDispose]();
  expect(accessorsAsked(emulator)).toEqual([]);

  // A worker plans at its start.
  const second = context.work();
  expect(await waitForRuns(db, 2)).toMatchObject([{ trigger: "catchup" }, { trigger: "catchup", status: "ok" }]);
  await second[Symbol.asyncDispose]();
  expect(await requestsByKeyAndModel()).toMatchObject({ "key-a nova-3": "10", "key-c nova-3": "2" });
});

test("the days of a key without usage in the window are not due", async ({ context }) => {
  let usage = USAGE;
  const emulator = await context.setUp(
    { exports: [{ ...FAN_OUT, emptyGuard: "off", cliffGuard: "off" }] },
    { usage: () => usage },
  );
  await context.run(["export"]);
  await context.run(["export"]);
  usage = USAGE.filter(({ accessor }) => accessor !== "key-c");
  // This run learns that key-c has no usage in the window.
  await context.run(["export", "--filter", "all"]);

  const since = emulator.requests.length;
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(accessorsAsked(emulator, since)).toEqual(["key-a", "key-b"]);
  expect(await requestsByKeyAndModel()).toMatchObject({ "key-c nova-3": "2" });
  const { rows } = await sql`select distinct active from bi.coverage where filter = 'accessor=key-c'`.execute(db);
  expect(rows).toEqual([{ active: false }]);
});

test("with several --day options, `atMost` keys are chosen by their usage on all these days", async ({ context }) => {
  const days = [30, 20, 10].map((back) => addDays(dayOf(new Date()), -back));
  const old = { accessor: "key-old", model: ["nova-3"], requests: 9 };
  const usage = (_: string, day: string) => (day === days[2] ? [...USAGE, old] : []);
  const filters = [{ name: "all" }, { each: "accessor", atMost: 1 }];
  await context.setUp({ exports: [{ ...FAN_OUT, filters }] }, { usage });
  const command = ["export", ...days.flatMap((day) => ["--day", day])];
  for (let i = 0; i < 2; i++) expect(await context.run(command)).toMatchObject({ status: 0 });
  expect(await requestsByKeyAndModel()).toEqual({ "key-old nova-3": "9" });
});

test("a second backfill reads every key that was used in its days", async ({ context }) => {
  const today = dayOf(new Date());
  // So many days take two requests per series. The second request's days have no usage of the old key.
  const [from, to] = [addDays(today, -45), addDays(today, -6)];
  const old = [{ accessor: "key-old", model: ["nova-3"], requests: 9 }];
  // The key was used on the first two of these days.
  const usage = (_: string, day: string) => [...USAGE, ...(day < addDays(from, 2) ? old : [])];
  await context.setUp({ exports: [FAN_OUT] }, { usage });
  const backfill = () => context.run(["backfill", "--from", from, "--to", to]);

  expect(await backfill()).toMatchObject({ status: 0 });
  expect(await backfill()).toMatchObject({ status: 0 });
  expect(await requestsByKeyAndModel()).toMatchObject({ "key-a nova-3": "200", "key-old nova-3": "18" });
  const { rows } = await sql`
    select status, count(*)::integer as days from bi.coverage where filter = 'accessor=key-old' group by 1
  `.execute(db);
  expect(rows).toEqual([{ status: "complete", days: 40 }]);
});
