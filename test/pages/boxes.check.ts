// Checks that no text or field of a page of the dashboard is cut off or overlaps another, with numbers of 15 digits and long names.

import { expect, test } from "vitest";
import type { PageData } from "../../src/web/dashboard/pages.ts";
import type { Page as WebPage } from "../../src/web/page.ts";
import { makeAnswer, makeCoverage, makeOverview, NOTHING_LACKING, PERIOD } from "../facts/sample-facts.ts";
import { makeBudget, makeJob, makeRun, NOW } from "../health/sample-health-state.ts";
import { HOSTILE_NAMES } from "../show/hostile-names.ts";
import { pageOf } from "../web/dashboard/sample-pages.ts";
import { expectNothingMisplaced } from "./boxes.ts";
import { openBrowser, openPage, servePages } from "./browser.ts";
import { expectPrintable, walkWithKeyboard } from "./walk.ts";

const browser = await openBrowser();
const AMOUNT = "987654321012345";
const LONG = "a-name-without-any-space-that-somebody-made-as-long-as-it-may-be-in-the-configuration-of-the-program";
const HEALTH = {
  jobs: [makeJob({ job: LONG, overdueSince: NOW }), makeJob({ paused: { at: NOW, why: LONG, by: LONG } })],
  slices: { complete: 987_654_321_012_345, suspect: 1, failed: 987_654, missing: 987_654_321 },
  budgets: [makeBudget({ name: LONG, amount: AMOUNT, used: AMOUNT })],
};

const LEFT_OUT = { projectsLeftOut: [LONG], projectsLeftOutCount: 1 };
const INCOMPLETE = { lacking: { ...NOTHING_LACKING, incompleteDays: [PERIOD.end], ...LEFT_OUT }, compared: false };

/** Amounts of 15 digits, and long names. */
function wideOverview() {
  const figures = makeOverview().figures.map((one) => ({ ...one, amount: `${AMOUNT}.0123456789` }));
  const groups = Array.from({ length: 8 }, () => ({ group: LONG, label: LONG, amount: AMOUNT }));
  const splits = (["model", "accessor", "tags"] as const).map((grouping) =>
    makeAnswer({ ...INCOMPLETE, question: { grouping }, groups }),
  );
  return makeOverview({ figures, splits, total: makeAnswer({ ...INCOMPLETE, question: { grouping: "none" } }) });
}

function wideAnswer() {
  const names = [LONG, ...HOSTILE_NAMES.slice(0, 9), ...Array.from({ length: 12 }, (_, i) => `name ${i}`)];
  const other = { groups: 12, amount: AMOUNT, before: null, change: null };
  const answer = makeAnswer({ ...INCOMPLETE, other, groups: names.map((group) => ({ group, amount: AMOUNT })) });
  const byDay = answer.days.map(() => `${AMOUNT}.0123456789`);
  const drawn = answer.groups.map((one) => ({ ...one, ...(one.byDay && { byDay }) }));
  return { ...answer, groups: drawn, otherByDay: byDay };
}

function widePage(page: keyof PageData): WebPage {
  const coverage = makeCoverage();
  const gap = { grouping: "model", filter: LONG, start: PERIOD.end, end: PERIOD.end };
  const projects = coverage.projects.map((one) => ({
    ...one,
    ...{ project: LONG, gaps: [{ ...gap, quality: "missing" as const, error: LONG }] },
  }));
  const amounts = { rowsChanged: Number(AMOUNT), requests: Number(AMOUNT) };
  const runs = [makeRun({ job: LONG, status: "failed", error: LONG, ...amounts })];
  const data: Partial<{ readonly [P in keyof PageData]: Partial<PageData[P]> }> = {
    ...{ overview: wideOverview(), usage: { answer: wideAnswer() } },
    health: { coverage: { ...coverage, projects }, runs },
  };
  return pageOf(page, data[page], { health: HEALTH, view: { project: LONG } });
}

test.each(["overview", "usage", "health", "run"] as const)(
  "nothing on the page %s is cut off, overlapping or out of the keyboard's reach, on screen or on paper",
  async (name) => {
    const shown = widePage(name);
    const { page } = await openPage(browser, `${await servePages({ "/page": () => shown })}/page`);
    await page.waitForLoadState("networkidle");
    await expectNothingMisplaced(page, name);
    await walkWithKeyboard(page);
    await expectPrintable(page);
  },
);

test.each([0, 2])("when all is well, the overview with %i budgets fits on a screen", async (count) => {
  const budgets = Array.from({ length: count }, () =>
    makeBudget({ name: LONG, percent: "40", forecastPercent: "90", reached: [] }),
  );
  const shown = pageOf("overview", {}, { health: { budgets } });
  const url = `${await servePages({ "/page": () => shown })}/page`;
  const { page } = await openPage(browser, url, { viewport: { width: 1440, height: 900 } });
  await page.locator(".plot svg").waitFor();
  // The sum of 3 figures, 1 chart, 3 rows of headings, and the rows of 5 models, 5 keys and 3 sets of tags.
  expect(await page.locator(".figure, .plot, #top-model tr, #top-accessor tr, #top-tags tr").count()).toBe(20);
  expect(await page.evaluate("document.documentElement.scrollHeight")).toBe(900);
});
