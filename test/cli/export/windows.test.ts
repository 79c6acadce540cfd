// Which days an export reads: those of its window, today, or those that the service chooses; also with changed filters and groupings.

import { sql } from "kysely";
import { expect } from "vitest";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import { testDatabase } from "../../support/database.ts";
import type { Emulator } from "../../support/emulator.ts";
import { lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const today = dayOf(new Date());
const yesterday = addDays(today, -1);

test("today is stored with the finality open, and the next run stores its new numbers", async ({ context }) => {
  const emulator = await context.serve();
  const noon = Date.parse(`${today}T12:00:00Z`);
  emulator.now = () => new Date(noon);
  await context.configure(smallConfig(emulator.url, { exports: [{ window: { days: 1, today: true } }] }));
  const reading = { groupings: ["none"], window: { start: yesterday, end: today } };

  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
  emulator.now = () => new Date(noon + 3_600_000);
  expect(await context.run(["export"])).toMatchObject({ status: 0 });

  expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
  expect(await coverage()).toEqual([
    { usage_date: yesterday, status: "complete", finality: "settling" },
    { usage_date: today, status: "complete", finality: "open" },
  ]);
});

test("without a window no dates are sent, and the days that the answer names are stored", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings: ["none", "tags"], window: undefined }] }));

  expect(await context.run(["export"])).toMatchObject({ status: 0 });

  expect(windowsAsked(emulator)).toEqual(["null to null", "null to null"]);
  // The emulator answers 30 days when it is asked for none.
  const reading = { groupings: ["none", "tags"], window: lastDays(30) };
  expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
});

test("two exports that read the same series keep one set of numbers", async ({ context }) => {
  const emulator = await context.serve();
  const exports = [
    { name: "nightly", groupings: ["none", "endpoint"] },
    { name: "weekly", groupings: ["endpoint", "tags"], window: { days: 5 } },
  ];
  await context.configure(smallConfig(emulator.url, { exports }));

  const { status, stdout } = await context.run(["export"]);

  expect({ status, jobs: stdout.match(/^\w+(?=:)/gm) }).toEqual({ status: 0, jobs: ["nightly", "weekly"] });
  for (const reading of [
    { groupings: ["none"], window: lastDays(2) },
    { groupings: ["endpoint", "tags"], window: lastDays(5) },
  ]) {
    expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
  }
});

/** The windows of the requested breakdowns, in the order of the requests. */
function windowsAsked(emulator: Emulator): string[] {
  return emulator.requests
    .map(({ path }) => new URL(path, emulator.url))
    .filter(({ pathname }) => pathname.endsWith("/usage/breakdown"))
    .map(({ searchParams }) => `${searchParams.get("start")} to ${searchParams.get("end")}`);
}

async function coverage() {
  const { rows } = await sql`select usage_date, status, finality from bi.coverage order by usage_date`.execute(db);
  return rows;
}
