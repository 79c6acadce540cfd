// The views for BI tools show exactly the numbers that the service answered, over several exports.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { ALL_GROUPINGS, lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { rowsAsWritten } from "../stored-rows.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const FILTERS = [
  { name: "all" },
  { name: "diarized-listen", features: { diarize: true }, dimensions: { endpoint: "listen" } },
  { name: "not punctuated", features: { punctuate: false } },
];
const FILTER_QUERIES = {
  all: "",
  "diarized-listen": "diarize=true&endpoint=listen",
  "not punctuated": "punctuate=false",
};

test("every view of every grouping and filter shows the service's numbers", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(
    smallConfig(emulator.url, { exports: [{ groupings: ALL_GROUPINGS, filters: FILTERS, window: { days: 3 } }] }),
  );

  expect(await context.run(["export"])).toMatchObject({ status: 0 });

  const reading = { groupings: ALL_GROUPINGS, filters: FILTER_QUERIES, window: lastDays(3) };
  expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
});

test("a second run of unchanged days writes no row", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings: ["none", "tags"], filters: FILTERS }] }));
  await context.run(["export"]);
  const before = { rows: await rowsAsWritten(db), history: await historyLength() };

  expect(await context.run(["export"])).toMatchObject({ status: 0, stdout: expect.stringContaining("0 rows changed") });

  expect(before.rows.length).toBeGreaterThan(20);
  expect({ rows: await rowsAsWritten(db), history: await historyLength() }).toEqual(before);
});

async function historyLength(): Promise<unknown> {
  const { rows } = await sql`select count(*) from usage_export.row_revision`.execute(db);
  return rows;
}
