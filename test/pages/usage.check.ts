// The page Usage in a real browser, over a real database. Every figure is compared with SQL that is written here.

import fs from "node:fs";
import { sql } from "kysely";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import type { ChartDescription } from "../../src/show/answer-chart.ts";
import { GROUPINGS, type UsageGrouping } from "../../src/usage/series.ts";
import { DIARIZED, forgetAll, storeSeries, type Usage } from "../db/reported-usage.ts";
import { daysBack, newProject } from "../db/stored-usage.ts";
import { healthState } from "../health/sample-health-state.ts";
import { HOSTILE_NAMES } from "../show/hostile-names.ts";
import { testDatabase } from "../support/database.ts";
import { testMonitor } from "../web/test-monitor.ts";
import { usageSite } from "../web/usage-site.ts";
import { axeFindings } from "./axe.ts";
import { look } from "./boxes.ts";
import { openBrowser, openPage, SCREENS } from "./browser.ts";
import { expectPrintable, walkWithKeyboard } from "./walk.ts";

const browser = await openBrowser();
const { db } = await testDatabase();
const back = await daysBack(db);
const DUE = { start: back(60), end: back(1) };
const PERIOD = `from=${back(10)}&to=${back(1)}`;
/** Ten days are compared with those two weeks earlier. */
const BEFORE = { from: back(24), to: back(15) };
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
  const counts = { complete: 1, suspect: 0, failed: 0, missing: 0 };
  const line = { ...counts, source: "usage" as const, series: 1, freshThrough: null };
  const health = healthState({ projects: projects.map((project) => ({ ...line, project, projectId: project })) });
  const monitor = await testMonitor({ pages: usageSite(db, () => health) });
  onTestFinished(() => monitor[Symbol.asyncDispose]());
  const watched = await openPage(browser, `${monitor.url}/usage?${query}`, {
    viewport: { width: 1440, height: 900 },
    ...options,
  });
  onTestFinished(() => watched.page.context().close());
  return { ...watched, url: `${monitor.url}/` };
}

// The expected amounts.

const SOURCES: Readonly<Record<UsageGrouping, readonly [view: string, column: string]>> = {
  none: ["usage_total", "null::text"],
  accessor: ["usage_by_key", "lineage"],
  deployment: ["usage_by_deployment", "deployment"],
  endpoint: ["usage_by_endpoint", "endpoint"],
  feature_set: ["usage_by_feature_set", "feature_set"],
  method: ["usage_by_method", "method"],
  model: ["usage_by_model", "model"],
  tags: ["usage_by_tags", "tags"],
};

type Asked = {
  readonly grouping: UsageGrouping;
  readonly metric?: string;
  readonly from?: string;
  readonly to?: string;
  readonly before?: { readonly from: string; readonly to: string };
  readonly where?: string;
};

/** The amounts of each group, and of each group and day; the total has the group "total". Groups without usage are left out. */
async function expected({ grouping, metric = "hours", where = "true", ...asked }: Asked) {
  const { from = back(10), to = back(1), before = BEFORE } = asked;
  const [view, column] = SOURCES[grouping];
  type Sum = { group: string | null; day: string | null; isTotal: boolean; amount: string; before: string };
  const sumOf = (start: string, end: string) =>
    `trim_scale(coalesce(sum(${metric}) filter (where usage_date between '${start}' and '${end}'), 0))::text`;
  const { rows } = await sql
    .raw<Sum>(`
      select "group", day::text as day, grouping("group", day) = 3 as "isTotal",
        ${sumOf(from, to)} as amount, ${sumOf(before.from, before.to)} as before
      from (select ${column} as "group", usage_date as day, * from bi.${view} where ${where}) usage
      group by grouping sets (("group", day), ("group"), ())`)
    .execute(db);
  return rows.filter(({ amount, before: earlier }) => amount !== "0" || earlier !== "0");
}

