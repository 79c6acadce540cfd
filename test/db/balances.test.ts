// bi.balances: each amount with all its digits, when it was first and last read, and whether it is the current one.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { type Balance, storeBalances } from "../../src/db/project-facts.ts";
import type { Project } from "../../src/usage/series.ts";
import { testDatabase } from "../support/database.ts";
import { configured, newProject, register, view } from "./stored-usage.ts";

const { db, read } = await testDatabase();

const balance = (amount: string, part: Partial<Balance> = {}): Balance => ({
  ...{ balanceId: "prepaid", amount, units: "usd", purchaseOrderId: "order 7" },
  ...part,
});

/** The amounts in the order in which they were first read. "now" marks the newest amount of a balance. */
async function shown(project: Project): Promise<readonly string[]> {
  const rows = await read(sql<{ text: string }>`
    select concat_ws(' ', balance_id, amount, case when ended_at is null then 'now' end) as text
    from bi.balances where project_id = ${project.id} order by read_at, balance_id
  `);
  return rows.map(({ text }) => text);
}

test("an amount is shown with its unit, its purchase order and when it was read", async () => {
  const project = newProject();
  await storeBalances(db, project, [balance("12345678901234.56789012345678")]);
  expect(await view(db, "balances", project)).toMatchObject([
    {
      ...{ project: project.name, balance_id: "prepaid", amount: "12345678901234.56789012345678", units: "usd" },
      ...{ purchase_order_id: "order 7", read_at: expect.any(Date), last_read_at: expect.any(Date), ended_at: null },
    },
  ]);
});

test("reading the same amount again moves the time of the last reading and adds no row", async () => {
  const project = newProject();
  for (const amount of ["5", "5.00", "5"]) await storeBalances(db, project, [balance(amount)]);
  const rows = await read(sql`
    select last_read_at > read_at as "isLater" from bi.balances where project_id = ${project.id}
  `);
  expect(rows).toEqual([{ isLater: true }]);
});

test("another amount, unit or purchase order is another row", async () => {
  const project = newProject();
  await storeBalances(db, project, [balance("5")]);
  const noOrder = { units: "eur", purchaseOrderId: null };
  for (const part of [{}, { units: "eur" }, noOrder, noOrder]) await storeBalances(db, project, [balance("4", part)]);
  expect(await shown(project)).toEqual(["prepaid 5", "prepaid 4", "prepaid 4", "prepaid 4 now"]);
});

test("a balance ends when the service no longer lists it", async () => {
  const project = newProject();
  const promotion = balance("1", { balanceId: "promotion" });
  await storeBalances(db, project, [balance("5"), promotion]);
  await storeBalances(db, project, [balance("5")]);
  expect(await shown(project)).toEqual(["prepaid 5 now", "promotion 1"]);
  await storeBalances(db, project, []);
  await storeBalances(db, project, [promotion]);
  expect(await shown(project)).toEqual(["prepaid 5", "promotion 1", "promotion 1 now"]);
});

test("a renamed project has its new name on its newest balances", async () => {
  const [project, other] = [newProject(), newProject()];
  await storeBalances(db, other, [balance("7")]);
  await storeBalances(db, project, [balance("5")]);
  await storeBalances(db, { ...project, name: "renamed" }, [balance("5")]);
  expect((await view(db, "balances", project)).map((row) => row.project)).toEqual(["renamed"]);
  expect(await shown(other)).toEqual(["prepaid 7 now"]);
});

test("an amount is current while it is the newest and an export reads the project's billing", async () => {
  const project = newProject();
  const current = async () =>
    (await view(db, "balances", project)).filter((row) => row.is_current).map((row) => row.amount);
  await register(db, configured(project, "none", { source: "billing" }));
  await storeBalances(db, project, [balance("5")]);
  await storeBalances(db, project, [balance("4")]);
  expect(await current()).toEqual(["4"]);
  await register(db, configured(project, "none"));
  expect(await current()).toEqual([]);
  expect(await shown(project)).toEqual(["prepaid 5", "prepaid 4 now"]);
});
