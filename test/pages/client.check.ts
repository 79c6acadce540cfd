// The script of the pages in a real browser, on the page Usage with made-up usage that the test changes.

import { expect, test } from "vitest";
import { makeAnswer, NOTHING_LACKING } from "../facts/sample-facts.ts";
import { HOSTILE_NAMES } from "../show/hostile-names.ts";
import { pageOf } from "../web/dashboard/sample-pages.ts";
import { axeFindings } from "./axe.ts";
import { openBrowser, openPage, SCREENS, savePicture, servePages, sidewaysOverflow } from "./browser.ts";

const browser = await openBrowser();

/** The hours of each group on three days. */
type Groups = Readonly<Record<string, readonly string[]>>;

const GROUPS: Groups = { "nova-3": ["0", "9007199254740993.25", "3"], "nova-2": ["5", "1.5", "0.125"] };
const PERIOD = { start: "2026-11-18", end: "2026-11-20" };
const STATES = ["settling", "final", "incomplete"] as const;

function usagePage(groups: Groups) {
  const named = Object.keys(groups).map((group) => ({ group }));
  const answer = makeAnswer({ period: PERIOD, groups: named, compared: false, otherByDay: ["0", "0.25", "0"] });
  return pageOf("usage", {
    answer: {
      ...{ ...answer, sql: "select 1.50 <b>", lacking: { ...NOTHING_LACKING, incompleteDays: [PERIOD.end] } },
      days: answer.days.map(({ day }, i) => ({ day, state: STATES[i] ?? "final" })),
      other: { groups: 12, amount: "1", before: null, change: null },
      groups: answer.groups.map((one) => ({ ...one, byDay: [...(groups[one.group ?? ""] ?? [])] })),
    },
  });
}

/** A monitor whose usage the test can change. */
async function serve(groups = GROUPS) {
  const shown = { groups };
  const url = `${await servePages({ "/usage": async () => usagePage(shown.groups) })}/`;
  return { shown, url, address: `${url}usage` };
}

async function open(address: string, options: Parameters<typeof openPage>[2] = {}) {
  const watched = await openPage(browser, address, options);
  const { page } = watched;
  const part = (name: string) => page.locator(`#usage-by-day-chart .${name}`);
  const [plot, legend, tip] = [part("plot"), part("legend"), part("tip")];
  await plot.locator("svg").waitFor();
  return { ...watched, plot, legend, tip };
}

const groupAt = (address: string) => new URL(address).searchParams.get("group");

test("the day under the pointer is shown with its exact amounts", async () => {
  const { url, address } = await serve();
  const { plot, tip, consoleMessages, requests } = await open(address);
  await plot.hover();
  await expect.poll(() => tip.innerText()).toContain("2026-11-19");
  expect(await tip.locator("bdi, td").allInnerTexts()).toEqual([
    ...["12 others", "0.25 hours", "nova-2", "1.5 hours", "nova-3", "9,007,199,254,740,993.25 hours"],
  ]);
  expect(consoleMessages).toEqual([]);
  expect(requests.every((request) => request.startsWith(url))).toBe(true);
});

test("a click on a bar leads to its group alone", async () => {
  const { address } = await serve();
  const { page, plot } = await open(address);
  const bars = await plot.locator(`path[fill="var(--series-2)"]`).all();
  expect(await Promise.all(bars.map((bar) => bar.getAttribute("fill-opacity")))).toEqual(["0.5", null, null]);
  await plot.click();
  await expect.poll(() => groupAt(page.url())).toBe("nova-3");
});

test("an entry of the legend leads to its group alone", async () => {
  const { address } = await serve();
  const { page, legend } = await open(address);
  await legend.getByRole("link", { name: "nova-2" }).click();
  expect(groupAt(page.url())).toBe("nova-2");
});

test("the copy buttons copy the exact SQL and the whole link", async () => {
  const { url, address } = await serve();
  const { page } = await open(address, { permissions: ["clipboard-read", "clipboard-write"] });
  const copied = () => page.evaluate("navigator.clipboard.readText()");
  await page.getByText("SQL", { exact: true }).click();
  await page.getByRole("button", { name: "Copy SQL" }).click();
  await expect.poll(copied).toBe("select 1.50 <b>");
  await page.getByRole("button", { name: "Copy link" }).click();
  await expect.poll(copied).toBe(`${url}usage?from=2026-02-10&to=2026-03-09`);
  expect(await page.getByRole("status").allTextContents()).toContain("Copied");
});

test("a page that stays open is loaded again after an hour", async () => {
  const { shown, address } = await serve();
  const { page } = await openPage(browser, "about:blank");
  await page.clock.install();
  await page.goto(address);
  shown.groups = { newer: ["1", "2", "3"] };
  // A page is shared for a second, so the first one that is loaded may be the old one.
  const nextHour = () => page.clock.fastForward(3_700_000);
  await expect.poll(() => nextHour().then(() => page.locator(".ranks tbody a").first().innerText())).toBe("newer");
});

test("without script a page has a table in place of its chart", async () => {
  const { address } = await serve();
  const { page, consoleMessages } = await openPage(browser, address, { javaScriptEnabled: false });
  await page.getByText("Table: hours by day and model").click();
  expect(await page.getByRole("group", { name: "Exact hours by day and model" }).innerText()).toContain("1.5");
  await page.getByText("SQL", { exact: true }).click();
  expect(await page.getByRole("button").allInnerTexts()).toEqual(["Show"]);
  expect(consoleMessages).toEqual([]);
});

test.each(SCREENS)("at %s hostile names stay text in charts, legends and tables", async (screen, options) => {
  const hostile = HOSTILE_NAMES.slice(0, 8);
  const groups = Object.fromEntries(hostile.map((group, i) => [group, ["1", String(i + 1), "3"]]));
  const { address } = await serve(groups);
  const { page, consoleMessages, plot, legend, tip } = await open(address, options);
  await plot.hover();
  const names = ["12 others", ...hostile.toReversed()];
  await expect.poll(() => tip.locator("bdi").allTextContents()).toEqual(names);
  expect(await legend.locator("bdi").allTextContents()).toEqual(names);
  expect(await page.locator(".ranks bdi").allTextContents()).toEqual(hostile);
  expect(await page.locator("img, iframe, object, embed, script:not([src], [type='application/json'])").count()).toBe(
    0,
  );
  expect(await sidewaysOverflow(page)).toBe(0);
  expect(await axeFindings(page)).toEqual([]);
  expect(consoleMessages).toEqual([]);
  await savePicture(page, `client-${screen}`);
});
