import { expect, test } from "vitest";
import type { Gap } from "../../../src/db/health.ts";
import {
  type DashboardContent,
  dashboardPage,
  invalidQueryPage,
  reportFilePage,
  unavailablePage,
  usageContent,
} from "../../../src/web/dashboard/pages.ts";
import { jobLine, NOW, runLine } from "../../health/sample-health-state.ts";
import { makeReportData } from "../../report/make-report-data.ts";
import { WELL } from "../test-monitor.ts";
import { keyLine, operations } from "./sample-operations.ts";

const HOSTILE = `<script>alert("1")</script>'"><img src=x onerror=alert(2)>\u202Eevil 🦊 ${"x".repeat(500)}`;

const USAGE = { ok: true, value: usageContent(makeReportData()) } as const;
const PERIOD = { start: "2026-02-08", end: "2026-03-09", live: true };

function shown(part: Partial<DashboardContent> = {}): DashboardContent {
  return { period: PERIOD, operations: operations(), usage: USAGE, readiness: WELL, ...part };
}

/** The visible text, on one line. */
function textOf(body: string): string {
  const visible = body.replace(/^[\s\S]*<body>/, "").replaceAll(/<svg[\s\S]*?<\/svg>/g, "");
  return visible.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");
}

test("one page shows jobs, runs, keys and gaps, and below them the usage of the period", () => {
  const { status, body } = dashboardPage(shown());
  const text = textOf(body);
  expect(status).toBe(200);
  expect(body).toContain("<title>All is well, usage-export as of 2026-03-10 06:00:30 UTC</title>");
  expect(text).toContain("nightly export at 15 2 * * * Europe/Vienna ok 2026-03-10 01:15 schedule 2026-03-11 01:15");
  expect(text).toContain("2026-03-10 01:15 export nightly , schedule ok 60 of 60 12,345 42 s");
  expect(text).toContain("11111111-2222-3333-4444-555555555555 active 12 of 30 days 2026-03-09 no");
  expect(text).toContain("No day that is due is missing or failed.");
  expect(text).toContain("Usage, 2026-02-08 to 2026-03-09");
  expect(text).toContain("In short");
});

test("a gap is a row with its days, its reason and its series", () => {
  const series = { key: "key", project: "production", grouping: "model", filter: "diarized" };
  const gaps: Gap[] = [{ ...series, status: "failed", from: "2026-03-01", to: "2026-03-02", error: "answered 400" }];
  const { body } = dashboardPage(shown({ operations: operations({ gaps }) }));
  expect(textOf(body)).toContain(
    "Days Status Series 2026-03-01 to 2026-03-02 failed answered 400 production · model · diarized",
  );
  const cells = /<section id="gaps"[\s\S]*?<tbody>([\s\S]*?)<\/tbody>/.exec(body)?.[1]?.match(/<(?:th|td)[ >]/g);
  expect(cells).toHaveLength(3);
});

test("the same gap in several series, as after an outage, is one row with its reason once", () => {
  const gaps = ["model", "tags", "none"].map(
    (grouping): Gap => ({
      ...{ key: grouping, project: "production", grouping, filter: "all", status: "failed" },
      ...{ from: "2026-03-01", to: "2026-03-02", error: "connect ECONNREFUSED" },
    }),
  );
  const text = textOf(dashboardPage(shown({ operations: operations({ gaps }) })).body);
  expect(text.match(/ECONNREFUSED/g)).toHaveLength(1);
  expect(text).toMatch(/3 series production · model production · tags production · total/);
});

test("only the newest gaps are listed, and the others are counted", () => {
  const gap = { key: "key", project: "p", grouping: "model", filter: "all", status: "missing" } as const;
  const gaps = Array.from({ length: 53 }, (_, i) => ({
    ...gap,
    from: "2026-03-01",
    to: "2026-03-01",
    error: `no ${i}`,
  }));
  expect(textOf(dashboardPage(shown({ operations: operations({ gaps }) })).body)).toContain("And 3 more: see the view");
});

