// The page Usage in a real browser, over a real database. That its figures are those of SQL, test/facts/same-answers.test.ts holds.

import fs from "node:fs";
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import type { ChartDescription } from "../../src/show/answer-chart.ts";
import { dayLabel } from "../../src/show/format.ts";
import { GROUPINGS, type UsageGrouping } from "../../src/usage/series.ts";
import { DIARIZED, forgetAll, storeSeries, type Usage } from "../db/reported-usage.ts";
import { daysBack, newProject } from "../db/stored-usage.ts";
import { healthState, projectLine } from "../health/sample-health-state.ts";
import { HOSTILE_NAMES, STORABLE_NAMES } from "../show/hostile-names.ts";
import { testDatabase } from "../support/database.ts";
import { asReader, usageSite } from "../web/usage-site.ts";
import { axeFindings } from "./axe.ts";
import { look } from "./boxes.ts";
import { openBrowser, openPage, SCREENS, servePages } from "./browser.ts";
import { expectPrintable, walkWithKeyboard } from "./walk.ts";

const browser = await openBrowser();
const { db } = await testDatabase();
const back = await daysBack(db);
const DUE = { start: back(60), end: back(1) };
const PERIOD = `from=${back(10)}&to=${back(1)}`;
const GROUPS = 24;

/** What a test stores: a value of the dimension, its number from 0, and how many days ago. */
type AmountOf = (i: number, daysAgo: number) => string;
const amountOf: AmountOf = (i, daysAgo) => ((i + daysAgo) % 7 === 0 ? "0" : `${(i + 1) * 7 + daysAgo}.${i}25`);

function usage(names: readonly unknown[], amount: AmountOf = amountOf): Usage {
  const days = Array.from({ length: 24 }, (_, i) => i + 1);
  const numbers = (i: number, daysAgo: number) => ({ hours: amount(i, daysAgo), requests: String(daysAgo + i) });
  return Object.fromEntries(days.map((day) => [back(day), names.map((name, i) => [name, numbers(i, day)] as const)]));
}

function namesOf(grouping: UsageGrouping): readonly unknown[] {
  const names = Array.from({ length: grouping === "none" ? 1 : GROUPS }, (_, i) => (i === 3 ? null : `name ${i + 10}`));
  if (grouping !== "tags" && grouping !== "feature_set") return names;
  return names.map((name, i) => (name === null ? null : i % 2 === 0 ? [name] : [name, "shared"]));
}

async function storeAll(): Promise<readonly string[]> {
  await forgetAll(db);
  const [one, other] = [newProject(), newProject()];
  const series = GROUPINGS.map((grouping) => ({ project: one, grouping, usage: usage(namesOf(grouping)), due: DUE }));
  const second = { project: other, grouping: "model", usage: usage(["name 10", "elsewhere"]), due: DUE } as const;
  const filtered = { ...second, project: one, filter: DIARIZED };
  await storeSeries(db, [...series, second, filtered]);
  return [one.name, other.name];
}

/** The site of the stored usage, and its page Usage in the browser. */
async function open(query: string, options: Parameters<typeof openPage>[2] = {}, projects: readonly string[] = []) {
  const health = healthState({ projects: projects.map((project) => projectLine({ project, projectId: project })) });
  const url = `${await servePages(usageSite(db, () => health))}/`;
  const viewport = { width: 1440, height: 900 };
  return { ...(await openPage(browser, `${url}usage?${query}`, { viewport, ...options })), url };
}

/** The exact amounts of each row of the groups' table, after the link of the row. */
async function rowsOf(page: Page, part: "tbody" | "tfoot"): Promise<readonly (readonly string[])[]> {
  const row = `[row.querySelector("a")?.getAttribute("href") ?? "", ...[...row.querySelectorAll("data")].map(({ value }) => value)]`;
  return page.evaluate(`[...document.querySelectorAll(".ranks ${part} tr")].map((row) => ${row})`);
}

