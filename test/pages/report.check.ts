import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, test } from "vitest";
import { exactText, headlineText } from "../../src/report/format.ts";
import { renderReport } from "../../src/report/report.ts";
import type { ReportData } from "../../src/report/report-data.ts";
import { HOSTILE_NAMES } from "../report/hostile-names.ts";
import { makeHostileData } from "../report/make-hostile-data.ts";
import { makeReportData, makeTroubledData } from "../report/make-report-data.ts";
import { openBrowser, openPage, SCREENS } from "./browser.ts";
import { expectPrintable, walkWithKeyboard } from "./walk.ts";

const browser = await openBrowser();
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "report-check-"));
afterAll(() => fs.rmSync(folder, { recursive: true }));
/** The folder for screenshots, for a person to look at. Without it none are saved. */
const PICTURES = process.env.PICTURES;

// These expressions are texts because they are evaluated in the browser: their names do not exist in Node.
const SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
const COLOURS = `[
  getComputedStyle(document.body).backgroundColor,
  getComputedStyle(document.querySelector('svg.wide [fill="var(--series-1)"]')).fill,
].join(" ")`;

/** The width of a day in each cell. */
const WIDTHS_OF_DAYS = `[...document.querySelectorAll(".heat tbody td")].map((cell) => cell.getBoundingClientRect().width / cell.colSpan)`;

function save(name: string, data: ReportData): string {
  const file = path.join(folder, `${name}.html`);
  fs.writeFileSync(file, renderReport(data));
  return pathToFileURL(file).href;
}

const PAGES = {
  whole: save("whole", makeReportData({}, { days: 90, groups: 50, series: 8 })),
  troubled: save("troubled", makeTroubledData()),
  hostile: save("hostile", makeHostileData(0)),
  long: save("long", makeTroubledData({ days: 366, groups: 50, series: 60 })),
  short: save("short", makeReportData({}, { days: 1, groups: 3, series: 1 })),
};

for (const [name, url] of Object.entries(PAGES)) {
  test.each(SCREENS)(
    `the ${name} report at %s writes nothing to the console, requests nothing else and does not scroll sideways`,
    async (screen, options) => {
      const { page, complaints, requests } = await openPage(browser, url, options);
      expect(complaints).toEqual([]);
      expect(requests).toEqual([url]);
      expect(await page.evaluate(SIDEWAYS)).toBe(0);
      const picture = await page.screenshot({ fullPage: true });
      if (PICTURES !== undefined)
        fs.writeFileSync(path.join(PICTURES, `${name}-${screen.replaceAll(/\W+/g, "-")}.png`), picture);
      expect(picture.length).toBeGreaterThan(10_000);
      await page.context().close();
    },
  );
}

/** For each figure the box of its column, and the left and right ends of its texts. */
const FIGURE_BOXES = `[...document.querySelectorAll(".figures > div")].map((column) => {
  const box = column.getBoundingClientRect();
  const texts = [...column.querySelectorAll("dt, dd > *")].map((element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const { left, right } = range.getBoundingClientRect();
    return { text: element.textContent, left, right };
  });
  return { left: box.left, right: box.right, top: box.top, bottom: box.bottom, texts };
})`;

type FigureBox = Readonly<Record<"left" | "right" | "top" | "bottom", number>> & {
  readonly texts: readonly { readonly text: string; readonly left: number; readonly right: number }[];
};

test.each([9, 15, 30])("figures of %i digits stay in their columns at every width", async (digits) => {
  const amount = "9876543210".repeat(3).slice(0, digits);
  const data = makeReportData();
  const metrics = data.totals.metrics.map(({ metric }, i) => ({
    metric,
    amount: i === 0 ? `${amount}.0123456789` : amount,
    before: "1",
    byDay: [],
  }));
  const url = save(`digits-${digits}`, { ...data, totals: { ...data.totals, metrics, incompleteDays: 1 } });
  for (const width of [390, 600, 768, 1024, 1280, 1440, 1920]) {
    const { page } = await openPage(browser, url, { viewport: { width, height: 900 } });
    const boxes = (await page.evaluate(FIGURE_BOXES)) as readonly FigureBox[];
    expect(boxes).toHaveLength(5);
    for (const box of boxes) {
      expect(box.texts.length).toBeGreaterThan(2);
      const outside = box.texts.filter(({ left, right }) => left < box.left - 1 || right > box.right + 1);
      expect({ width, outside }).toEqual({ width, outside: [] });
    }
    const overlapping = boxes.flatMap((one, i) =>
      boxes
        .slice(i + 1)
        .filter(
          (other) =>
            one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom,
        ),
    );
    expect({ width, overlapping }).toEqual({ width, overlapping: [] });
    expect(await page.evaluate(SIDEWAYS)).toBe(0);
    if (PICTURES !== undefined) {
      fs.writeFileSync(path.join(PICTURES, `digits-${digits}-${width}.png`), await page.screenshot());
    }
    await page.context().close();
  }
});

