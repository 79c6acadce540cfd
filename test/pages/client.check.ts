// The script of the pages in a real browser, with a page of made-up usage that the test changes.

import { expect, onTestFinished, test } from "vitest";
import { answerChart } from "../../src/show/answer-chart.ts";
import { copyButton, html, sqlHtml } from "../../src/show/html.ts";
import { contentSecurityPolicy, htmlDocument } from "../../src/show/page.ts";
import { scriptHead } from "../../src/web/assets.ts";
import type { Page as WebPage } from "../../src/web/page.ts";
import { makeAnswer, NOTHING_LACKING } from "../facts/sample-facts.ts";
import { HOSTILE_NAMES } from "../show/hostile-names.ts";
import { testMonitor } from "../web/test-monitor.ts";
import { axeFindings } from "./axe.ts";
import { openBrowser, openPage, SCREENS } from "./browser.ts";

const browser = await openBrowser();

type Breakdown = Readonly<
  Record<"groups", readonly Readonly<{ group: string; hours: string[]; requests: string[] }>[]>
>;

const BREAKDOWN: Breakdown = {
  groups: [
    { group: "nova-3", hours: ["0", "9007199254740993.25", "3"], requests: ["0", "1200", "31"] },
    { group: "nova-2", hours: ["5", "1.5", "0.125"], requests: ["9", "7", "4"] },
  ],
};

function charts({ groups }: Breakdown) {
  const of = (metric: "hours" | "requests", others: string[]) => {
    const named = groups.map(({ group }) => ({ group }));
    const period = { start: "2026-11-18", end: "2026-11-20" };
    const answer = makeAnswer({ period, groups: named, question: { metric }, compared: false, otherByDay: others });
    const days = answer.days.map(({ day }, i) => ({
      day,
      state: (["settling", "final", "incomplete"] as const)[i] ?? "final",
    }));
    const drawn = {
      ...{ ...answer, days, lacking: { ...NOTHING_LACKING, incompleteDays: [period.end] } },
      other: { groups: 12, amount: "1", before: null, change: null },
      groups: answer.groups.map((one, i) => ({ ...one, byDay: [...(groups[i]?.[metric] ?? [])] })),
    };
    const title = `${metric === "hours" ? "Hours" : "Requests"} by day and model`;
    return answerChart(drawn, { id: `${metric}-by-model`, title, kind: "bars", hrefOf: (group) => `?group=${group}` });
  };
  return html`${of("hours", ["0", "0.25", "0"])}${of("requests", ["0", "2", "0"])}`;
}

type Content = {
  readonly title: string;
  /** Left out, the heading is the verdict. */
  readonly verdict?: string;
  /** Undefined if the usage can't be read. */
  readonly breakdown: Breakdown | undefined;
  readonly asOf: string;
};
const CONTENT = { title: "All is well", breakdown: BREAKDOWN, asOf: "02:15:00" };

function pageOf({ title, verdict, breakdown, asOf }: Content): WebPage {
  const body = htmlDocument({
    title: `${title}, usage-export`,
    header: html`${verdict === undefined ? undefined : html`<div id="verdict"><strong>${verdict}</strong></div>`}<h1>${title}</h1><p>as of <time id="as-of">${asOf}</time></p>`,
    sections: [
      ...(breakdown ? [{ id: "usage", title: "Usage by model", body: charts(breakdown) }] : []),
      {
        id: "form",
        title: "Form",
        body: html`<form><label>From <input name="from" type="text" value="a"></label></form>${copyButton("Copy it", "1.50 <b>")}${sqlHtml("select 1")}`,
      },
    ],
    footer: html`<p>End.</p>`,
    served: true,
    head: scriptHead("", true),
  });
  const headers = { "content-security-policy": contentSecurityPolicy({ served: true }) };
  return { status: breakdown ? 200 : 503, contentType: "text/html; charset=utf-8", body, headers, asOf: [asOf] };
}

