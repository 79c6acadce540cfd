import { expect, test } from "vitest";
import type { Gap } from "../../../src/facts/completeness.ts";
import { PAGES, type PageName } from "../../../src/web/dashboard/frame.ts";
import { invalidPage, type PageData, unavailablePage } from "../../../src/web/dashboard/pages.ts";
import { BEFORE, makeAnswer, makeCoverage, NOTHING_LACKING, PERIOD } from "../../facts/sample-facts.ts";
import { jobLine, makeBudgetUse, NOW, rotationLine, runLine } from "../../health/sample-health-state.ts";
import { keyLine, pageData, pageOf, rotationKeys } from "./sample-pages.ts";

const HOSTILE = `<script>alert("1")</script>'"><img src=x onerror=alert(2)>\u202Eevil 🦊 ${"x".repeat(500)}`;
const OWN_PAGES = Object.keys(pageData()) as (keyof PageData)[];

/** The visible text, on one line. */
function textOf({ body }: { readonly body: string }): string {
  const visible = body.replace(/^[\s\S]*<body>/, "").replaceAll(/<svg[\s\S]*?<\/svg>/g, "");
  return visible.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");
}

test.each<[keyof PageData, readonly string[]]>([
  ["overview", ["In short", "Hours by day and model", "Models", "API keys", "Tags"]],
  ["quality", ["Gaps", "Coverage", "Open days", "Reconciliation", "Restatements"]],
  ["jobs", ["Jobs", "Runs"]],
  ["run", ["Outcome", "Projects"]],
  ["keys", ["Keys by rotation", "Events"]],
])("the page %s has its sections %j, the verdict and a link to every page", (page, sections) => {
  const { status, body } = pageOf(page);
  expect(status).toBe(200);
  expect(body).toMatch(/<title>All is well: [^<]*, usage-export<\/title>/);
  expect([...body.matchAll(/<h2[^>]*>([^<]*)</g)].map(([, title]) => title)).toEqual(sections);
  expect(body).toContain("Nothing is due yet.");
  const root = page === "run" ? "../" : "./";
  const navigation = /<nav[\s\S]*?<\/nav>/.exec(body)?.[0] ?? "";
  const links = [...navigation.matchAll(/href="([^"]*)"/g)].map(([, href]) => href);
  expect(links).toEqual(["", "usage", "quality", "jobs", "keys"].map((path) => `${root}${path}`));
  expect(body.match(/aria-current="page"/g)).toHaveLength(1);
});

test("the pages show jobs, runs and keys in words", () => {
  expect(textOf(pageOf("jobs"))).toContain(
    "nightly export at 15 2 * * * Europe/Vienna ok 2026-03-10 01:15 schedule 2026-03-11 01:15",
  );
  expect(textOf(pageOf("jobs", { runs: [runLine()] }))).toContain(
    "2026-03-10 01:15 nightly export, schedule ok 42 s 12 60 of 60 12,345",
  );
  expect(textOf(pageOf("run"))).toContain("production failed the service answered 503 2026-03-10 01:15 12 12 10 0 2 0");
  expect(textOf(pageOf("keys"))).toContain("11111111-2222-3333-4444-555555555555 active 12 of 30 days 2026-03-09 no");
  expect(textOf(pageOf("keys"))).toContain("activated exporter 11111111-2222-3333-4444-555555555555 worker node-1");
  expect(textOf(pageOf("quality"))).toContain("No day that is due is missing or failed.");
});

test("the page of jobs names the keys whose calls the service paused", () => {
  expect(textOf(pageOf("jobs"))).not.toContain("paused");
  const callPauses = Array.from({ length: 22 }, (_, i) => ({ key: `env KEY_${i}`, until: NOW }));
  expect(textOf(pageOf("jobs", {}, { health: { callPauses: callPauses.slice(0, 1) } }))).toContain(
    "paused Calls are paused with the key of env KEY_0 until 2026-03-10 06:00 , as the service asked.",
  );
  expect(textOf(pageOf("jobs", {}, { health: { callPauses } }))).toContain(
    "env KEY_19 until 2026-03-10 06:00 , 2 other keys ( usage-export status names each)",
  );
});

