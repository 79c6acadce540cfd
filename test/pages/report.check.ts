// The report file in a real browser: it draws its charts without a server, requests nothing, and runs nothing but its own script.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, test } from "vitest";
import type { Overview } from "../../src/facts/overview.ts";
import { scriptPage } from "../../src/web/assets.ts";
import { renderReport } from "../../src/web/dashboard/pages.ts";
import { makeAnswer, makeOverview } from "../facts/sample-facts.ts";
import { makeBudget } from "../health/sample-health-state.ts";
import { HOSTILE_NAMES } from "../show/hostile-names.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { axeFindings } from "./axe.ts";
import { openBrowser, openPage, SCREENS, savePicture, sidewaysOverflow } from "./browser.ts";
import { expectPrintable, walkWithKeyboard } from "./walk.ts";

const browser = await openBrowser();
const folder = temporaryFolder(afterAll);
const { body: script } = await scriptPage();

function save(name: string, overview: Overview): string {
  const file = path.join(folder, `${name}.html`);
  const budgets = [makeBudget()];
  fs.writeFileSync(file, renderReport({ overview, budgets }, new Date(0), script));
  return pathToFileURL(file).href;
}

test.each(SCREENS)("at %s everybody can read the report file without a server", async (screen, options) => {
  const url = save("whole", makeOverview());
  const { page, consoleMessages, requests } = await openPage(browser, url, options);
  await page.locator("figure .plot svg").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  expect(consoleMessages).toEqual([]);
  expect(requests).toEqual([url]);
  expect(await sidewaysOverflow(page)).toBe(0);
  await savePicture(page, `report-${screen}`);
  await walkWithKeyboard(page);
  await expectPrintable(page);
});

test.each([0, 8, 16])("hostile names from number %i on run nothing", async (shift) => {
  const groups = HOSTILE_NAMES.slice(shift, shift + 8).map((group) => ({ group }));
  const url = save(`hostile-${shift}`, makeOverview({ splits: [makeAnswer({ groups })] }));
  const { page, consoleMessages, requests } = await openPage(browser, url);
  await page.locator("figure .plot svg").waitFor();
  expect([consoleMessages, requests]).toEqual([[], [url]]);
  expect(await page.locator('script:not([type="application/json"])').count()).toBe(1);
  expect(await page.locator("img").count()).toBe(0);
});
