// The dashboard of a real worker in a real browser, with hostile names and errors from outside.

import { sql } from "kysely";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { waitForRuns } from "../cli/evidence.ts";
import { databaseTest, type ProgramContext } from "../cli/program-context.ts";
import { PROJECT_ID } from "../cli/small-config.ts";
import { STORABLE_NAMES } from "../show/hostile-names.ts";
import { axeFindings } from "./axe.ts";
import { openBrowser, openPage, SCREENS, savePicture, sidewaysOverflow } from "./browser.ts";

const browser = await openBrowser();
const { test, db } = await databaseTest(); // `db` is emptied before each test

/** The hostile names that the service may send. Those of at most 100 characters may also be in a configuration. */
const SENT = STORABLE_NAMES.filter((name) => !/\p{Cc}/u.test(name));
const CONFIGURED = SENT.filter((name) => name.length <= 100);
const [JOB = "", PROJECT = "", FILTER = "", OTHER_JOB = ""] = CONFIGURED;
const REASON = `no: ${SENT.slice(0, 5).join(" ")} ${"and so on ".repeat(50)}`;

/** Starts a worker with two jobs, of which one is paused, and waits for a run in which some slices fail. Returns the address of the dashboard. */
async function startWorker(context: ProgramContext): Promise<string> {
  const records = SENT.map((name, i) => ({
    ...{ model: [name], tags: [name, "tag"], accessor: name, endpoint: "listen", feature_set: ["diarize"] },
    ...{ hours: i + 0.25, total_hours: i + 0.5, requests: i + 1, tokens_in: i },
  }));
  const groupings = ["none", "model", "endpoint", "accessor", "tags"];
  const filters = [{ name: "all" }, { name: FILTER, features: { diarize: true } }];
  const exports = [
    { name: JOB, projects: [PROJECT], window: { days: 3 }, groupings, filters },
    { name: OTHER_JOB, projects: [PROJECT], groupings: ["none"] },
  ];
  const projects = [{ id: PROJECT_ID, name: PROJECT, key: { env: "USAGE_EXPORT_KEY" } }];
  const emulator = await context.setUp({ exports, projects }, { usage: () => records });
  emulator.fault = ({ path }) =>
    path.includes("diarize") && path.includes("model") ? { kind: "answer", status: 400, body: REASON } : undefined;
  await context.run(["jobs", "pause", OTHER_JOB, "--why", REASON]);
  const worker = context.start(["start"]);
  const line = await worker.waitFor("monitor listens");
  await waitForRuns(db, 1);
  return /http:\/\/[^"\s]+/.exec(line)?.[0] ?? "";
}

/** The page of a run has all of its projects, and as many of them failed as in the database. */
async function expectProjectsAsStored(page: Page, runId: string): Promise<void> {
  const { rows: all } = await sql<{ outcome: string }>`
    select case when error is not null or slices_failed + slices_suspect > 0 then 'failed' else 'ok' end as outcome
    from usage_export.run_project where run_id = ${runId}::uuid
  `.execute(db);
  const failed = all.filter(({ outcome }) => outcome === "failed");
  expect(failed.length).toBeGreaterThan(0);
  const rows = page.locator("#projects tbody tr");
  expect(await rows.count()).toBe(all.length);
  expect(await rows.filter({ hasText: "failed" }).count()).toBe(failed.length);
}

const PATHS = ["", "usage", "usage?grouping=tags", "data-health"];

/** The numbers of a chart stand in a script of JSON, which does not run. */
const INLINE_SCRIPTS = 'script:not([src]):not([type="application/json"])';

test("every page shows hostile names and errors as mere text", async ({ context }) => {
  const root = `${await startWorker(context)}/`;
  const { page: dataHealth } = await openPage(browser, `${root}data-health`);
  await dataHealth.locator("#runs tbody a").first().click();
  const paths = [...PATHS, dataHealth.url().slice(root.length)];
  const texts: string[] = [];
  for (const [screen, options] of SCREENS) {
    for (const path of paths) {
      const { page, consoleMessages, requests } = await openPage(browser, `${root}${path}`, options);
      await page.waitForLoadState("networkidle");
      expect(consoleMessages).toEqual([]);
      expect(requests.filter((request) => !request.startsWith(root))).toEqual([]);
      expect(await page.locator(`${INLINE_SCRIPTS}, img, iframe, object, embed`).count()).toBe(0);
      if (screen.startsWith("1440"))
        expect({ path, findings: await axeFindings(page) }).toEqual({ path, findings: [] });
      expect({ path, screen, sideways: await sidewaysOverflow(page) }).toEqual({ path, screen, sideways: 0 });
      await savePicture(page, `${path.replace(/=.*/, "") || "overview"}-${screen}`);
      texts.push(...(await page.locator("bdi").allTextContents()));
      // Otherwise all of these pages would stay open until the end of the test.
      await page.context().close();
    }
  }
  const all = texts.join("\n");
  for (const name of [JOB, PROJECT, FILTER, OTHER_JOB, ...SENT.slice(0, 5)]) expect(all).toContain(name);
});

test("the pages show the numbers and errors that are in the database", async ({ context }) => {
  const url = await startWorker(context);
  const { page } = await openPage(browser, url, { viewport: { width: 1440, height: 900 } });

  const { rows: totals } = await sql<{ requests: string; hours: string }>`
    select sum(requests)::text as requests, trim_scale(sum(hours))::text as hours from bi.usage_total
  `.execute(db);
  const figureValue = (name: string) => {
    const figure = page.locator("dl div", { has: page.locator("dt", { hasText: name }) }).first();
    return figure.locator("data").getAttribute("value");
  };
  expect(await figureValue("Requests")).toBe(totals[0]?.requests);
  expect(await figureValue("Hours")).toBe(totals[0]?.hours);
  expect(await page.title()).toBe("Not all is well: Overview, usage-export");

  await page.getByRole("link", { name: "Data health", exact: true }).click();
  const { rows: days } = await sql<{ days: number }>`
    select count(distinct usage_date)::integer as days from bi.coverage where status <> 'complete'
  `.execute(db);
  expect(await page.locator("#gaps .strip").first().getAttribute("aria-label")).toContain(
    `${days[0]?.days} day${days[0]?.days === 1 ? "" : "s"} not complete`,
  );

  const error = page.locator("#runs details").first();
  const whole = error.locator("> bdi");
  expect(await whole.isVisible()).toBe(false);
  await error.locator("summary").click();
  expect(await whole.isVisible()).toBe(true);
  const { rows: runs } = await sql<Readonly<Record<string, string>>>`
    select run_id as "runId", error, requests::text as requests, slices_complete::text as complete,
      slices_planned::text as planned, slices_failed::text as failed, rows_changed::text as rows,
      regexp_replace(round(extract(epoch from finished_at - started_at)) || ' s', '^0 ', 'under 1 ') as took
    from bi.runs where error is not null
  `.execute(db);
  expect(await whole.textContent()).toBe(runs[0]?.error);

  await page.locator("#runs tbody a").first().click();
  await page.waitForLoadState();
  expect(await page.locator("#outcome dd").allInnerTexts()).toEqual([
    ...[expect.any(String), expect.stringContaining("failed"), runs[0]?.took, runs[0]?.requests],
    ...[`${runs[0]?.complete} of ${runs[0]?.planned}, ${runs[0]?.failed} failed`, runs[0]?.rows],
  ]);
  await expectProjectsAsStored(page, runs[0]?.runId ?? "");
});

test("with a configured password, a browser that sends it shows the page", async ({ context }) => {
  const access = { basic: { username: "ops", password: { env: "MONITOR_PASSWORD" } } };
  await context.setUp({ monitor: { port: 0, access } });
  const password = context.newSecret();
  const line = await context.start(["start"], { MONITOR_PASSWORD: password }).waitFor("monitor listens");
  const url = /http:\/\/[^"\s]+/.exec(line)?.[0] ?? "";
  await waitForRuns(db, 1);
  const { page, consoleMessages } = await openPage(browser, url, { httpCredentials: { username: "ops", password } });
  expect(await page.title()).toBe("All is well: Overview, usage-export");
  expect(consoleMessages).toEqual([]);
});
