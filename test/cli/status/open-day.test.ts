// A day that was read only while it lasted lacks its last hours. Once it is over it counts as missing everywhere, until an export, a
// backfill or a worker reads it again.

import { sql } from "kysely";
import { expect } from "vitest";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import { testDatabase } from "../../support/database.ts";
import type { Emulator } from "../../support/emulator.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { breakdowns, farSchedule, workOnce } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const today = dayOf(new Date());
/** This day was read five days ago, while it lasted. It is no longer in the export's window. */
const OPEN = addDays(today, -5);

/** 160 requests while the day lasts, 1,000 after it. */
async function readWhileOpen(context: ProgramContext): Promise<Emulator> {
  let isOver = false;
  const emulator = await context.serve({ usage: () => [{ endpoint: "listen", requests: isOver ? 1_000 : 160 }] });
  const job = { schedule: farSchedule(), window: { days: 2, today: true } };
  await context.configure({ ...smallConfig(emulator.url, { exports: [job] }), monitor: { port: 0 } });
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
  await ageStoredData(db, 5);
  isOver = true;
  return emulator;
}

test("status and the views show the day as missing and not final, keep its rows, and count as fresh only the days before it", async ({
  context,
}) => {
  await readWhileOpen(context);

  const { status, stdout } = await context.run(["status"]);

  expect(stdout).toMatch(
    new RegExp(
      `missing: production / none / all, ${OPEN}: read before the day was over, at [-\\d: ]+UTC, and not since\n`,
    ),
  );
  expect(stdout).toContain(`missing: production / none / all, ${addDays(OPEN, 1)} to ${addDays(today, -1)}\n`);
  expect(stdout).toContain("slices: 2 complete, 0 suspect, 0 failed, 5 missing");
  expect(status).toBe(1);
  expect(await coverageOf(OPEN)).toEqual({ status: "missing", finality: "open", rows: 1 });
  const { rows } = await sql`select fresh_through, due_through from bi.freshness`.execute(db);
  expect(rows).toEqual([{ fresh_through: addDays(OPEN, -1), due_through: addDays(today, -1) }]);
});

test("an export reads the day once more in addition to its window, and then the day is complete", async ({
  context,
}) => {
  const emulator = await readWhileOpen(context);
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  // One request while the day lasted, then one for the window, the day and the missing days between them.
  expect(breakdowns(emulator)).toHaveLength(1 + 1);
  await expectClosed();
  await context.run(["export"]);
  // The next export reads its window only.
  expect(breakdowns(emulator)).toHaveLength(1 + 1 + 1);
});

test("a worker reads the day", async ({ context }) => {
  await readWhileOpen(context);
  await workOnce(context, db);
  await expectClosed();
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
});

async function expectClosed(): Promise<void> {
  const { rows } = await sql`select requests from bi.usage_total where usage_date = ${OPEN}::date`.execute(db);
  expect(rows).toEqual([{ requests: "1000" }]);
  expect(await coverageOf(OPEN)).toEqual({ status: "complete", finality: "final", rows: 1 });
}

async function coverageOf(day: string) {
  const { rows } = await sql`select status, finality, rows from bi.coverage where usage_date = ${day}::date`.execute(
    db,
  );
  return rows[0];
}
