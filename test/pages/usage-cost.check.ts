// Questions about cost on the page Usage, in a real browser. Every figure is compared with SQL that is written here.

import fs from "node:fs";
import { sql } from "kysely";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { storePrices } from "../../src/db/money.ts";
import type { ChartDescription } from "../../src/show/answer-chart.ts";
import { forgetAll, storeSeries } from "../db/reported-usage.ts";
import { storeBills } from "../db/stored-charges.ts";
import { daysBack, newProject } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";
import { testMonitor } from "../web/test-monitor.ts";
import { usageSite } from "../web/usage-site.ts";
import { axeFindings } from "./axe.ts";
import { openBrowser, openPage } from "./browser.ts";

const browser = await openBrowser();
const { db } = await testDatabase();
const back = await daysBack(db);
const DAYS = Array.from({ length: 11 }, (_, i) => i + 1);
const PERIOD = { from: back(4), to: back(1) };
/** Four days are compared with those a week earlier. */
const BEFORE = { from: back(11), to: back(8) };
const DUE = { start: back(11), end: back(1) };

async function storeEstimate(): Promise<void> {
  const models = Array.from({ length: 12 }, (_, i) => `nova-${i + 10}`);
  const usage = DAYS.map(
    (day) => [back(day), models.map((model, i) => [model, { hours: `${i * 9 + day}.${day}0625` }] as const)] as const,
  );
  const price = {
    metric: "hours",
    model: "nova*",
    currency: "EUR",
    price: "0.0077",
    per: "minute",
    from: "2020-01-01",
  };
  const projects = [{ id: "p", name: "p", key: { env: "KEY" } }];
  const config = { service: { baseUrl: "https://api.example.com" }, projects, prices: [price] };
  const { prices } = parseConfig(JSON.stringify(config), { source: "test", baseDir: "/" });
  await storePrices(db, prices);
  await storeSeries(db, [
    { project: newProject(), grouping: "model", usage: Object.fromEntries(usage), due: DUE, windowDays: 1 },
  ]);
}

async function storeBilling(): Promise<void> {
  const charges = DAYS.flatMap((day) =>
    Array.from({ length: 12 }, (_, i) => ({
      ...{ day: back(day), accessor: `key-${i + 10}` },
      dollars: i === 3 ? `-${day}.5` : `${i * 100 + day}.000${day}`,
    })),
  );
  await storeBills(db, newProject(), ["accessor"], DUE, charges, { windowDays: 1 });
}

type Sum = { readonly group: string; readonly day: string | null; readonly amount: string; readonly before: string };

/** By group, and by group and day. */
async function sumsOf(view: string, column: string): Promise<readonly Sum[]> {
  const sumOf = ({ from, to }: typeof PERIOD) =>
    `trim_scale(coalesce(sum(amount) filter (where usage_date between '${from}' and '${to}'), 0))::text`;
  const { rows } = await sql
    .raw<Sum>(`
      select ${column} as "group", usage_date::text as day, ${sumOf(PERIOD)} as amount, ${sumOf(BEFORE)} as before
      from bi.${view} where amount is not null group by grouping sets ((${column}, usage_date), (${column}))`)
    .execute(db);
  return rows;
}

type ShownRow = { readonly name: string; readonly amounts: readonly string[]; readonly titles: readonly string[] };

async function rowsOf(page: Page, part: "tbody" | "tfoot"): Promise<readonly ShownRow[]> {
  const row = `({ name: row.querySelector("th").textContent.trim(), amounts: [...row.querySelectorAll("data")].map(({ value }) => value),
    titles: [...row.querySelectorAll("data")].map(({ title }) => title) })`;
  return page.evaluate(`[...document.querySelectorAll(".ranks ${part} tr")].map((row) => ${row})`);
}

async function asReader(statement: string): Promise<readonly Record<string, string | null>[]> {
  return db.transaction().execute(async (tx) => {
    await sql`set local role usage_reader`.execute(tx);
    return (await sql.raw<Record<string, string | null>>(statement).execute(tx)).rows;
  });
}

test.each([
  ["estimated_cost", "model", "EUR", storeEstimate, "cost_estimated", "model"],
  ["billed_cost", "accessor", "USD", storeBilling, "cost_by_key", "accessor"],
] as const)("every figure of %s by %s is that of SQL, of the copied SQL and of the CSV, in %s", async (...asked) => {
  const [metric, grouping, currency, store, view, column] = asked;
  await forgetAll(db);
  await store();
  const monitor = await testMonitor({ pages: usageSite(db) });
  onTestFinished(() => monitor[Symbol.asyncDispose]());
  const query = new URLSearchParams({ ...PERIOD, metric, grouping });
  const options = { permissions: ["clipboard-read", "clipboard-write"] };
  const { page, complaints } = await openPage(browser, `${monitor.url}/usage?${query}`, options);
  onTestFinished(() => page.context().close());

  const sums = await sumsOf(view, column);
  const groups = sums.filter(({ day }) => day === null).toSorted((a, b) => Number(b.amount) - Number(a.amount));
  const rows = await rowsOf(page, "tbody");
  expect(rows.map(({ name, amounts: [amount, before] }) => [name, amount, before])).toEqual(
    groups.map(({ group, amount, before }) => [group, amount, before]),
  );
  const { rows: totals } = await sql
    .raw<{ total: string }>(`select trim_scale(sum(amount))::text as total from bi.${view}
      where usage_date between '${PERIOD.from}' and '${PERIOD.to}'`)
    .execute(db);
  const [total] = await rowsOf(page, "tfoot");
  expect(total?.amounts[0]).toBe(totals[0]?.total);
  expect(await page.locator(".few data").first().getAttribute("value")).toBe(total?.amounts[0]);
  for (const { titles } of [...rows, ...(total ? [total] : [])])
    for (const title of titles) expect(title).toMatch(new RegExp(` ${currency}$`));
  expect(await page.locator(".few .figure").first().innerText()).toMatch(currency === "EUR" ? /^€/ : /^\$/);

  const chart = JSON.parse((await page.locator("#usage-by-day-chart script").textContent()) ?? "") as ChartDescription;
  expect(chart.currency).toBe(currency);
  for (const { name, values } of chart.series.filter(({ look }) => typeof look === "number"))
    expect([name, values]).toEqual([
      name,
      chart.titles.map((day) => sums.find((sum) => sum.day === day && sum.group === name)?.amount),
    ]);

  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.locator("#groups > .links").getByText("Download CSV").click(),
  ]);
  const lines = fs
    .readFileSync(await download.path(), "utf8")
    .trimEnd()
    .split("\r\n");
  const shown = rows.map(({ amounts }) => amounts[0]);
  expect(lines.filter((line) => line.startsWith('"group"')).map((line) => line.split(",")[2])).toEqual(shown);
  for (const line of lines.slice(1)) expect(line).toMatch(new RegExp(`,"${currency}"$`));

  await page.locator("#groups > .sql summary").click();
  await page.locator("#groups > .sql").getByRole("button", { name: "Copy SQL" }).click();
  await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toContain("select ");
  const copied = await asReader((await page.evaluate("navigator.clipboard.readText()")) as string);
  const plain = (amount: string | null | undefined) => amount?.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  expect(copied.map((row) => plain(row[metric]))).toEqual(shown);
  expect(await axeFindings(page)).toEqual([]);
  expect(complaints).toEqual([]);
});
