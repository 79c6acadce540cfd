// A service that ignores the grouping and answers null for every dimension, compared with usage that really has no value of a dimension.

import { sql } from "kysely";
import { expect } from "vitest";
import type { UsageSource } from "../../../src/emulator/usage.ts";
import { testDatabase } from "../../support/database.ts";
import type { EmulatorOptions } from "../../support/emulator.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const TAGLESS: UsageSource = () => [
  { endpoint: "listen", method: "sync", requests: 3 },
  { endpoint: "speak", method: "sync", requests: 4 },
];

async function serve(context: ProgramContext, options: Partial<EmulatorOptions>, groupings: readonly string[]) {
  const emulator = await context.serve({ usage: TAGLESS, ...options });
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings, window: { days: 2 } }] }));
  return emulator;
}

async function coverage(grouping: string) {
  const { rows } = await sql<{ status: string; error: string | null }>`
    select distinct status, error from bi.coverage where "grouping" = ${grouping}
  `.execute(db);
  return rows;
}

test("an answer with a total instead of groups is refused, and the stored numbers stay", async ({ context }) => {
  await serve(context, {}, ["none", "endpoint", "tags"]);
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  await serve(context, { grouping: "ignored" }, ["none", "endpoint", "tags"]);

  expect(await context.run(["export"])).toMatchObject({ status: 1, stdout: expect.stringContaining("4 failed") });

  for (const [grouping, other] of [
    ["endpoint", "method"],
    ["tags", "endpoint"],
  ] as const) {
    const error = expect.stringMatching(`^no row has a value of "${grouping}", and none has one by ${other} either`);
    expect(await coverage(grouping)).toEqual([{ status: "failed", error }]);
  }
  expect(await coverage("none")).toEqual([{ status: "complete", error: null }]);
  const { rows } = await sql`select distinct endpoint, requests from bi.usage_by_endpoint order by 1`.execute(db);
  expect(rows).toEqual([
    { endpoint: "listen", requests: "3" },
    { endpoint: "speak", requests: "4" },
  ]);
});

test("for a project without tags the usage without tags is stored, after one more call", async ({ context }) => {
  const emulator = await serve(context, {}, ["none", "tags", "accessor"]);
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await coverage("tags")).toEqual([{ status: "complete", error: null }]);
  const { rows } = await sql`select distinct tags, requests from bi.usage_by_tags`.execute(db);
  expect(rows).toEqual([{ tags: null, requests: "7" }]);
  const asked = emulator.requests.map(({ path }) => new URL(path, emulator.url).searchParams.get("grouping"));
  expect(asked.filter((grouping) => grouping === "endpoint")).toHaveLength(1);
  expect((await context.run(["check"])).stdout).toMatch(/^ {2}ok {3}grouping tags: 1 row yesterday/m);
});
