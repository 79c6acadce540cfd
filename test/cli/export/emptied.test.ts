// An export without a window: days that had rows keep them if an answer has none, until a later run confirms that answer.

import { sql } from "kysely";
import { expect } from "vitest";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import { makeDoubtsAnHourOlder } from "../../db/stored-usage.ts";
import { testDatabase } from "../../support/database.ts";
import type { Fault } from "../../support/emulator.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { rowsAsWritten } from "../stored-rows.ts";
import { coverage } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const today = dayOf(new Date());
/** How many days the emulator answers if a request names none. */
const DAYS = 30;

/** Exports one row for each day that is over. From then on, the emulator has no usage. */
async function exportThenEmpty(context: ProgramContext, fault?: Fault) {
  let isEmpty = false;
  const usage = (day: string) => (isEmpty || day === today ? [] : [{ endpoint: "listen", requests: 5 }]);
  const emulator = await context.serve({ usage, fault: () => fault });
  await context.configure(smallConfig(emulator.url, { exports: [{ window: undefined }] }));
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  const good = await rowsAsWritten(db);
  expect(good.length).toBeGreaterThanOrEqual(DAYS - 1);
  isEmpty = true;
  return { emulator, good };
}

test("an answer without rows makes all days of its period suspect, until a later run confirms it", async ({
  context,
}) => {
  const { good } = await exportThenEmpty(context);

  expect(await context.run(["export"])).toMatchObject({
    status: 1,
    stdout: expect.stringContaining(`${good.length} suspect`),
  });
  expect(await rowsAsWritten(db)).toEqual(good);
  expect(await coverage(db)).toMatchObject({ suspect: good.length });
  expect(await context.run(["status"])).toMatchObject({ status: 1 });

  await makeDoubtsAnHourOlder(db);
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  const { rows } = await sql`select * from bi.usage_total`.execute(db);
  expect(rows).toEqual([]);
});

test("days that lie in the answer's period before its first row become suspect too", async ({ context }) => {
  const { emulator, good } = await exportThenEmpty(context);
  const first = addDays(today, -3);
  emulator.fault = () => ({
    kind: "body",
    change: (answer) => ({ ...answer, results: [{ requests: 5, hours: 0, start: first, end: first }] }),
  });

  expect(await context.run(["export"])).toMatchObject({ status: 1 });

  const { rows } = await sql`
    select min(usage_date)::text as from, max(usage_date)::text as to, count(*)::integer as days from bi.coverage
    where status = 'suspect' and usage_date < ${first}::date
  `.execute(db);
  expect(rows).toMatchObject([{ to: addDays(first, -1), days: good.length - 3 }]);
});

test("an answer without rows and dates fails, and empties no day", async ({ context }) => {
  const bare: Fault = { kind: "body", change: ({ results }) => ({ results }) };
  const { good } = await exportThenEmpty(context, bare);

  expect(await context.run(["export"])).toMatchObject({
    ...{ status: 1, stdout: expect.stringContaining("has no rows and names no day, though earlier ones had") },
  });

  expect(await rowsAsWritten(db)).toEqual(good);
  const { rows } = await sql`select status from bi.coverage where usage_date = ${today}::date`.execute(db);
  expect(rows).toEqual([{ status: "failed" }]);
});
