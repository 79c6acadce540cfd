// The page Usage in a real browser, over a real database. test/facts/same-answers.test.ts compares its figures with SQL.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { ChartDescription } from "../../src/show/answer-chart.ts";
import { dayLabel } from "../../src/show/format.ts";
import { GROUPINGS, type Grouping } from "../../src/usage/series.ts";
import { DIARIZED, forgetAll, storeSeries, type Usage } from "../db/reported-usage.ts";
import { daysBack, newProject } from "../db/stored-usage.ts";
import { healthState, makeProject } from "../health/sample-health-state.ts";
import { testDatabase } from "../support/database.ts";
import { usageSite } from "../web/usage-site.ts";
import { openBrowser, openPage, servePages } from "./browser.ts";

const browser = await openBrowser();
const { db } = await testDatabase();
const back = await daysBack(db);
const DUE = { start: back(60), end: back(1) };
const PERIOD = `from=${back(10)}&to=${back(1)}`;
const NAMES = Array.from({ length: 24 }, (_, i) => `name ${i}`);

/** The same amounts on each of 24 days. */
function usage(names: readonly unknown[]): Usage {
  const rows = names.map((name, i) => [name, { hours: String(i + 1), requests: String(i + 1) }] as const);
  return Object.fromEntries(Array.from({ length: 24 }, (_, i) => [back(i + 1), rows]));
}

async function storeAll(): Promise<readonly string[]> {
  await forgetAll(db);
  const [one, other] = [newProject(), newProject()];
  const valuesOf = (grouping: Grouping) => (grouping === "none" ? [null] : NAMES);
  const series = GROUPINGS.map((grouping) => ({ project: one, grouping, usage: usage(valuesOf(grouping)), due: DUE }));
  const second = { project: other, grouping: "model", usage: usage(["name 1", "elsewhere"]), due: DUE } as const;
  const filtered = { ...second, project: one, filter: DIARIZED };
  await storeSeries(db, [...series, second, filtered]);
  return [one.name, other.name];
}

/** The site of the stored usage, and its page Usage in the browser. */
async function open(query: string, options: Parameters<typeof openPage>[2] = {}, projects: readonly string[] = []) {
  const health = healthState({ projects: projects.map((project) => makeProject({ project, projectId: project })) });
  const url = `${await servePages(usageSite(db, () => health))}/`;
  const viewport = { width: 1440, height: 900 };
  return { ...(await openPage(browser, `${url}usage?${query}`, { viewport, ...options })), url };
}

async function chartOf(page: Page): Promise<ChartDescription> {
  return JSON.parse((await page.locator("#usage-by-day-chart script").textContent()) ?? "");
}

test("each choice changes the answer and the URL", async () => {
  const projects = await storeAll();
  const { page, consoleMessages } = await open(PERIOD, {}, projects);
  const parameter = (name: string) => new URL(page.url()).searchParams.get(name);
  const shown = () => page.locator("#usage-title").innerText();
  const choose = async (name: string, value: string) => {
    await page.locator(`select[name="${name}"]`).selectOption(value);
    await page.getByRole("button", { name: "Show", exact: true }).click();
    // A click waits for the first bytes of the next page only.
    await page.waitForLoadState();
  };
  expect(await shown()).toBe("Hours by model");
  await choose("metric", "requests");
  expect([parameter("metric"), await shown()]).toEqual(["requests", "Requests by model"]);
  await choose("project", projects[0] ?? "");
  expect(parameter("project")).toBe(projects[0]);
  await choose("filter", DIARIZED.name);
  expect(await page.locator(".ranks tbody tr").count()).toBe(2);
  await choose("filter", "");
  // The table has at most 20 groups.
  expect(await page.locator(".ranks tbody tr").count()).toBe(20);
  // On a phone the columns fit beside each other.
  await page.setViewportSize({ width: 390, height: 900 });
  const table = page.locator(".ranks .scroll");
  expect(await table.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
  await page.getByRole("link", { name: "by endpoint", exact: true }).click();
  expect(await shown()).toBe("Requests by endpoint");

  await page.getByRole("link", { name: "7 days", exact: true }).click();
  expect([parameter("period"), parameter("grouping"), parameter("metric"), parameter("project")]).toEqual([
    ...["7d", "endpoint", "requests", projects[0]],
  ]);
  const periods = page.getByRole("list", { name: "Period", exact: true });
  expect(await periods.locator("[aria-current]").innerText()).toBe("7 days");
  await page.goBack();
  expect([parameter("from"), await shown()]).toEqual([back(10), "Requests by endpoint"]);
  await page.getByLabel("From", { exact: true }).fill(back(3));
  await page.getByLabel("to", { exact: true }).fill(back(2));
  await page.getByRole("button", { name: "Show", exact: true }).click();
  expect((await chartOf(page)).titles).toEqual([back(3), back(2)]);
  expect(consoleMessages).toEqual([]);
});

test("the newest day has its label below the chart, however many days there are", async () => {
  await storeAll();
  const { page } = await open(`from=${DUE.start}&to=${DUE.end}`);
  await expect
    .poll(() => page.locator("#usage-by-day-chart .plot text").allTextContents())
    .toContain(dayLabel(DUE.end));
});

test("a reader who prefers reduced motion gets none", async () => {
  await storeAll();
  const { page } = await open(PERIOD, { reducedMotion: "reduce" });
  const motion = `[getComputedStyle(document.documentElement).scrollBehavior, ...new Set([...document.querySelectorAll("*")].map((one) => getComputedStyle(one).transitionDuration))]`;
  expect(await page.evaluate(motion)).toEqual(["auto", "0s"]);
  await page.emulateMedia({ reducedMotion: "no-preference" });
  expect(await page.evaluate(motion)).toEqual(["smooth", "0s"]);
});
