// Answers that do not fit the request, and keys that are refused: no number is taken from them.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { programTest } from "../program-context.ts";
import { PRODUCTION, smallConfig } from "../small-config.ts";
import { lastCoverage, rowsAsWritten } from "../stored-rows.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

test("a service that ignores windows is detected", async ({ context }) => {
  const emulator = await context.serve({ window: "ignored" });
  await context.configure(smallConfig(emulator.url));

  expect(await context.run(["export"])).toMatchObject({ status: 1 });

  expect(await rowsAsWritten(db)).toEqual([]);
  expect(await lastCoverage(db)).toEqual({
    all: {
      status: "failed",
      error: expect.stringMatching(/asked for .* names .* as its window.*export without "window"/),
    },
  });
});

test("if the key of one project is refused, the other project is still exported", async ({ context }) => {
  const second = context.newSecret();
  const emulator = await context.serve({
    consoleKeys: [{ secret: second, projectId: "project-2", scopes: ["member"] }],
  });
  const projects = [
    { ...PRODUCTION, key: { env: "WRONG_KEY" } },
    { id: "project-2", name: "staging", key: { env: "SECOND_KEY" } },
  ];
  await context.configure(
    smallConfig(emulator.url, {
      projects,
      exports: [{ projects: ["production", "staging"], groupings: ["none", "tags"] }],
    }),
  );

  const result = await context.run(["export"], { WRONG_KEY: context.newSecret(), SECOND_KEY: second });

  expect(result).toMatchObject({ status: 1, stdout: expect.stringMatching(/4 slices complete, 0 suspect, 4 failed/) });
  // The refusal is said once, though it kept several requests from being made.
  expect(result.stdout.match(/401/g)).toHaveLength(1);
  expect(await lastCoverage(db, "project")).toEqual({
    production: { status: "failed", error: expect.stringMatching(/401.*Invalid credentials/) },
    staging: { status: "complete", error: null },
  });
  const { rows } = await sql`select distinct project_id from bi.usage_total`.execute(db);
  expect(rows).toEqual([{ project_id: "project-2" }]);
});

const WITH_AURA = [{ requests: 5, feature_set: ["aura-2"] }, { requests: 7 }];

test.for([
  ["that lists no features", { fields: "missing", usage: () => WITH_AURA }, {}, "aura-2", "complete"],
  [
    'that does not know the feature, with "checkFeatures": "warn",',
    {},
    { checkFeatures: "warn" },
    "brand_new",
    "suspect",
  ],
] as const)(
  "a service %s is still requested with the filter, with a warning",
  async ([_, options, job, feature, fate], { context }) => {
    const emulator = await context.serve(options);
    const filters = [{ name: "new", features: { [feature]: true } }];
    await context.configure(smallConfig(emulator.url, { exports: [{ ...job, filters }] }));

    expect(await context.run(["export"])).toMatchObject({
      status: fate === "complete" ? 0 : 1,
      stderr: expect.stringMatching(/"level":40.*feature/),
    });

    expect(await lastCoverage(db)).toEqual({
      new: { status: fate, error: fate === "complete" ? null : expect.stringContaining("ignore") },
    });
  },
);
