// What an export does with the prices of the configuration.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../support/database.ts";
import { programTest } from "./program-context.ts";
import { smallConfig } from "./small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const PRICE = { metric: "hours", model: "nova-*", currency: "USD", price: "0.0077", from: "2026-01-01" };
const EXPORT = { groupings: ["none", "model"], window: { days: 2 } };

async function bookText(): Promise<readonly string[]> {
  const { rows } = await sql<{ text: string }>`
    select concat_ws(' ', metric, valid_from, valid_until, price) as text
    from bi.price_book where tier_above = 0 order by price_id
  `.execute(db);
  return rows.map(({ text }) => text);
}

test("an export stores the prices as the file has them, and logs that they changed once", async ({ context }) => {
  const emulator = await context.serve();
  const configure = (...prices: readonly object[]) =>
    context.configure({ ...smallConfig(emulator.url, { exports: [EXPORT] }), prices });
  const exported = async () => (await context.run(["export"])).stderr.match(/"prices changed"/g)?.length ?? 0;
  await configure(PRICE);
  expect([await exported(), await exported()]).toEqual([1, 0]);
  expect(await bookText()).toEqual(["hours 2026-01-01 0.0077"]);

  await configure({ ...PRICE, until: "2026-02-28" }, { ...PRICE, price: "0.01", from: "2026-03-01" });
  expect(await exported()).toBe(1);
  expect(await bookText()).toEqual(["hours 2026-01-01 2026-02-28 0.0077", "hours 2026-03-01 0.01"]);

  await configure();
  await exported();
  expect(await bookText()).toEqual([]);
});
