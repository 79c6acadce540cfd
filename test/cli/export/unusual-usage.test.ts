// An unusual day, from the run that reads it to what people see.

import { sql } from "kysely";
import { expect } from "vitest";
import { addDays, type Day, dayOf } from "../../../src/usage/days.ts";
import { testDatabase } from "../../support/database.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { serveAndConfigure, workOnce } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const today = dayOf(new Date());
const from = addDays(today, -60);
const unusual = addDays(today, -1);
const TEXT = `unusual usage of production on ${unusual}: Requests: 9,000, and may still change, usually 687 to 1,375`;
const BACKFILL = ["backfill", "--from", from, "--to", addDays(today, -1)];

function serve(context: ProgramContext, rest = {}) {
  const usage = (_: string, day: Day) => [{ endpoint: "listen", requests: day === unusual ? 9_000 : 1_000 }];
  return serveAndConfigure(context, { rest }, { countsFrom: from, usage });
}

async function unusualDays(): Promise<readonly unknown[]> {
  const { rows } = await sql<{ day: string }>`select usage_date as day from bi.usage_anomalies`.execute(db);
  return rows.map(({ day }) => day);
}

test("an unusual day is found the next morning", async ({ context }) => {
  await serve(context);
  expect((await context.run(BACKFILL)).stderr).toContain("unusual usage");
  expect((await context.run(["status"])).stdout).toContain(`reminders:\n  ${TEXT}\n`);

  const again = await context.run(["export"]);
  expect(again.status).toBe(0);
  expect(again.stderr).not.toContain("unusual usage");
});

test("a worker judges what was not judged while anomalies were off", async ({ context }) => {
  await serve(context, { anomalies: { sensitivity: "off" } });
  await context.run(BACKFILL);
  expect(await unusualDays()).toEqual([]);
  await serve(context);
  await workOnce(context, db);
  expect(await unusualDays()).toEqual([unusual]);
});
