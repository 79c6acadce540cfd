// The script of the pages in a real browser, with a page of made-up usage that the test changes.

import { expect, test } from "vitest";
import { answerChart } from "../../src/show/answer-chart.ts";
import { html, sqlHtml } from "../../src/show/html.ts";
import { servedPage } from "../../src/web/dashboard/frame.ts";
import type { Page as WebPage } from "../../src/web/page.ts";
import { makeAnswer, NOTHING_LACKING } from "../facts/sample-facts.ts";
import { HOSTILE_NAMES } from "../show/hostile-names.ts";
import { axeFindings } from "./axe.ts";
import { openBrowser, openPage, SCREENS, savePicture, servePages, sideways } from "./browser.ts";

const browser = await openBrowser();

type Group = Readonly<{ group: string; hours: string[]; requests: string[] }>;

const GROUPS: readonly Group[] = [
  { group: "nova-3", hours: ["0", "9007199254740993.25", "3"], requests: ["0", "1200", "31"] },
  { group: "nova-2", hours: ["5", "1.5", "0.125"], requests: ["9", "7", "4"] },
];

function charts(groups: readonly Group[]) {
  const of = (metric: "hours" | "requests", others: string[]) => {
    const named = groups.map(({ group }) => ({ group }));
    const period = { start: "2026-11-18", end: "2026-11-20" };
    const answer = makeAnswer({ period, groups: named, question: { metric }, compared: false, otherByDay: others });
    const states = ["settling", "final", "incomplete"] as const;
    const days = answer.days.map(({ day }, i) => ({ day, state: states[i] ?? "final" }));
    const drawn = {
      ...{ ...answer, days, lacking: { ...NOTHING_LACKING, incompleteDays: [period.end] } },
      other: { groups: 12, amount: "1", before: null, change: null },
      groups: answer.groups.map((one, i) => ({ ...one, byDay: [...(groups[i]?.[metric] ?? [])] })),
    };
    return answerChart(drawn, { id: `${metric}-by-model`, hrefOf: (group) => `?group=${group}` });
  };
  return html`${of("hours", ["0", "0.25", "0"])}${of("requests", ["0", "2", "0"])}`;
}

type Content = { readonly title: string; readonly groups: readonly Group[] };
const CONTENT: Content = { title: "All is well", groups: GROUPS };

function pageOf({ title, groups }: Content): WebPage {
  return servedPage({
    title: `${title}, usage-export`,
    header: html`<h1>${title}</h1>`,
    sections: [
      { id: "usage", title: "Usage by model", body: charts(groups) },
      {
        id: "form",
        title: "Form",
        body: html`<form><label>From <input name="from" type="text" value="a"></label></form><button type="button" class="copy" hidden data-copy-link="./usage?from=1">Copy link</button>${sqlHtml("select 1.50 <b>")}`,
      },
    ],
  });
}

/** A monitor of which the test changes the page. */
async function serve(content: Content = CONTENT) {
  const shown = { content };
  return { shown, url: `${await servePages({ "/": async () => pageOf(shown.content) })}/` };
}

async function open(url: string, options: Parameters<typeof openPage>[2] = {}) {
  const watched = await openPage(browser, url, options);
  await watched.page.locator("figure .plot svg").first().waitFor();
  return watched;
}

test("the day under the pointer is shown with its exact amounts", async () => {
  const { url } = await serve();
  const { page, complaints, requests } = await open(url);
  const plot = page.locator("#hours-by-model-chart .plot");
  await plot.hover();
  const tip = page.locator("#hours-by-model-chart .tip");
  await expect.poll(() => tip.innerText()).toContain("2026-11-19");
  expect(await tip.locator("bdi, td").allInnerTexts()).toEqual([
    ...["12 others", "0.25 hours", "nova-2", "1.5 hours", "nova-3", "9,007,199,254,740,993.25 hours"],
  ]);

  expect(complaints).toEqual([]);
  expect(requests.every((request) => request.startsWith(url))).toBe(true);
});

test("a click on a bar leads to its group alone, and the bars of a day that may still change are lighter", async () => {
  const { url } = await serve();
  const { page } = await open(url);
  const plot = page.locator("#requests-by-model-chart .plot");
  expect(await plot.locator(`path[fill="var(--series-2)"][fill-opacity="0.5"]`).count()).toBe(1);
  await plot.click();
  await expect.poll(() => page.url()).toBe(`${url}?group=nova-3`);
});

test("an entry of the legend leads to its group alone", async () => {
  const { url } = await serve();
  const { page } = await open(url);
  await page.locator("#requests-by-model-chart .legend").getByRole("link", { name: "nova-2" }).click();
  expect(page.url()).toBe(`${url}?group=nova-2`);
});

test("a button copies its exact text, and another one the whole link", async () => {
  const { url } = await serve();
  const { page } = await open(url, { permissions: ["clipboard-read", "clipboard-write"] });
  await page.getByText("SQL", { exact: true }).click();
  await page.getByRole("button", { name: "Copy SQL" }).click();
  await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toBe("select 1.50 <b>");
  await page.getByRole("button", { name: "Copy link" }).click();
  await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toBe(`${url}usage?from=1`);
  expect(await page.getByRole("status").allTextContents()).toContain("Copied");
});

test("a page that stays open is loaded again after an hour", async () => {
  const { shown, url } = await serve();
  const { page } = await openPage(browser, "about:blank");
  await page.clock.install();
  await page.goto(url);
  shown.content = { ...CONTENT, title: "Newer" };
  await page.clock.fastForward(3_700_000);
  await expect.poll(() => page.locator("h1").innerText()).toBe("Newer");
});

test("without script there is a table in place of each chart, and no button that does nothing", async () => {
  const { url } = await serve();
  const { page, complaints } = await openPage(browser, url, { javaScriptEnabled: false });
  await page.getByText("Table: hours by day and model").click();
  expect(await page.getByRole("group", { name: "Exact hours by day and model" }).innerText()).toContain("1.5");
  expect(await page.getByRole("button").count()).toBe(0);
  expect(complaints).toEqual([]);
});

test.each(SCREENS)(
  "at %s hostile names stay text in charts, legends and tables, and axe finds nothing",
  async (screen, options) => {
    const groups = HOSTILE_NAMES.slice(0, 8).map((group, i) => ({
      ...{ group, hours: ["1", String(i + 1), "3"], requests: ["1", "2", String(i + 1)] },
    }));
    const { url } = await serve({ ...CONTENT, groups });
    const { page, complaints } = await open(url, options);
    const plot = page.locator("#hours-by-model-chart .plot");
    await plot.hover();
    const shown = page.locator("#hours-by-model-chart .tip bdi");
    const names = [...HOSTILE_NAMES.slice(0, 8)].reverse();
    await expect.poll(() => shown.allTextContents()).toEqual(["12 others", ...names]);
    expect(await page.locator("#hours-by-model-chart .legend bdi").allTextContents()).toEqual(["12 others", ...names]);
    expect(await page.locator("img, iframe, object, embed, script:not([src], [type='application/json'])").count()).toBe(
      0,
    );
    expect(await sideways(page)).toBe(0);
    expect(await axeFindings(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await savePicture(page, `client-${screen}`);
  },
);