/** The lines of the CSV that the link leads to. */
async function downloaded(page: Page, around: Locator): Promise<readonly string[]> {
  const [file] = await Promise.all([page.waitForEvent("download"), around.getByText("Download CSV").click()]);
  return fs
    .readFileSync(await file.path(), "utf8")
    .trimEnd()
    .split("\r\n");
}

async function chartOf(page: Page): Promise<ChartDescription> {
  return JSON.parse((await page.locator("#usage-by-day-chart script").textContent()) ?? "");
}

test("each choice changes the answer and the URL, and the back button leads back", async () => {
  const projects = await storeAll();
  const { page, complaints } = await open(PERIOD, {}, projects);
  const at = (name: string) => new URL(page.url()).searchParams.get(name);
  const shown = () => page.locator("#usage-title").innerText();
  const choose = async (name: string, value: string) => {
    await page.locator(`select[name="${name}"]`).selectOption(value);
    await page.getByRole("button", { name: "Show", exact: true }).click();
  };
  expect(await shown()).toBe("Hours by model");
  await choose("metric", "requests");
  expect([at("metric"), await shown()]).toEqual(["requests", "Requests by model"]);
  await choose("project", projects[0] ?? "");
  expect(at("project")).toBe(projects[0]);
  await choose("filter", DIARIZED.name);
  expect(await page.locator(".ranks tbody tr").count()).toBe(2);
  await choose("filter", "");
  expect(await page.locator(".ranks tbody tr").count()).toBe(20);
  await page.getByRole("link", { name: "by endpoint", exact: true }).click();
  expect(await shown()).toBe("Requests by endpoint");

  await page.getByRole("link", { name: "7 days", exact: true }).click();
  expect([at("period"), at("grouping"), at("metric"), at("project")]).toEqual([
    ...["7d", "endpoint", "requests", projects[0]],
  ]);
  await page.goBack();
  expect([at("from"), await shown()]).toEqual([back(10), "Requests by endpoint"]);
  await page.getByLabel("From", { exact: true }).fill(back(3));
  await page.getByLabel("to", { exact: true }).fill(back(2));
  await page.getByRole("button", { name: "Show", exact: true }).click();
  expect((await chartOf(page)).titles).toEqual([back(3), back(2)]);
  expect(complaints).toEqual([]);
});

test("the newest day has its label below the chart, however many days there are", async () => {
  await storeAll();
  const { page } = await open(`from=${DUE.start}&to=${DUE.end}`);
  await expect
    .poll(() => page.locator("#usage-by-day-chart .plot text").allTextContents())
    .toContain(dayLabel(DUE.end));
});

test("a row narrows, bars are of weeks, others open, and CSV and SQL have what is shown", async () => {
  await storeAll();
  const { page } = await open(PERIOD, { permissions: ["clipboard-read", "clipboard-write"] });
  const names = () => page.locator(".ranks tbody th").allInnerTexts();
  const all = await names();
  await page.locator(".ranks tbody a").nth(2).click();
  expect(await names()).toEqual([all[2]]);
  await page.goBack();
  expect(await names()).toEqual(all);
  await page.locator(".ranks tbody a").nth(4).focus();
  await page.keyboard.press("Enter");
  await expect.poll(names).toEqual([all[4]]);
  await page.getByRole("link", { name: "show every model" }).click();
  expect(await names()).toEqual(all);

  await page.getByRole("link", { name: "week", exact: true }).click();
  const weeks = await chartOf(page);
  expect(weeks.titles.length).toBeLessThan(4);
  await page.goBack();
  const others = { name: /others$/ };
  await page.locator(".ranks").getByRole("link", others).click();
  expect(await names()).toHaveLength(GROUPS + 1);

  const shown = (await rowsOf(page, "tbody")).map(([, amount]) => amount);
  const links = page.locator("#groups > .links");
  const csv = await downloaded(page, links);
  expect(csv.filter((line) => line.startsWith('"group"')).map((line) => line.split(",").at(2))).toEqual(shown);
  await page.locator("#groups > .sql summary").click();
  await page.locator("#groups > .sql").getByRole("button", { name: "Copy SQL" }).click();
  await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toContain("from bi.usage_by_model");
  const rows = await asReader(db, (await page.evaluate("navigator.clipboard.readText()")) as string);

  await page.getByText("Table: hours by day and model").click();
  const figure = page.locator("#usage-by-day-chart");
  const daily = await downloaded(page, figure);
  const { titles: days, series } = await chartOf(page);
  const ofGroup = daily.filter((line) => line.includes(`"group","${series[0]?.name}",`));
  const first = ofGroup.map((line) => line.split(",")[4]);
  expect(first).toEqual([...(series[0]?.values ?? [])]);
  const ofFirst = rows
    .filter(({ group, usage_date }) => group === series[0]?.name && days.includes(usage_date ?? ""))
    .map(({ usage_date, amount }) => [usage_date, Number(amount)])
    .sort();
  expect(ofFirst).toEqual(days.map((day, i) => [day, Number(series[0]?.values[i])]));
});

