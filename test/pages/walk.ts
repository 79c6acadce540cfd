// Walks through a page with the keyboard, and checks how it prints.

import type { Page } from "playwright-core";
import { expect } from "vitest";
import { COLOURS } from "../../src/show/style.ts";
import { misplaced } from "./boxes.ts";

// These expressions are texts because they are evaluated in the browser: their names do not exist in Node.

/** Names everything on the page that a person can use, in the order of the page. */
const STOPS = `(() => {
  const selector = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  const stops = [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility());
  window.nameOfStop = (one) => stops.indexOf(one) + " " + one.localName + " " + (one.name || one.ariaLabel || one.textContent.trim()).slice(0, 60);
  return stops.map(window.nameOfStop);
})()`;

/** What has the focus: whether it has a ring around it, and is in sight. Undefined if nothing on the page has it. */
const FOCUSED = `(() => {
  const one = document.activeElement;
  if (one === document.body || one === null) return undefined;
  const { outlineStyle, outlineWidth } = getComputedStyle(one);
  const [{ left, right, top, bottom }] = one.getClientRects();
  // At its beginning, as the end of a long name is cut.
  const seen = document.elementFromPoint(Math.min((left + right) / 2, left + 9), (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2);
  return { name: window.nameOfStop(one), hasRing: outlineStyle === "solid" && parseFloat(outlineWidth) >= 2, isInSight: one.contains(seen) };
})()`;

type Focused = { readonly name: string; readonly hasRing: boolean; readonly isInSight: boolean };

/** A field for a date keeps the focus for its day, month, year and calendar. */
const PRESSES_MAX = 6;

/** Expects that Tab leads to every control in the order of the page, that the focus is visible, and that Tab then leaves the page. */
export async function walkWithKeyboard(page: Page): Promise<void> {
  await page.emulateMedia({ media: "screen", reducedMotion: "reduce" });
  await page.setViewportSize({ width: 1440, height: 900 });
  // Tab begins where the focus was last.
  await page.evaluate("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')");
  const stops = (await page.evaluate(STOPS)) as readonly string[];
  const walked: Focused[] = [];
  for (let presses = 0; presses < stops.length * PRESSES_MAX; presses++) {
    await page.keyboard.press("Tab");
    const focused = (await page.evaluate(FOCUSED)) as Focused | undefined;
    if (focused === undefined) break;
    if (focused.name !== walked.at(-1)?.name) walked.push(focused);
  }
  expect(walked).toEqual(stops.map((name) => ({ name, hasRing: true, isInSight: true })));
}

/** The space within the margins of A4, in pixels. */
const PAPER = { width: 688, height: 971 };
const CONTROLS = "nav, form, .choices, .links, .title a, .copy, .sql";
const TABLES = `[...document.querySelectorAll("table")].filter((one) => !one.closest(".sql")).map((one) => ({
  caption: one.caption.textContent, isVisible: one.checkVisibility(), isLegible: parseFloat(getComputedStyle(one).fontSize) >= 9,
}))`;

/** Expects that paper has nothing to click, that every table is open and whole, and that the colours are light. */
export async function expectPrintable(page: Page): Promise<void> {
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await page.setViewportSize(PAPER);
  expect(await page.locator(CONTROLS).filter({ visible: true }).allInnerTexts()).toEqual([]);
  const tables = (await page.evaluate(TABLES)) as readonly { readonly caption: string }[];
  expect(tables).toEqual(tables.map(({ caption }) => ({ caption, isVisible: true, isLegible: true })));
  expect(await misplaced(page)).toMatchObject({ out: [], over: [], sideways: 0 });
  const paper = await page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper')");
  expect(paper).toBe(COLOURS.paper[0]);
}