/** The group that a link narrows to; null for "no value". */
function groupOf(href: string): string | null {
  return new URL(href, "http://page/").searchParams.get("group");
}

/** The exact amounts of each row of the groups' table, after the link of the row. */
async function rowsOf(page: Page, part: "tbody" | "tfoot"): Promise<readonly (readonly string[])[]> {
  const row = `[row.querySelector("a")?.getAttribute("href") ?? "", ...[...row.querySelectorAll("data")].map(({ value }) => value)]`;
  return page.evaluate(`[...document.querySelectorAll(".ranks ${part} tr")].map((row) => ${row})`);
}

async function chartOf(page: Page): Promise<ChartDescription> {
  return JSON.parse((await page.locator("#usage-by-day-chart script").textContent()) ?? "");
}

/** Compares the headline figure, every row and total of the table, and every amount of the chart. */
async function expectFigures(page: Page, asked: Asked): Promise<void> {
  const sums = await expected(asked);
  const groups = sums.filter(({ day, isTotal }) => day === null && !isTotal);
  const total = sums.find(({ isTotal }) => isTotal);
  const adds = asked.grouping !== "tags" && asked.grouping !== "feature_set";
  const rows = await rowsOf(page, "tbody");
  const shown = rows.map(([href = "", amount, before]) => [
    asked.grouping === "none" ? null : groupOf(href),
    amount,
    before,
  ]);
  const listed = groups
    .map(({ group, amount, before }) => [group, amount, before] as const)
    .sort((a, b) => Number(b[1]) - Number(a[1]))
    .slice(0, 20);
  expect(shown).toEqual(listed);
  if (adds && asked.grouping !== "none") {
    const last = (await rowsOf(page, "tfoot")).at(-1);
    expect(last?.slice(1, 3)).toEqual([total?.amount, total?.before]);
  }
  if (adds) expect(await page.locator(".few data").first().getAttribute("value")).toBe(total?.amount);

  const { titles: days, series } = await chartOf(page);
  const onDay = (group: string | null, day: string) =>
    sums.find((sum) => sum.day === day && sum.group === group)?.amount ?? "0";
  const drawn = series.filter(({ look }) => typeof look === "number");
  expect(drawn.length).toBe(Math.min(8, groups.length));
  for (const [i, { values }] of drawn.entries())
    expect(values).toEqual(days.map((day) => onDay(listed[i]?.[0] ?? null, day)));
  const others = series.find(({ look }) => look === "rest");
  const rest = groups.filter(({ group }) => !listed.slice(0, 8).some(([one]) => one === group));
  expect(others?.values.map(Number)).toEqual(
    adds && rest.length > 0
      ? days.map((day) =>
          expect.closeTo(
            rest.reduce((sum, { group }) => sum + Number(onDay(group, day)), 0),
            6,
          ),
        )
      : undefined,
  );
}

/** The rows of the statement that the page offers to copy, as a BI tool gets them. */
async function asReader(statement: string): Promise<readonly Record<string, string | null>[]> {
  return db.transaction().execute(async (tx) => {
    await sql`set local role usage_reader`.execute(tx);
    return (await sql.raw<Record<string, string | null>>(statement).execute(tx)).rows;
  });
}

test("every figure by each grouping is that of SQL: headline, table, total and chart", async () => {
  await storeAll();
  const { page, url, complaints } = await open(`${PERIOD}&grouping=none`);
  for (const grouping of GROUPINGS) {
    await page.goto(`${url}usage?${PERIOD}&grouping=${grouping}`);
    await expectFigures(page, { grouping });
  }
  expect(complaints).toEqual([]);
});

