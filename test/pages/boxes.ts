// The boxes of the texts and fields of a page: whether one is cut off or lies over another, at four widths, in light and dark.

import type { Page } from "playwright-core";
import { expect } from "vitest";
import { savePicture } from "./browser.ts";

/** Lines of text and form fields that overlap another one by some pixels, or reach out of the window. Text, as the browser evaluates it. */
const MISPLACED = `(() => {
  const boxes = [];
  const add = (name, element, range) => {
    // Nobody sees what is scrolled out of its box, or what is cut off from a long name.
    const around = element.closest(".scroll, pre");
    const box = around && getComputedStyle(around).overflow !== "visible" ? around.getBoundingClientRect() : undefined;
    const isCut = element.matches(".drawing bdi, :is(.third, .quarter) :is(th, a) > bdi");
    const rects = isCut ? [element.getBoundingClientRect()] : range.getClientRects();
    for (const { left, right: end, top, bottom: foot } of rects) {
      const right = Math.min(end, box?.right ?? end);
      const bottom = Math.min(foot, box?.bottom ?? foot);
      if (right - left > 1 && bottom - top > 1) boxes.push({ name, left, right, top, bottom });
    }
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    // For screen readers only.
    if (element.closest("caption, figcaption")?.getBoundingClientRect().width <= 1) continue;
    if (node.data.trim() === "" || element.closest("svg, option, script, noscript, .unseen") || !element.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    add(element.localName + " in " + element.closest("[class]")?.className + ": " + node.data.trim().slice(0, 60), element, range);
  }
  for (const field of document.querySelectorAll("input:not([type=hidden]), select")) add(field.name, field, field);
  const out = boxes.filter(({ left, right }) => left < 0 || right > document.documentElement.clientWidth + 1);
  const over = boxes.flatMap((a, i) => boxes.slice(i + 1)
    .filter((b) => a.left < b.right - 2 && b.left < a.right - 2 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
    .map((b) => a.name + " | " + b.name));
  const sideways = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  return { count: boxes.length, out: out.map(({ name }) => name), over, sideways };
})()`;

type Misplaced = {
  readonly count: number;
  readonly out: readonly string[];
  readonly over: readonly string[];
  /** By how much the page is wider than the window. */
  readonly sideways: number;
};

export async function misplaced(page: Page): Promise<Misplaced> {
  return (await page.evaluate(MISPLACED)) as Misplaced;
}

/** A chart is drawn again a moment after the window has another width. */
const CHARTS_FIT = `[...document.querySelectorAll(".plot svg")].every((svg) => svg.clientWidth <= svg.closest(".plot").clientWidth)`;

export async function expectNothingMisplaced(page: Page, name: string): Promise<void> {
  for (const width of [390, 768, 1440, 2560]) {
    await page.setViewportSize({ width, height: 900 });
    // The page's policy forbids waitForFunction to evaluate a text for a second time.
    await expect.poll(() => page.evaluate(CHARTS_FIT)).toBe(true);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await savePicture(page, `${name}-${width}-${colorScheme}`);
      const { count, ...found } = await misplaced(page);
      // Fewer boxes would mean that the page has not been drawn.
      expect(count).toBeGreaterThan(20);
      expect({ width, colorScheme, ...found }).toEqual({ width, colorScheme, sideways: 0, out: [], over: [] });
    }
  }
}
