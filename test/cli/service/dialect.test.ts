// The dialect "auto": a probe, which is a request for usage by model, finds the dialect for all runs. A doubtful answer causes another probe.

import { sql } from "kysely";
import { expect } from "vitest";
import type { Dialect } from "../../../src/usage/dimensions.ts";
import type { Emulator, EmulatorOptions } from "../../support/emulator.ts";
import { breakdowns, statusBy, workOnce } from "../evidence.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";

const { test, db } = await databaseTest();

const USAGE = [
  { requests: 5, model: ["nova-3"], tags: ["prod"] },
  { requests: 7, model: ["nova-2"], tags: ["staging"] },
];

const PROD = { name: "prod", dimensions: { tags: "prod" } };

function setUp(
  context: ProgramContext,
  options: Partial<EmulatorOptions>,
  filters: readonly object[] = [{ name: "all" }, PROD],
): Promise<Emulator> {
  const exports = [{ groupings: ["none", "model"], filters }];
  return context.setUp({ service: { dialect: "auto" }, exports }, { usage: () => USAGE, ...options });
}

/** By grouping and filter, the groups with their numbers of requests, such as "nova-3 5". */
async function storedGroups(): Promise<Readonly<Record<string, readonly string[]>>> {
  const { rows } = await sql<{ name: string; shown: readonly string[] }>`
    select "grouping" || ' / ' || filter as name, array_agg(distinct coalesce(group_value, 'total') || ' ' || requests) as shown
    from bi.usage_as_of(now()) group by 1
  `.execute(db);
  return Object.fromEntries(rows.map(({ name, shown }) => [name, shown]));
}

const SERVED = {
  "none / all": ["total 12"],
  "model / all": ["nova-2 7", "nova-3 5"],
  "none / prod": ["total 5"],
  "model / prod": ["nova-3 5"],
};

test.for<Dialect>(["interface", "2026"])(
  "after one probe, every run calls a service of dialect %s in its dialect",
  async (dialect, { context }) => {
    const emulator = await setUp(context, { dialect });

    expect(await context.run(["export"])).toMatchObject({ status: 0 });
    expect(await storedGroups()).toEqual(SERVED);

    const before = breakdowns(emulator).length;
    await workOnce(context, db);
    expect(await context.run(["export"])).toMatchObject({ status: 0 });
    const otherDialect = dialect === "2026" ? /grouping=model(&|$)|tags=/ : /grouping=models|tag=/;
    const later = breakdowns(emulator).slice(before);
    expect(later.filter((path) => otherDialect.test(path))).toEqual([]);
    expect(await storedGroups()).toEqual(SERVED);
  },
);

test("until there is usage to probe, the default dialect is used with a warning", async ({ context }) => {
  let usage: typeof USAGE = [];
  await setUp(context, { dialect: "interface", usage: () => usage });
  const { status, stderr } = await context.run(["export"]);
  expect(status).toBe(0);
  expect(stderr).toMatch(/"level":40.*"dialect":"2026".*no usage shows yet which dialect/);
  expect((await context.run(["check"])).stdout).toMatch(/warn dialect: no usage shows yet which .* "2026" is used/);
  expect(await storedGroups()).toEqual({});

  usage = USAGE;
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await storedGroups()).toEqual(SERVED);
});

test("a filter for which the dialect has no parameter fails alone", async ({ context }) => {
  const set = { name: "set", dimensions: { feature_set: "diarize" } };
  await setUp(context, { dialect: "2026" }, [{ name: "all" }, set]);
  expect(await context.run(["export"])).toMatchObject({ status: 1 });
  expect(await statusBy(db, "filter")).toEqual({
    all: { status: "complete", error: null },
    set: { status: "failed", error: expect.stringMatching(/narrows by feature_set.*only groups by/) },
  });
});

test("if the probe fails, only the total without a filter is stored", async ({ context }) => {
  const emulator = await setUp(context, { dialect: "2026" });
  emulator.fault = ({ path }) => (path.includes("grouping=model") ? { kind: "answer", status: 404 } : undefined);
  expect(await context.run(["export"])).toMatchObject({ status: 1 });
  expect(await storedGroups()).toEqual({ "none / all": ["total 12"] });
});