test("each choice changes the answer and the URL, and the back button leads back", async () => {
  const [project = ""] = await storeAll();
  const options = { permissions: ["clipboard-read", "clipboard-write"] };
  const { page, complaints } = await open(PERIOD, options, await projectNames());
  const at = (name: string) => new URL(page.url()).searchParams.get(name);
  const choose = async (name: string, value: string) => {
    const list = page.locator(`select[name="${name}"]`);
    await list.selectOption(value);
    await page.getByRole("button", { name: "Show", exact: true }).click();
  };
  await expectFigures(page, { grouping: "model" });

  await choose("metric", "requests");
  expect(at("metric")).toBe("requests");
  await expectFigures(page, { grouping: "model", metric: "requests" });
  await choose("project", project);
  const projectIs = `project = '${project}'`;
  await expectFigures(page, { grouping: "model", metric: "requests", where: projectIs });
  await choose("filter", DIARIZED.name);
  expect(await page.locator(".ranks tbody tr").count()).toBe(2);
  await choose("filter", "");
  expect(at("filter")).toBe("");
  await page.getByRole("link", { name: "by endpoint", exact: true }).click();
  await expectFigures(page, { grouping: "endpoint", metric: "requests", where: projectIs });
  await page.getByRole("link", { name: "7 days", exact: true }).click();
  expect([at("period"), at("grouping"), at("metric")]).toEqual(["7d", "endpoint", "requests"]);
  await page.goBack();
  await expectFigures(page, { grouping: "endpoint", metric: "requests", where: projectIs });

  await page.getByLabel("From", { exact: true }).fill(back(3));
  await page.getByLabel("to", { exact: true }).fill(back(2));
  await page.getByRole("button", { name: "Show", exact: true }).click();
  const short = { from: back(3), to: back(2), before: { from: back(10), to: back(9) } };
  await expectFigures(page, { grouping: "endpoint", metric: "requests", where: projectIs, ...short });
  expect(complaints).toEqual([]);
});

async function projectNames(): Promise<readonly string[]> {
  const { rows } = await sql<{ project: string }>`select distinct project from bi.series`.execute(db);
  return rows.map(({ project }) => project);
}

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
  await page
    .locator(".ranks")
    .getByRole("link", { name: /others$/ })
    .click();
  expect(await names()).toHaveLength(GROUPS + 1);

  const shown = (await rowsOf(page, "tbody")).map(([, amount]) => amount);
  const links = page.locator("#groups > .links");
  const [download] = await Promise.all([page.waitForEvent("download"), links.getByText("Download CSV").click()]);
  const csv = fs
    .readFileSync(await download.path(), "utf8")
    .trimEnd()
    .split("\r\n");
  expect(csv.filter((line) => line.startsWith('"group"')).map((line) => line.split(",").at(2))).toEqual(shown);
  await page.locator("#groups > .sql summary").click();
  await page.locator("#groups > .sql").getByRole("button", { name: "Copy SQL" }).click();
  await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toContain("from bi.usage_by_model");
  const rows = await asReader((await page.evaluate("navigator.clipboard.readText()")) as string);
  expect(rows.map(({ hours }) => Number(hours))).toEqual(shown.map(Number));

  await page.getByText("Table: hours by day and model").click();
  const figure = page.locator("#usage-by-day-chart");
  const [daily] = await Promise.all([page.waitForEvent("download"), figure.getByText("Download CSV").click()]);
  const { titles: days, series } = await chartOf(page);
  const lines = fs.readFileSync(await daily.path(), "utf8").split("\r\n");
  const first = lines
    .filter((line) => line.includes(`"group","${series[0]?.name}",`))
    .map((line) => line.split(",")[4]);
  expect(first).toEqual([...(series[0]?.values ?? [])]);
  const daySql = await asReader((await figure.locator(".sql code").textContent()) ?? "");
  const ofFirst = daySql
    .filter(({ model }) => model === series[0]?.name)
    .map(({ usage_date, hours }) => [usage_date, Number(hours)]);
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
    const names = HOSTILE_NAMES.filter((name) => name.trim() !== "" && name.isWellFormed() && !name.includes("\0"));
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
