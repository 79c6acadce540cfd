// The boxes of the texts and fields of each page of the dashboard, with numbers of 15 digits and long names.

import fs from "node:fs";
import path from "node:path";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import type { PageData } from "../../src/web/dashboard/pages.ts";
import type { Page as WebPage } from "../../src/web/page.ts";
import { jobLine, makeBudgetUse, NOW, runLine } from "../health/sample-health-state.ts";
import { makeTroubledData } from "../report/make-report-data.ts";
import { pageData, pageOf } from "../web/dashboard/sample-pages.ts";
import { testMonitor } from "../web/test-monitor.ts";
import { openBrowser, openPage } from "./browser.ts";

const browser = await openBrowser();
/** The folder for screenshots, for a person to look at. Without it none are saved. */
const PICTURES = process.env.PICTURES;
const AMOUNT = "987654321012345";
const LONG = "a-name-without-any-space-that-somebody-made-as-long-as-it-may-be-in-the-configuration-of-the-program";
const HEALTH = {
  jobs: [jobLine({ job: LONG, overdueSince: NOW }), jobLine({ paused: { at: NOW, why: LONG, by: LONG } })],
  slices: { complete: 987_654_321_012_345, suspect: 1, failed: 987_654, missing: 987_654_321 },
  budgets: [makeBudgetUse({ name: LONG, amount: AMOUNT, used: AMOUNT })],
};

function widePage(page: keyof PageData): WebPage {
  const { overview } = pageData();
  const report = makeTroubledData({ days: 30, groups: 9, series: 8 });
  const metrics = report.totals.metrics.map((one) => ({
    ...one,
    amount: `${AMOUNT}.0123456789`,
    byDay: report.coverage.days.map((_, i) => String(i)),
  }));
  const rankings = overview.rankings.map((ranking) => ({
    ...ranking,
    projects: ["production", LONG],
    groups: ranking.groups.map((group) => ({
      ...group,
      project: LONG,
      comment: LONG,
      hours: AMOUNT,
      requests: AMOUNT,
    })),
  }));
  const difference = {
    source: "billing" as const,
    project: LONG,
    grouping: "accessor,deployment,line_item,tags",
    day: "2026-03-01",
    metric: "hours",
  };
  const data: Partial<{ readonly [P in keyof PageData]: Partial<PageData[P]> }> = {
    overview: { ...report, totals: { ...report.totals, metrics }, rankings },
    cost: report,
    quality: { ...report, differences: [{ ...difference, total: AMOUNT, sumOfGroups: AMOUNT, difference: AMOUNT }] },
    jobs: {
      runs: [
        runLine({ job: LONG, status: "failed", error: LONG, rowsChanged: Number(AMOUNT), requests: Number(AMOUNT) }),
      ],
    },
  };
  return pageOf(page, data[page], { health: HEALTH, view: { project: LONG } });
}

/**
 * The lines of text and the form fields that overlap another one, or that reach out of the window. A text,
 * because it is evaluated in the browser. The texts of drawings are the chart library's.
 */
const MISPLACED = `(() => {
  const boxes = [];
  const add = (name, element, rects) => {
    // What is scrolled out of its box is not seen.
    const box = element.closest(".scroll, pre")?.getBoundingClientRect();
    for (const { left, right: end, top, bottom } of rects) {
      const right = Math.min(end, box?.right ?? end);
      if (right - left > 1 && bottom - top > 1) boxes.push({ name, left, right, top, bottom });
    }
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    if (node.data.trim() === "" || element.closest("svg, option, script, noscript, .unseen") || !element.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    add(node.data.trim().slice(0, 60), element, range.getClientRects());
  }
  for (const field of document.querySelectorAll("input:not([type=hidden]), select")) add(field.name, field, [field.getBoundingClientRect()]);
  const out = boxes.filter(({ left, right }) => left < 0 || right > document.documentElement.clientWidth + 1);
  const over = boxes.flatMap((a, i) => boxes.slice(i + 1)
    .filter((b) => a.left < b.right - 2 && b.left < a.right - 2 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
    .map((b) => a.name + " | " + b.name));
  return { count: boxes.length, out: out.map(({ name }) => name), over };
})()`;

type Misplaced = { readonly count: number; readonly out: readonly string[]; readonly over: readonly string[] };

async function look(page: Page, name: string): Promise<void> {
  for (const width of [390, 768, 1440, 2560]) {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const { count, ...misplaced } = (await page.evaluate(MISPLACED)) as Misplaced;
      expect(count).toBeGreaterThan(20);
      const sideways = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      expect({ width, colorScheme, ...misplaced, sideways }).toEqual({
        ...{ width, colorScheme, sideways: 0 },
        ...{ out: [], over: [] },
      });
      if (PICTURES !== undefined) {
        const file = path.join(PICTURES, `${name}-${width}-${colorScheme}.png`);
        fs.writeFileSync(file, await page.screenshot({ fullPage: true }));
      }
    }
  }
}

test.each(["overview", "cost", "quality", "jobs", "run", "keys"] as const)(
  "on the page %s no text is cut or lies over another, at four widths, in light and dark",
  async (name) => {
    const shown = widePage(name);
    const monitor = await testMonitor({ pages: { "/page": () => shown } });
    onTestFinished(() => monitor[Symbol.asyncDispose]());
    const { page } = await openPage(browser, `${monitor.url}/page`);
    onTestFinished(() => page.context().close());
    await page.waitForLoadState("networkidle");
    await look(page, name);
  },
);