test("navigation and alerts keep the chosen days and the project", () => {
  const view = { project: "a&b", period: { start: "2026-03-01", end: "2026-03-02", live: false, name: undefined } };
  const { body } = pageOf("keys", {}, { view, health: { slices: { complete: 0, suspect: 0, failed: 0, missing: 1 } } });
  expect(body).toContain('href="./quality?from=2026-03-01&amp;to=2026-03-02&amp;project=a%26b"');
  expect(body).toContain('href="./quality?from=2026-03-01&amp;to=2026-03-02&amp;project=a%26b#gaps"');
});

test("a ranked group leads to the usage of that group alone, of the same days; sets are chips, and a group that is zero is left out", () => {
  const period = { start: "2026-03-01", end: "2026-03-02", live: false, name: undefined };
  const groups = [{ group: "key 1" }, { group: null }, { group: "" }, { group: "idle", amount: "0" }];
  const splits = [
    makeAnswer({ groups: [{ group: '["nova-3","aura-2"]' }] }),
    makeAnswer({ question: { grouping: "accessor" }, groups }),
  ];
  const { body } = pageOf("overview", { splits }, { view: { period, compare: "year", project: "mine" } });
  const days = "./usage?from=2026-03-01&to=2026-03-02&compare=year&project=mine";
  const links = [...(body.split('<section id="top-accessor"')[1] ?? "").matchAll(/ href="([^"#]*usage[^"]*)"/g)];
  expect(links.map(([, href]) => href?.replaceAll("&amp;", "&"))).toEqual([
    `${days}&grouping=accessor&metric=hours`,
    `${days}&grouping=accessor&metric=hours&group=key+1`,
    `${days}&grouping=accessor&metric=hours&no-value=yes`,
  ]);
  expect(body).toContain('<span class="chips"><span><bdi>nova-3</bdi></span> <span><bdi>aura-2</bdi></span> </span>');
  expect(body).not.toContain("idle");
});

test("where a day of either period was not read, no page shows a change, but the reason from both sides", () => {
  expect(textOf(pageOf("overview"))).toContain("+7.7%");
  const lacking = { ...NOTHING_LACKING, unreadDays: [PERIOD.end], incompleteDaysBefore: [BEFORE.start, BEFORE.end] };
  const answer = { compared: false, complete: false, lacking };
  const splits = [makeAnswer({ ...answer, groups: [{ group: "nova-3" }] })];
  const alone = textOf(pageOf("overview", { total: makeAnswer(answer), splits }));
  expect(alone).not.toMatch(/[+-]\d[\d.]*%|rose|fell/);
  expect(alone).toContain(
    `Not compared with Jan 13 – Feb 9, 2026: in this period 1 day was not read (${PERIOD.end}); in the period before 2 days are not complete (${BEFORE.start}, ${BEFORE.end}).`,
  );
});

test("budgets are bars of one scale on the overview, the fullest first", () => {
  const budgets = ["5", "120.5", null, "80"].map((percent, i) =>
    makeBudgetUse({ name: `b${i}`, percent, forecast: null, forecastPercent: null }),
  );
  const { body } = pageOf("overview", {}, { health: { budgets } });
  expect(textOf({ body })).toMatch(/ b1 .*· 120%.* b3 .*· 80%.* b0 .*· 5%.* b2 /);
  const widths = [...body.matchAll(/class="used" width="([^"]*)"/g)].map(([, width]) => width);
  expect(widths).toEqual(["98.0%", "65.1%", "4.1%", "0.0%"]);
});

test("the overview says what a list has not that its figures have", () => {
  const lacking = {
    ...NOTHING_LACKING,
    unreadDays: [PERIOD.start],
    projectsLeftOut: ["staging"],
    projectsLeftOutCount: 1,
  };
  const splits = [
    makeAnswer({ question: { grouping: "accessor" }, groups: [{ group: "k" }], lacking, compared: false }),
  ];
  expect(textOf(pageOf("overview", { splits }))).toContain(
    "Not read by API key, so not in these figures: 1 day of this period; staging .",
  );
});

test("failed slices are grouped by their cause", () => {
  const cause = {
    ...{ code: "unavailable", project: undefined, isBillingRefused: false, error: "connect ECONNREFUSED" },
    ...{ since: NOW, slices: 1200, slicesWithNumbers: 7, series: 6, nextTry: undefined },
  };
  expect(textOf(pageOf("jobs", { runs: [] }, { health: { causes: [cause] } }))).toContain(
    "unavailable connect ECONNREFUSED 2026-03-10 06:00 1,200 7 6 no retry",
  );
});

test("a gap is a row with its days, its reason and its series", () => {
  const series = { key: "key", project: "production", grouping: "model", filter: "diarized" };
  const gaps: Gap[] = [{ ...series, status: "failed", from: "2026-03-01", to: "2026-03-02", error: "answered 400" }];
  const { body } = pageOf("quality", {}, { health: { gaps } });
  expect(textOf({ body })).toContain(
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
  const text = textOf(pageOf("quality", {}, { health: { gaps } }));
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
  expect(textOf(pageOf("quality", {}, { health: { gaps } }))).toContain("And 3 more: see the view");
});

test("every anchor that a page links to exists once, on the page that the link leads to", () => {
  const health = {
    slices: { complete: 1, missing: 1, failed: 1, suspect: 1 },
    rotations: [rotationLine({ failedAttempts: 1 })],
    jobs: [jobLine({ overdueSince: NOW })],
  };
  const ids = (page: keyof PageData) =>
    [...pageOf(page, undefined, { health }).body.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
  const paths = new Map(Object.entries(PAGES).map(([page, { path }]) => [path.slice(1), page as PageName]));
  for (const page of OWN_PAGES) {
    expect(new Set(ids(page)).size).toBe(ids(page).length);
    const { body } = pageOf(page, undefined, { health });
    const links = [...body.matchAll(/ href="(?:\.\.?\/)*([^"#?]*)[^"#]*#([^"]*)"/g)];
    expect(links.length).toBeGreaterThan(2);
    for (const [, path = "", id] of links) expect(ids(paths.get(path) as keyof PageData)).toContain(id);
  }
});

test("a page of the newest days is kept up to date, also without script; a page of fixed dates is not", () => {
  const fixed = { period: { start: "2026-02-08", end: "2026-03-09", live: false, name: undefined } };
  const refresh = '<noscript><meta http-equiv="refresh" content="60"></noscript>';
  expect(pageOf("overview").body).toContain(refresh);
  expect(pageOf("overview").body).toContain('<a href="./?from=2026-02-10&amp;to=2026-03-09">Keep these days</a>');
  expect(pageOf("overview", {}, { view: fixed }).body).not.toContain(refresh);
  expect(pageOf("jobs", { runs: [] }, { view: fixed }).body).toContain(refresh);
});

test("the content security policy is the same in the header and in the page, and allows nothing from elsewhere", () => {
  const { headers, body } = pageOf("overview");
  const policy = headers?.["content-security-policy"] ?? "";
  const inPage = /Content-Security-Policy" content="([^"]*)"/.exec(body)?.[1];
  expect(policy).toBe(`${inPage}; frame-ancestors 'none'`);
  expect(policy).toMatch(
    /^default-src 'none'; style-src 'sha256-[^']*'; base-uri 'none'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'$/,
  );
});

test("names and errors from outside are shown unchanged and can't become markup", () => {
  const gap: Gap = {
    ...{ key: "key", project: HOSTILE, grouping: "model", filter: HOSTILE, status: "failed" },
    ...{ from: "2026-03-01", to: "2026-03-01", error: HOSTILE },
  };
  const paused = jobLine({ job: HOSTILE, paused: { at: NOW, why: HOSTILE, by: HOSTILE } });
  const readiness = { live: true, reasons: [HOSTILE] };
  const around = { health: { jobs: [paused], gaps: [gap] }, readiness, view: { project: HOSTILE } };
  const run = runLine({ job: HOSTILE, status: "failed", error: HOSTILE });
  const { projects: [project] = [] } = pageData().run ?? expect.fail("expected a run");
  const hostile = { ...(project ?? expect.fail("expected a project")), project: HOSTILE, error: HOSTILE };
  const key = keyLine({ apiKeyId: HOSTILE, comment: HOSTILE, note: HOSTILE });
  const event = { at: NOW, rotation: HOSTILE, key: HOSTILE, event: HOSTILE, actor: HOSTILE, reason: HOSTILE };
  const pages = [
    pageOf("overview", {}, around),
    pageOf("quality", {}, around),
    pageOf("jobs", { runs: [run] }, around),
    pageOf("run", { run, projects: [hostile] }, around),
    pageOf(
      "keys",
      {
        rotations: [rotationKeys({ rotation: HOSTILE, maxAgeDays: null, warnings: [HOSTILE], keys: [key] })],
        events: [event],
      },
      around,
    ),
    unavailablePage("run", [HOSTILE]),
    invalidPage("overview", HOSTILE),
  ];
  for (const { body } of pages) {
    expect(body).not.toMatch(/<script(?! type="module" src="(?:\.\.\/)?assets\/app-\w+\.js">)|<img/i);
    expect(body).toContain(HOSTILE.replaceAll(/[<>"']/g, (char) => `&${NAMES[char]};`));
  }
});

const NAMES: Readonly<Record<string, string>> = { "<": "lt", ">": "gt", '"': "quot", "'": "#39" };

test("a long error is folded, with the whole text inside", () => {
  const error = `the service refused the call: ${"and so on ".repeat(100)}the end`;
  expect(pageOf("jobs", { runs: [runLine({ status: "failed", error })] }).body).toMatch(
    /<details><summary><bdi>the service refused the call: [^<]*…<\/bdi><\/summary><bdi>[^<]*the end<\/bdi>/,
  );
});

test("a list has links to its other pages, which keep what it is narrowed to", () => {
  const runs = Array.from({ length: 50 }, () => runLine());
  const view = { more: [["outcome", "failed"] as const, ["page", "2"] as const] };
  const { body } = pageOf("jobs", { runs, hasMore: true }, { view });
  expect(body).toContain('<a href="./jobs?outcome=failed">Previous page</a> · page 2');
  expect(body).toContain('<a href="./jobs?outcome=failed&amp;page=3">Next page</a>');
  expect(body).toContain('<option value="failed" selected>failed</option>');
  expect(pageOf("jobs", { runs, hasMore: false }).body).not.toContain("page=");
});

test("an active key over its maximum age is marked; a draining key is not", () => {
  const keys = [keyLine({ ageDays: 31 }), keyLine({ state: "draining", ageDays: 61 })];
  const { body } = pageOf("keys", { rotations: [rotationKeys({ keys })] });
  expect(body).toContain('<span class="state warn">31 of 30 days</span>');
  expect(body).toContain(">61 days</td>");
});

test("rotations that are not configured any more are folded, unless they need a person or were searched for", () => {
  const gone = rotationKeys({ rotation: "exporter, projects that are gone", isOfMany: true, maxAgeDays: null });
  const folded =
    /<details>\s*<summary>1 rotation not configured any more<\/summary>\s*<h3><bdi>exporter, projects that are gone/;
  expect(pageOf("keys", { rotations: [rotationKeys(), gone] }).body).toMatch(folded);
  const warned = { ...gone, warnings: ["a key has no owner"] };
  expect(pageOf("keys", { rotations: [rotationKeys(), warned] }).body).not.toMatch(folded);
  const view = { more: [["search", "gone"] as const] };
  expect(pageOf("keys", { rotations: [rotationKeys({ keys: [] }), gone] }, { view }).body).not.toMatch(folded);
});

test("of a rotation with more keys than a page shows, the keys are counted by state", () => {
  const counts = { active: 4_990, pending: 0, draining: 9, orphan: 1 };
  const { body } = pageOf("keys", { rotations: [rotationKeys({ isOfMany: true, counts })], found: 5_000 });
  expect(textOf({ body })).toContain("5,000 keys: 4,990 active, 9 draining, 1 orphan; 1 of them on this page.");
  expect(body).toContain('<a href="./keys?page=2">Next page</a>');
});

test("a page beyond the end of a list is its last one, with a link to the one before", () => {
  const view = { more: [["page", "99"] as const] };
  for (const { body } of [pageOf("run", { found: 300 }, { view }), pageOf("keys", { found: 300 }, { view })]) {
    expect(body).toMatch(/page=2">Previous page<\/a> · page 3<\/p>/);
  }
});

test("runs narrowed to nothing, or a page after their last, lead back to where there are some", () => {
  const none = { runs: [], hasMore: false };
  const beyond = pageOf("jobs", none, {
    view: {
      more: [
        ["outcome", "failed"],
        ["page", "9"],
      ],
    },
  });
  expect(textOf(beyond)).toContain("The list ends before page 9. Show its first page");
  expect(beyond.body).toContain('<a href="./jobs?outcome=failed">Show its first page</a>');
  const narrowed = pageOf("jobs", none, { view: { more: [["outcome", "failed"]] } });
  expect(narrowed.body).toContain('There are no such runs. <a href="./jobs">Show all runs</a>');
});

test("a cell of the coverage map leads to its usage, to its row below, or to why it is not complete", () => {
  const [series] = makeCoverage().series;
  if (!series) throw new Error("expected a series");
  const period = { start: "2026-03-07", end: "2026-03-09" };
  const statuses = { "2026-03-07": "complete", "2026-03-08": "failed" } as const;
  const shown = { ...series, project: "a & b", filter: "diarized-listen", statuses };
  const mapOf = (coverage: Parameters<typeof makeCoverage>[0]) => {
    const { body } = pageOf("quality", { coverage: makeCoverage({ period, series: [shown], ...coverage }) });
    const [, map = ""] = /<table class="heat[\s\S]*?<tbody>([\s\S]*?)<\/tbody>/.exec(body) ?? [];
    return [...map.matchAll(/href="([^"]*)"/g)].map(([, href]) => href);
  };
  const usage =
    "./usage?from=2026-03-07&amp;to=2026-03-07&amp;project=a+%26+b&amp;grouping=model&amp;filter=diarized-listen";
  expect(mapOf({ gaps: [] })).toEqual([
    usage,
    "./quality?from=2026-03-08&amp;to=2026-03-08&amp;project=a+%26+b#coverage",
  ]);
  const gap = { ...shown, start: "2026-03-08", end: "2026-03-08", status: "failed" as const, error: "503" };
  expect(mapOf({ gaps: [gap] })).toEqual([usage, "#gap-1"]);
});

test("before the first export, the overview says what to do", () => {
  const available = { groupings: [], filters: [], currencies: [] };
  const total = makeAnswer({ projectCount: 0, available });
  expect(textOf(pageOf("overview", { total }))).toContain(
    "There are no numbers yet. No job has read any usage. To read it now, run usage-export export",
  );
  const { body } = pageOf("overview", { total }, { health: { jobs: [] } });
  expect(body).toContain("<title>No job is configured: Overview, usage-export</title>");
});

test("if the database can't be reached, a page shows the reason and is refreshed", () => {
  const { status, headers, body } = unavailablePage("overview", ["connect ECONNREFUSED"]);
  expect(status).toBe(503);
  expect(headers).toMatchObject({ refresh: "10", "retry-after": "10" });
  expect(textOf({ body })).toContain("The state of the jobs can't be read now. connect ECONNREFUSED");
});

test("the page for an invalid period shows the reason and a way back", () => {
  const { status, body } = invalidPage("quality", "expected both from and to");
  expect(status).toBe(400);
  expect(textOf({ body })).toContain("This can't be shown. expected both from and to");
  expect(body).toContain('<a href="./quality">Show the newest days</a>');
});