test("with the keyboard alone a person gets to every choice", async () => {
  await storeAll();
  const { page } = await open(PERIOD);
  await walkWithKeyboard(page);
});

test.each(SCREENS.filter((_, i) => i % 3 === 0))(
  "at %s hostile names are text, the console stays empty, and axe finds nothing",
  async (_, options) => {
    await forgetAll(db);
    const names = STORABLE_NAMES;
    const project = { ...newProject(), name: names[0] ?? "" };
    const series = { project, due: { start: back(12), end: back(1) } };
    await storeSeries(db, [
      { ...series, grouping: "model", usage: usage(names) },
      { ...series, grouping: "tags", usage: usage(names.map((name) => [name, names[0]])) },
    ]);
    const { page, url, complaints, requests } = await open("period=7d&compare=none", options);
    await page.locator("figure .plot svg").first().waitFor();
    const policy = (await page.request.get(page.url())).headers()["content-security-policy"];
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toContain("unsafe");
    expect((await page.locator(".ranks bdi").allTextContents()).sort()).toEqual([...new Set(names)].sort());
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("link", { name: "by tags" }).click();
    await page.locator("figure .plot svg").first().waitFor();
    expect(await axeFindings(page)).toEqual([]);
    expect(await page.locator("script:not([src], [type='application/json']), img, iframe, object, embed").count()).toBe(
      0,
    );
    expect(complaints).toEqual([]);
    expect(requests.filter((request) => !request.startsWith(url))).toEqual([]);
  },
);

const LONG = "a-name-without-any-space-that-somebody-made-as-long-as-it-may-be-in-the-configuration-of-the-program";

test("no text is cut or lies over another, at four widths, in light and dark, and on paper", async () => {
  await forgetAll(db);
  const series = { project: { ...newProject(), name: LONG }, due: DUE } as const;
  const names = [LONG, ...HOSTILE_NAMES.slice(0, 9), ...Array.from({ length: 12 }, (_, i) => `name ${i}`)];
  const large: AmountOf = (i) => `${987654321012345 - i}.0123456789`;
  const other = { ...newProject(), name: `${LONG}-2` };
  await storeSeries(db, [
    { ...series, grouping: "model", usage: usage(names, large) },
    { ...series, grouping: "tags", usage: {} },
    { project: other, grouping: "endpoint", usage: {}, due: DUE },
  ]);
  const { page } = await open(`from=${back(25)}&to=${back(1)}`);
  await page.waitForLoadState("networkidle");
  await look(page, "usage");

  await expectPrintable(page);
  expect(await page.locator(".plot svg").first().isVisible()).toBe(true);
});

test("who wants less motion gets none", async () => {
  await storeAll();
  const { page } = await open(PERIOD, { reducedMotion: "reduce" });
  const motion = `[getComputedStyle(document.documentElement).scrollBehavior, ...new Set([...document.querySelectorAll("*")].map((one) => getComputedStyle(one).transitionDuration))]`;
  expect(await page.evaluate(motion)).toEqual(["auto", "0s"]);
  await page.emulateMedia({ reducedMotion: "no-preference" });
  expect(await page.evaluate(motion)).toEqual(["smooth", "0s"]);
});
