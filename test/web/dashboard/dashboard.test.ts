import { pino } from "pino";
import { expect, test } from "vitest";
import { type DashboardDeps, openDashboard } from "../../../src/web/dashboard/dashboard.ts";
import { makeReportData } from "../../report/make-report-data.ts";
import { WELL } from "../test-monitor.ts";
import { operations } from "./sample-operations.ts";

function dashboard(deps: Partial<DashboardDeps> = {}, limits?: Parameters<typeof openDashboard>[1]) {
  const read: string[] = [];
  const all: DashboardDeps = {
    log: pino({ enabled: false }),
    readiness: () => WELL,
    async readOperations() {
      read.push("operations");
      return operations();
    },
    async readReport({ start, end }) {
      read.push(`${start} to ${end}`);
      return makeReportData();
    },
    ...deps,
  };
  const opened = openDashboard(all, limits);
  return { read, ask: (query: string) => opened.page(new URLSearchParams(query)), file: opened.report };
}

const DAYS = "from=2026-01-01&to=2026-01-07";

test("concurrent requests for one page read operations and usage once", async () => {
  const { read, ask } = dashboard();
  const pages = await Promise.all([ask(DAYS), ask(DAYS), ask(DAYS)]);
  expect(pages.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(read).toEqual(["operations", "2026-01-01 to 2026-01-07"]);
});

test("an invalid period is refused, and nothing is read", async () => {
  const { read, ask, file } = dashboard();
  expect(await ask("days=1000")).toMatchObject({ status: 400 });
  expect(await file(new URLSearchParams("from=2026-01-01"))).toMatchObject({ status: 400 });
  expect(read).toEqual([]);
});

test("the report file is read for the requested days", async () => {
  const { read, file } = dashboard();
  expect(await file(new URLSearchParams(DAYS))).toMatchObject({ status: 200 });
  expect(read).toEqual(["2026-01-01 to 2026-01-07"]);
});

test("while the database can't be reached, the reasons of the worker and of the attempt are shown", async () => {
  const { ask } = dashboard({
    readiness: () => ({ live: true, reasons: ["the database has not answered for 12 s"] }),
    readOperations: () => Promise.reject(new Error("connect ECONNREFUSED")),
  });
  const { status, body } = await ask(DAYS);
  expect(status).toBe(503);
  expect(body).toMatch(/has not answered for 12 s[\s\S]*connect ECONNREFUSED/);
});

test("the reason why the dashboard or the report is not available is logged", async () => {
  const lines: string[] = [];
  const { ask, file } = dashboard({
    log: pino({ level: "warn" }, { write: (line: string) => void lines.push(line) }),
    readOperations: () => Promise.reject(new Error("permission denied for view coverage")),
    readReport: () => Promise.reject(new Error("permission denied for view usage")),
  });
  await ask(DAYS);
  await file(new URLSearchParams(DAYS));
  expect(lines).toMatchObject([
    expect.stringContaining("permission denied for view coverage"),
    expect.stringContaining("permission denied for view usage"),
  ]);
});

test("if the database does not answer within the time limit, the dashboard is not available", async () => {
  const { ask } = dashboard({ readOperations: () => new Promise(() => {}) }, { operationsMs: 50, usageMs: 50 });
  const { status, body } = await ask(DAYS);
  expect(status).toBe(503);
  expect(body).toContain("not read within 0.05 s");
});

test("if reading the usage takes too long, the page shows everything else", async () => {
  const { ask } = dashboard({ readReport: () => new Promise(() => {}) }, { operationsMs: 5_000, usageMs: 50 });
  const { status, body } = await ask(DAYS);
  expect(status).toBe(200);
  expect(body).toContain("The usage could not be read.");
});

test("if only reading the usage fails, the page shows everything else with the reason", async () => {
  const { ask } = dashboard({ readReport: () => Promise.reject(new Error("canceling statement")) });
  const { status, body } = await ask(DAYS);
  expect(status).toBe(200);
  expect(body).toContain("canceling statement");
});