/** A monitor of which the test changes the page; undefined: it can't show it now. */
async function serve(content: Content = CONTENT) {
  const shown: { content: Content | undefined; asked: number } = { content, asked: 0 };
  const page = async () => {
    shown.asked++;
    return shown.content ? pageOf(shown.content) : { status: 503, contentType: "text/plain", body: "not now" };
  };
  const monitor = await testMonitor({ pages: { "/": page } });
  onTestFinished(() => monitor[Symbol.asyncDispose]());
  return { shown, monitor, url: `${monitor.url}/` };
}

async function open(url: string, options: Parameters<typeof openPage>[2] = {}) {
  const watched = await openPage(browser, url, options);
  onTestFinished(() => watched.page.context().close());
  await watched.page.locator("figure .plot svg").first().waitFor();
  return watched;
}

test("the day under the pointer is shown with its exact amounts, and the arrow keys move along the days", async () => {
  const { url } = await serve();
  const { page, complaints, requests } = await open(url);
  const plot = page.locator("#hours-by-model-chart .plot");
  await plot.hover();
  const tip = page.locator("#hours-by-model-chart .tip");
  await expect.poll(() => tip.innerText()).toContain("2026-11-19");
  expect(await tip.locator("bdi, td").allInnerTexts()).toEqual([
    ...["12 others", "0.25 hours", "nova-2", "1.5 hours", "nova-3", "9,007,199,254,740,993.25 hours"],
  ]);

  await plot.focus();
  await page.keyboard.press("End");
  const said = () => plot.getAttribute("aria-valuetext");
  expect(await said()).toBe("2026-11-20, not complete; nova-2 0.125 hours; nova-3 3 hours");
  await expect.poll(() => tip.innerText()).toContain("2026-11-20, not complete");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  expect(await said()).toBe("2026-11-18; nova-2 5 hours");

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

test("the legend hides a series and shows it again", async () => {
  const { url } = await serve();
  const { page } = await open(url);
  const figure = page.locator("#requests-by-model-chart");
  const button = figure.locator(".legend").getByRole("button", { name: "nova-3" });
  const axis = () => figure.locator(".plot text").allTextContents();
  const all = await axis();
  expect(all).toContain("600");
  await button.click();
  expect(await button.getAttribute("aria-pressed")).toBe("false");
  await expect.poll(axis).not.toContain("600");
  await figure.locator(".plot").focus();
  await page.keyboard.press("End");
  expect(await figure.locator(".plot").getAttribute("aria-valuetext")).toBe(
    "2026-11-20, not complete; nova-2 4 requests",
  );
  await button.press("Enter");
  await expect.poll(axis).toEqual(all);
});

test("a table sorts by a click on a heading, by every digit", async () => {
  const { url } = await serve();
  const { page } = await open(url);
  await page.getByText("Table: hours by day and model").click();
  const table = page.getByRole("group", { name: "Exact hours by day and model" });
  const heading = table.getByRole("columnheader", { name: "nova-3" });
  const days = () => table.locator("tbody time").allInnerTexts();
  await heading.getByRole("button").click();
  expect([await heading.getAttribute("aria-sort"), ...(await days())]).toEqual([
    ...["descending", "2026-11-19", "2026-11-20", "2026-11-18"],
  ]);
  await heading.getByRole("button").press("Enter");
  expect([await heading.getAttribute("aria-sort"), ...(await days())]).toEqual([
    ...["ascending", "2026-11-18", "2026-11-20", "2026-11-19"],
  ]);
});

test("a button copies its exact text", async () => {
  const { url } = await serve();
  const { page } = await open(url, { permissions: ["clipboard-read", "clipboard-write"] });
  await page.getByRole("button", { name: "Copy it" }).click();
  await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toBe("1.50 <b>");
  expect(await page.getByRole("status").allTextContents()).toContain("Copied");
});

test("what has changed appears by itself, and what a person did stays", async () => {
  const { shown, url } = await serve();
  // Without smooth scrolling, which on a busy machine may stand still for some frames and then go on.
  const { page, complaints } = await openPage(browser, "about:blank", { reducedMotion: "reduce" });
  onTestFinished(() => page.context().close());
  await page.clock.install();
  await page.goto(url);
  const figure = page.locator("#hours-by-model-chart");
  await figure.locator(".plot svg").waitFor();

  await figure.locator(".legend").getByRole("button", { name: "nova-3" }).click();
  await page.getByText("Table: hours by day and model").click();
  const table = page.getByRole("group", { name: "Exact hours by day and model" });
  await table.getByRole("button", { name: "nova-2" }).click();
  await page.getByLabel("From").fill("typed");
  await table.getByRole("button", { name: "nova-2" }).focus();
  await page.evaluate(`getSelection().selectAllChildren(document.querySelector("#form-title"))`);
  await page.evaluate("document.querySelector('header').marked = true");
  const scrolled = await page.evaluate("scrollY");

  const groups = BREAKDOWN.groups.map((group) => ({ ...group, hours: ["1", "2", "7.5"], requests: ["4", "5", "6"] }));
  shown.content = { title: "Not all is well", breakdown: { ...BREAKDOWN, groups }, asOf: "02:15:30" };
  await page.clock.fastForward(20_000);
  await expect.poll(() => page.locator("h1").innerText()).toBe("Not all is well");
  expect(await page.getByRole("status").allTextContents()).toContain("Not all is well");
  expect(await page.locator("#as-of").innerText()).toBe("02:15:30");
  expect(await table.locator("tbody tr").first().locator("th, td").allInnerTexts()).toEqual([
    ...["2026-11-20 not complete", "7.5", "7.5", "0"],
  ]);
  expect(await table.getByRole("columnheader", { name: "nova-2" }).getAttribute("aria-sort")).toBe("descending");
  expect(await page.evaluate("document.activeElement.textContent")).toBe("nova-2");
  expect(await page.evaluate("scrollY")).toBe(scrolled);
  expect(await page.evaluate("getSelection().toString()")).toBe("Form");
  expect(
    await page.evaluate("[document.querySelectorAll('body').length, document.querySelector('header').marked]"),
  ).toEqual([1, true]);
  expect(await page.getByText("Table: hours by day and model").locator("..").getAttribute("open")).toBe("");
  expect(await page.getByLabel("From").inputValue()).toBe("typed");
  expect(await figure.locator(".legend").getByRole("button", { name: "nova-3" }).getAttribute("aria-pressed")).toBe(
    "false",
  );
  await figure.locator(".plot").focus();
  await page.keyboard.press("End");
  expect(await figure.locator(".plot").getAttribute("aria-valuetext")).toBe(
    "2026-11-20, not complete; nova-2 7.5 hours",
  );

  // Only the time of the reading has changed.
  shown.content = { ...shown.content, asOf: "02:16:00" };
  await page.clock.fastForward(20_000);
  await expect.poll(() => page.locator("#as-of").innerText()).toBe("02:16:00");
  expect(complaints).toEqual([]);
});

test("while the usage can't be read, charts and focus stay, the page says that it is old, and the verdict is the newest", async () => {
  const good = { ...CONTENT, verdict: "All is well" };
  const { shown, url } = await serve(good);
  const { page } = await openPage(browser, "about:blank");
  onTestFinished(() => page.context().close());
  await page.clock.install();
  await page.goto(url);
  const plot = page.locator("#hours-by-model-chart .plot");
  await plot.locator("svg").waitFor();
  await plot.focus();

  shown.content = { ...good, verdict: "1 thing to look at", breakdown: undefined, asOf: "02:15:30" };
  await page.clock.fastForward(20_000);
  await expect
    .poll(() => page.locator(".live").innerText())
    .toContain("can't show this now (503). What is shown is as of");
  expect(await page.locator("#verdict").innerText()).toBe("1 thing to look at");
  expect(await page.getByRole("status").allTextContents()).toContain("1 thing to look at");
  expect(await plot.locator("svg").count()).toBe(1);
  expect(await page.locator("#as-of").innerText()).toBe("02:15:00");
  expect(await page.evaluate("document.activeElement.className")).toBe("plot");

  // The same page as before the failure: its verdict comes back, too.
  shown.content = good;
  await page.clock.fastForward(40_000);
  await expect.poll(() => page.locator("#verdict").innerText()).toBe("All is well");
  expect(await page.locator(".live").textContent()).toBe("");
});

test("a page says that it is old while the worker does not answer, and stops saying so", async () => {
  const { shown, monitor, url } = await serve();
  const { page } = await openPage(browser, "about:blank");
  onTestFinished(() => page.context().close());
  await page.clock.install();
  await page.goto(url);
  const note = page.locator(".live");
  shown.content = undefined;
  await page.clock.fastForward(20_000);
  await expect.poll(() => note.innerText()).toContain("can't show this now (503)");
  shown.content = CONTENT;
  await page.clock.fastForward(40_000);
  await expect.poll(() => note.textContent()).toBe("");
  await monitor[Symbol.asyncDispose]();
  await page.clock.fastForward(20_000);
  await expect
    .poll(() => note.innerText())
    .toMatch(/The worker does not answer\. What is shown is as of \d\d:\d\d:\d\d UTC\./);
});

test("a page that nobody looks at asks for nothing", async () => {
  const { shown, url } = await serve();
  const { page } = await openPage(browser, "about:blank");
  onTestFinished(() => page.context().close());
  await page.clock.install();
  await page.goto(url);
  await page.locator(".plot svg").first().waitFor();
  await page.evaluate(`Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true })`);
  await page.evaluate(`document.dispatchEvent(new Event("visibilitychange"))`);
  const asked = shown.asked;
  await page.clock.fastForward(120_000);
  expect(shown.asked).toBe(asked);
  await page.evaluate(`delete document.visibilityState`);
  await page.evaluate(`document.dispatchEvent(new Event("visibilitychange"))`);
  await expect.poll(() => shown.asked).toBe(asked + 1);
});

test("without script there is a table in place of each chart, and no button that does nothing", async () => {
  const { url } = await serve();
  const { page, complaints } = await openPage(browser, url, { javaScriptEnabled: false });
  onTestFinished(() => page.context().close());
  await page.getByText("Table: hours by day and model").click();
  expect(await page.getByRole("group", { name: "Exact hours by day and model" }).innerText()).toContain("1.5");
  expect(await page.getByRole("button").count()).toBe(0);
  expect(complaints).toEqual([]);
});

test.each(SCREENS)(
  "at %s hostile names stay text in charts, legends and tables, and axe finds nothing",
  async (_, options) => {
    const groups = HOSTILE_NAMES.slice(0, 8).map((group, i) => ({
      ...{ group, hours: ["1", String(i + 1), "3"], requests: ["1", "2", String(i + 1)] },
    }));
    const { url } = await serve({ ...CONTENT, breakdown: { ...BREAKDOWN, groups } });
    const { page, complaints } = await open(url, options);
    const plot = page.locator("#hours-by-model-chart .plot");
    await plot.focus();
    await page.keyboard.press("Home");
    const names = await page.locator("#hours-by-model-chart .tip bdi").allTextContents();
    expect(names).toEqual([...HOSTILE_NAMES.slice(0, 8)].reverse());
    expect(await page.locator("#hours-by-model-chart .legend bdi").allTextContents()).toEqual(["12 others", ...names]);
    expect(await page.locator("img, iframe, object, embed, script:not([src])").count()).toBe(0);
    expect(await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")).toBe(0);
    expect(await axeFindings(page)).toEqual([]);
    expect(complaints).toEqual([]);
    if (process.env.PICTURES !== undefined) {
      await page.screenshot({
        fullPage: true,
        path: `${process.env.PICTURES}/client-${_.replaceAll(/\W+/g, "-")}.png`,
      });
    }
  },
);