test("the figures on the page are those of the data", async () => {
  const data = makeReportData();
  const { page } = await openPage(browser, save("figures", data));
  const sent = data.totals.metrics
    .filter(({ amount }) => amount !== null)
    .map(({ amount }) => headlineText(amount ?? ""));
  expect(await page.locator(".figure").allInnerTexts()).toEqual(sent);

  const [model] = data.breakdowns;
  await page.getByText("Table: requests by day and model").click();
  const table = page.getByRole("group", { name: "Exact requests by day and model" });
  const cells = await table.locator("tbody tr").first().locator("th, td").allInnerTexts();
  expect(cells).toEqual([model?.days[0], ...(model?.groups ?? []).map(({ requests }) => exactText(requests[0] ?? ""))]);
  await page.context().close();
});

test.each([0, 6, 12, 18])("hostile names from number %i on run nothing and are shown as text", async (shift) => {
  const { page, complaints } = await openPage(browser, save(`hostile-${shift}`, makeHostileData(shift)));
  expect(complaints).toEqual([]);
  expect(await page.locator("script, img").count()).toBe(0);
  const texts = new Set(await page.locator("bdi").allTextContents());
  for (const name of HOSTILE_NAMES.slice(shift, shift + 6)) expect(texts).toContain(asShown(name));
  await page.context().close();
});

test("each chart shows one drawing with its name: the wide one on a desktop screen, the narrow one on a phone", async () => {
  for (const [width, shown] of [
    [1440, "wide"],
    [390, "narrow"],
  ] as const) {
    const { page } = await openPage(browser, PAGES.troubled, { viewport: { width, height: 900 } });
    const charts = page.getByRole("img");
    expect(await charts.evaluateAll((all) => all.map((one) => one.getAttribute("class")))).toEqual(
      Array(6).fill(shown),
    );
    expect(await page.getByRole("img", { name: "Hours by day and model" }).count()).toBe(1);
    await page.context().close();
  }
});

test("the page and its charts follow the preferred colour scheme, and paper is always light", async () => {
  const { page } = await openPage(browser, PAGES.troubled, {
    colorScheme: "dark",
    viewport: { width: 1440, height: 900 },
  });
  const colours = (): Promise<unknown> => page.evaluate(COLOURS);
  const dark = await colours();
  await page.emulateMedia({ colorScheme: "light" });
  const light = await colours();
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  expect(await colours()).toEqual(light);
  expect(light).toMatch(/^rgb\(252, 251, 249\) rgb\(36, 99, 173\)$/);
  expect(dark).toMatch(/^rgb\(21, 24, 28\) rgb\(91, 159, 230\)$/);
  await page.context().close();
});

test("content that is folded on a screen is shown on paper", async () => {
  const { page } = await openPage(browser, PAGES.troubled);
  const table = page.getByRole("table", { name: "Freshness by series" });
  expect(await table.isVisible()).toBe(false);
  await page.emulateMedia({ media: "print" });
  expect(await table.isVisible()).toBe(true);
  expect((await table.boundingBox())?.height).toBeGreaterThan(100);
  await page.context().close();
});

test("Tab leads to everything in a report, and it can be printed", async () => {
  const { page } = await openPage(browser, PAGES.troubled);
  await walkWithKeyboard(page);
  await expectPrintable(page);
  await page.context().close();
});

test("in the coverage map a stretch that is not complete leads to why, and a day is as wide in each row", async () => {
  const { page } = await openPage(browser, PAGES.troubled, { viewport: { width: 1440, height: 900 } });
  const map = page.locator(".heat");
  await map.getByRole("link", { name: "failed, 2026-11-11" }).first().press("Enter");
  expect(await page.evaluate("document.querySelector(':target').closest('tr').innerText")).toContain("503");
  const widths = (await page.evaluate(WIDTHS_OF_DAYS)) as readonly number[];
  expect(Math.max(...widths) - Math.min(...widths)).toBeLessThan(1);
  await page.context().close();
});

/** The name as a page shows it: characters that HTML can't contain are replaced. */
function asShown(name: string): string {
  return name.replaceAll(/[\p{Cc}\p{Cs}]/gu, (char) => (/[\t\n]/.test(char) ? char : "\ufffd"));
}