test("every anchor that the page links to exists once", () => {
  const slices = { complete: 1, missing: 1, failed: 1, suspect: 1 };
  const rotations = [{ rotation: "exporter", maxAgeDays: 30, warnings: ["no"], keys: [] }];
  const jobs = [jobLine({ overdueSince: NOW })];
  const { body } = dashboardPage(shown({ operations: operations({ slices, rotations, jobs }) }));
  const ids = [...body.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
  const links = [...body.matchAll(/ href="#([^"]*)"/g)].map(([, id]) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toEqual(expect.arrayContaining(links));
  expect(new Set(links)).toEqual(new Set([...links, "jobs", "runs", "gaps", "keys", "usage"]));
});

test("a page of the newest days is kept up to date, also without script; a page of fixed dates is not", () => {
  const refresh = '<noscript><meta http-equiv="refresh" content="60"></noscript>';
  expect(dashboardPage(shown()).body).toContain(refresh);
  expect(dashboardPage(shown()).body).toContain('<a href="./?from=2026-02-08&amp;to=2026-03-09">keep these days</a>');
  expect(dashboardPage(shown({ period: { ...PERIOD, live: false } })).body).not.toContain(refresh);
});

test("the content security policy is the same in the header and in the page, and allows nothing from elsewhere", () => {
  const { headers, body } = dashboardPage(shown());
  const policy = headers?.["content-security-policy"] ?? "";
  const inPage = /Content-Security-Policy" content="([^"]*)"/.exec(body)?.[1];
  expect(policy).toBe(`${inPage}; frame-ancestors 'none'`);
  expect(policy).toMatch(
    /^default-src 'none'; style-src 'sha256-[^']*'; base-uri 'none'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'$/,
  );
});

test("names and errors from outside are shown unchanged and can't become markup", () => {
  const hostile = operations({
    jobs: [jobLine({ job: HOSTILE, paused: { at: NOW, why: HOSTILE, by: HOSTILE } })],
    runs: [runLine({ job: HOSTILE, status: "failed", error: HOSTILE })],
    gaps: [
      {
        ...{ key: "key", project: HOSTILE, grouping: "model", filter: HOSTILE, status: "failed" },
        ...{ from: "2026-03-01", to: "2026-03-01", error: HOSTILE },
      },
    ],
    rotations: [
      {
        ...{ rotation: HOSTILE, maxAgeDays: null, warnings: [HOSTILE] },
        keys: [keyLine({ apiKeyId: HOSTILE, comment: HOSTILE, note: HOSTILE })],
      },
    ],
  });
  const readiness = { live: true, reasons: [HOSTILE] };
  const usage = { ok: false, error: new Error(HOSTILE) } as const;
  const pages = [
    dashboardPage(shown({ operations: hostile, readiness })),
    dashboardPage(shown({ operations: hostile, usage, readiness })),
    unavailablePage([HOSTILE]),
    invalidQueryPage(HOSTILE),
  ];
  for (const { body } of pages) {
    expect(body).not.toMatch(/<script(?! type="module" src="assets\/app-\w+\.js">)|<img/i);
    expect(body).toContain(HOSTILE.replaceAll(/[<>"']/g, (char) => `&${NAMES[char]};`));
  }
});

const NAMES: Readonly<Record<string, string>> = { "<": "lt", ">": "gt", '"': "quot", "'": "#39" };

test("a long error is folded, with the whole text inside", () => {
  const error = `the service refused the call: ${"and so on ".repeat(100)}the end`;
  const { body } = dashboardPage(shown({ operations: operations({ runs: [runLine({ status: "failed", error })] }) }));
  expect(body).toMatch(
    /<details><summary><bdi>the service refused the call: [^<]*…<\/bdi><\/summary><bdi>[^<]*the end<\/bdi>/,
  );
});

test("only the newest runs are shown, and the others are folded", () => {
  const runs = Array.from({ length: 50 }, () => runLine());
  expect(textOf(dashboardPage(shown({ operations: operations({ runs }) })).body)).toContain("40 runs before these");
});

test("an active key over its maximum age is marked; a draining key is not", () => {
  const keys = [keyLine({ ageDays: 31 }), keyLine({ state: "draining", ageDays: 61 })];
  const rotations = [{ rotation: "exporter", maxAgeDays: 30, warnings: [], keys }];
  const { body } = dashboardPage(shown({ operations: operations({ rotations }) }));
  expect(body).toContain('<span class="state warn">31 of 30 days</span>');
  expect(body).toContain(">61 days</td>");
});

test("if the usage can't be read, the rest of the page is shown", () => {
  const usage = { ok: false, error: new Error("not read within 5 s") } as const;
  const { status, body } = dashboardPage(shown({ usage }));
  expect(status).toBe(200);
  expect(textOf(body)).toContain("The usage could not be read. not read within 5 s : choose fewer days, or try again.");
  expect(textOf(body)).toContain("nightly export at");
});

test("if the database can't be reached, a page shows the reason and is refreshed", () => {
  const { status, headers, body } = unavailablePage(["connect ECONNREFUSED"]);
  expect(status).toBe(503);
  expect(headers).toMatchObject({ refresh: "10", "retry-after": "10" });
  expect(textOf(body)).toContain("The state of the jobs can't be read now. connect ECONNREFUSED");
});

test("the page for an invalid period shows the reason and a form to choose other days", () => {
  const { status, body } = invalidQueryPage("expected both from and to");
  expect(status).toBe(400);
  expect(textOf(body)).toContain("These days can't be shown. expected both from and to");
  expect(body).toContain('<form action="./" method="get">');
});

test("the report file has its days in its name", () => {
  const { headers, body } = reportFilePage(makeReportData());
  expect(headers).toMatchObject({ "content-disposition": 'attachment; filename="usage-2026-10-22-2026-11-20.html"' });
  expect(body).toContain("<h1>Usage report</h1>");
});
