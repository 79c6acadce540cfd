import { expect, test } from "vitest";
import { scheduleText } from "../../../src/web/dashboard/jobs-sections.ts";
import { invalidPage, type PageData, unavailablePage } from "../../../src/web/dashboard/pages.ts";
import { PAGES, type PageName } from "../../../src/web/url.ts";
import { makeAnswer, makeCoverage, NOTHING_LACKING, PERIOD } from "../../facts/sample-facts.ts";
import { makeBudget, makeJob, makeRotation, makeRun, NOW } from "../../health/sample-health-state.ts";
import { keyLine, pageData, pageOf, rotationKeys, textOf } from "./sample-pages.ts";

const HOSTILE = `<script>alert("1")</script>'"><img src=x onerror=alert(2)>\u202Eevil 🦊 ${"x".repeat(500)}`;

// PERIOD is 2026-02-10 to 2026-03-09, and NOW 06:00 on the day after it.
const GAP = { grouping: "model", filter: "all", start: PERIOD.end, end: PERIOD.end, quality: "missing" as const };

test.each<[keyof PageData, readonly string[]]>([
  ["overview", ["In short", "Hours by day and model", "Models", "API keys", "Tags"]],
  ["health", ["Projects", "Jobs", "Runs", "API keys"]],
  ["run", ["Outcome", "12 projects"]],
])("the page %s has its sections %j, the verdict and a link to every page", (page, sections) => {
  const { status, body } = pageOf(page);
  expect(status).toBe(200);
  expect(body).toMatch(/<title>All is well: [^<]*, usage-export<\/title>/);
  expect([...body.matchAll(/<h2[^>]*>([^<]*)</g)].map(([, title]) => title)).toEqual(sections);
  expect(body).toContain("Nothing is missing.");
  expect(body.includes('<div class="toolbar">')).toBe(page !== "run");
  const navigation = /<nav[\s\S]*?<\/nav>/.exec(body)?.[0] ?? "";
  const links = [...navigation.matchAll(/href="([^"]*)"/g)].map(([, href]) => href);
  expect(links).toEqual(["./", "./usage", "./data-health"]);
  expect(body.match(/aria-current="page"/g)).toHaveLength(1);
});

test("Data health and the page of a run show jobs, runs, keys and days", () => {
  const text = textOf(pageOf("health"));
  expect(pageOf("health").body).toContain('<a href="./usage?project=project-0"><bdi title="production">');
  expect(text).toContain("nightly export, every day 02:15 (Europe/Vienna)");
  expect(text).toContain("2026-03-10 01:15 nightly export, on schedule ok 42 s 12 all 60 12,345");
  expect(text).toContain("exporter in 18 days 11111111-2222-3333-4444-555555555555 12 of 30 days 2026-03-09 1 active");
  expect(text).toContain("exporter 11111111-2222-3333-4444-555555555555 activated");
  expect(text).toContain("production none 2026-03-09 2026-03-10 02:15 ");
  expect(textOf(pageOf("run"))).toContain(" Outcome ok Took 42 s Requests 12 Readings all 60 Rows changed 12,345 ");
  expect(textOf(pageOf("run"))).toContain(
    "production failed the service answered 503 2026-03-10 01:15 12 10 of 12, 2 failed 0",
  );
  const counted = makeRun({ complete: 45, undated: 1, failed: 2, suspect: 3, stale: 4 });
  expect(textOf(pageOf("run", { run: counted }))).toContain(
    " 45 of 60, 1 without a date, 2 failed, 3 in doubt, 4 outdated ",
  );
  expect(textOf(pageOf("run", { run: makeRun({ complete: 0, failed: 60 }) }))).toContain(" all 60 failed ");
});

const FAILED_PROJECT = pageData().run?.projects[0] ?? expect.fail("expected a project");
const NINE_PROJECTS = Array.from({ length: 9 }, (_, i) => ({ ...FAILED_PROJECT, project: `project ${10 - i}` }));

test("the page of a run says once an error that all its projects have", () => {
  const text = textOf(pageOf("run", { projects: NINE_PROJECTS }));
  expect(text).toMatch(/Run of nightly, Mar 10, 2026, 01:15 UTC .* Why they failed: the service answered 503 /);
  expect(text.split("the service answered 503")).toHaveLength(2);
  const other = { ...FAILED_PROJECT, error: "the service answered 400" };
  expect(textOf(pageOf("run", { projects: [FAILED_PROJECT, other] }))).not.toContain("Why they failed");
});

test("the page of a run folds the projects after the eighth, in the order of their numbers", () => {
  expect(textOf(pageOf("run", { projects: NINE_PROJECTS }))).toMatch(/project 9 .* 1 more project .* project 10 /);
  const long = NINE_PROJECTS.map((one) => ({ ...one, project: `Customer Experience Analytics EU (${one.project})` }));
  expect(textOf(pageOf("run", { projects: long }))).toContain("Customer Experience … (project 10)");
});

test.each([
  ["0 5 * * 1", "every Monday 05:00"],
  ["0 5 * * 7", "every Sunday 05:00"],
  ["*/5 * * * *", "*/5 * * * *"],
])("the schedule %s is read as %s", (schedule, text) => expect(scheduleText(schedule)).toBe(text));

test("Data health has no section about what is not configured", () => {
  const data = { keys: { rotations: [], hasMore: false, events: [] }, runs: [] };
  const { body } = pageOf("health", data, { health: { jobs: [] } });
  expect([...body.matchAll(/<h2[^>]*>([^<]*)</g)].map(([, title]) => title)).toEqual(["Projects"]);
});

test("Data health shows failures by cause, and days with missing or older numbers", () => {
  const error = `GET /usage: the service answered 503 ${"and so on ".repeat(40)}the end`;
  const cause = { code: "unavailable", project: null, isBillingRefused: false, since: NOW, error };
  const causes = [{ ...cause, slices: 720, slicesWithNumbers: 4, days: 3, projects: 60, isRetried: false }];
  const [project] = makeCoverage().projects;
  const days = { ...project?.days, [PERIOD.end]: "missing", [PERIOD.start]: "stale" } as const;
  const projects = project ? [{ ...project, days, gaps: [{ ...GAP, error: "no" }] }] : [];
  const { body } = pageOf("health", { coverage: makeCoverage({ projects }) }, { health: { causes } });
  const text = textOf({ body });
  expect(text).toMatch(
    /The service is failing \(503\) .* 2026-03-10 06:00 3 60 older numbers, where there are some not by itself/,
  );
  expect(text).toContain("2 days usage by model, Mar 9, 2026: no numbers. no");
  // One of 28 days.
  expect(body).toContain('<rect class="stale" x="0.000%" width="3.571%" height="100%">');
  expect(body).toContain('aria-label="production: 2 days not complete"');
  const notDue = project ? [{ ...project, days: { [PERIOD.end]: "complete" } as const }] : [];
  expect(pageOf("health", { coverage: makeCoverage({ projects: notDue }) }).body).toContain("production: all complete");
  expect(body).toMatch(/<details><summary><bdi>GET [^<]*…<\/bdi><\/summary><bdi>[^<]*the end<\/bdi>/);
});

test("rotations are listed by when they are due, with a mark at the age of an overdue key", () => {
  const keys = [keyLine({ ageDays: 31 }), keyLine({ state: "draining", ageDays: 61 })];
  const old = rotationKeys({ rotation: "old", keys });
  const gone = rotationKeys({ rotation: "gone", maxAgeDays: null });
  const due = rotationKeys({ rotation: "due", keys: [keyLine({ ageDays: 30 })] });
  const { body } = pageOf("health", {
    keys: { rotations: [gone, rotationKeys(), due, old], hasMore: false, events: [] },
  });
  expect(body.match(/"state warn">\d[^<]*/g)).toEqual(['"state warn">31 of 30 days']);
  expect(textOf({ body })).toMatch(
    /old with its next run .* 1 active, 1 draining .* due with its next run .* exporter in 18 days .* gone none, as it is no longer configured/,
  );
});

test("each key has one row with its newest step and a folded list of all its steps", () => {
  const activated = { at: NOW, rotation: "exporter", key: "key-2", event: "activated", actor: "worker", reason: "a" };
  const verified = { ...activated, event: "key_verified", reason: "b" };
  const events = [activated, { ...activated, rotation: "other" }, { ...verified, key: "key-1" }, verified];
  const { body } = pageOf("health", { keys: { rotations: [rotationKeys()], hasMore: false, events } });
  const [, table = ""] = /<caption>Changes of keys.*?<tbody>(.*?)<\/tbody>/s.exec(body) ?? [];
  const step = (reason: string) => `by worker : ${reason}`;
  expect([...table.matchAll(/<tr>.*?<\/tr>/gs)].map(([row]) => textOf({ body: row }).trim())).toEqual([
    `2026-03-10 06:00 exporter key-2 activated, 2 steps 2026-03-10 06:00 activated ${step("a")} 2026-03-10 06:00 key verified ${step("b")}`,
    `2026-03-10 06:00 other key-2 activated 2026-03-10 06:00 activated ${step("a")}`,
    `2026-03-10 06:00 exporter key-1 key verified 2026-03-10 06:00 key verified ${step("b")}`,
  ]);
  expect(table).toContain("<details><summary>activated, 2 steps</summary>");
});

test("links keep the chosen days and the project", () => {
  const period = { start: "2026-03-01", end: "2026-03-02", name: undefined };
  const view = { project: "a&b", period, pageParameters: { id: "run-1" } };
  const { body } = pageOf("run", {}, { view, health: { slices: { complete: 0, suspect: 0, failed: 0, missing: 1 } } });
  expect(body).toContain('href="./data-health?from=2026-03-01&amp;to=2026-03-02&amp;project=a%26b"');
  expect(body).toContain('href="./data-health?from=2026-03-01&amp;to=2026-03-02&amp;project=a%26b#gaps"');
  const usage = pageOf("usage", { answer: makeAnswer({ groups: [{ group: "nova-3" }] }) }, { view });
  expect(usage.body).toContain("/chargeback.csv?from=2026-03-01&amp;to=2026-03-02&amp;project=a%26b&amp;by=accessor");
});

test("the link to more groups raises the limit to 100, then to 1,000 at most", () => {
  const linkAt = (limit: number) => {
    const other = { groups: 12, amount: "3", before: "2", change: "1" };
    const answer = makeAnswer({ question: { limit }, groups: [{ group: "nova-3" }], other });
    return /href="[^"]*limit=(\d+)"[^>]*>12 others/.exec(pageOf("usage", { answer }).body)?.[1];
  };
  expect([8, 100, 1_000].map(linkAt)).toEqual(["100", "1000", undefined]);
});

test("a page does not claim that nothing was used on days that could not be read", () => {
  const lacking = { ...NOTHING_LACKING, incompleteDays: [PERIOD.end] };
  const text = textOf(pageOf("usage", { answer: makeAnswer({ lacking, groups: [] }) }));
  expect(text).toMatch(/could not be read.*Data health says why/);
  expect(text).not.toContain("on these days");
});

test("every anchor that a page links to exists once, on the page that the link leads to", () => {
  const health = {
    slices: { complete: 1, missing: 1, failed: 1, suspect: 1 },
    rotations: [makeRotation({ failedAttempts: 1 })],
    jobs: [makeJob({ overdueSince: NOW })],
  };
  const ids = (page: keyof PageData) =>
    [...pageOf(page, undefined, { health }).body.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
  const paths = new Map(Object.entries(PAGES).map(([page, { path }]) => [path.slice(1), page as PageName]));
  for (const page of ["overview", "health", "run"] as const) {
    expect(new Set(ids(page)).size).toBe(ids(page).length);
    const { body } = pageOf(page, undefined, { health });
    const links = [...body.matchAll(/ href="(?:\.\.?\/)*([^"#?]*)[^"#]*#([^"]*)"/g)];
    expect(links.length).toBeGreaterThan(2);
    for (const [, path = "", id] of links) expect(ids(paths.get(path) as keyof PageData)).toContain(id);
  }
});

test("a comparison with a period of another length names both lengths", () => {
  const period = { start: "2026-02-07", end: PERIOD.end, name: undefined };
  const answer = makeAnswer({ groups: [{ group: "nova-3" }] });
  const { body } = pageOf("usage", { answer }, { view: { period } });
  expect(textOf({ body })).toMatch(/\(31 days\) .* compared with Jan 13 – Feb 9, 2026 \(28 days\)/);
});

test("a copied link names its days by date", () => {
  expect(pageOf("overview").body).toContain('data-copy-link="./?from=2026-02-10&amp;to=2026-03-09"');
});

test("the content security policy allows nothing from elsewhere", () => {
  expect(pageOf("overview").headers?.["content-security-policy"]).toMatch(
    /^default-src 'none'; style-src 'sha256-[^']*'; base-uri 'none'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'$/,
  );
});

test("names and errors from outside are shown as mere text", () => {
  const paused = makeJob({ job: HOSTILE, paused: { at: NOW, why: HOSTILE, by: HOSTILE } });
  const readiness = { live: true, reasons: [HOSTILE] };
  const frame = { health: { jobs: [paused] }, readiness, view: { project: HOSTILE } };
  const run = makeRun({ job: HOSTILE, status: "failed", error: HOSTILE });
  const hostile = { ...FAILED_PROJECT, project: HOSTILE, error: HOSTILE };
  const key = keyLine({ apiKeyId: HOSTILE, comment: HOSTILE, note: HOSTILE });
  const rotations = [rotationKeys({ rotation: HOSTILE, maxAgeDays: null, keys: [key] })];
  const known = makeCoverage().projects[0] ?? expect.fail("expected a project");
  const coverage = { ...known, project: HOSTILE, gaps: [{ ...GAP, filter: HOSTILE, error: HOSTILE }] };
  const event = { at: NOW, rotation: HOSTILE, key: HOSTILE, event: HOSTILE, actor: HOSTILE, reason: HOSTILE };
  const keys = { rotations, hasMore: false, events: [event] };
  const pages = [
    pageOf("overview", {}, frame),
    pageOf("run", { run, projects: [hostile] }, frame),
    pageOf("health", { runs: [run], coverage: makeCoverage({ projects: [coverage] }), keys }, frame),
    unavailablePage([HOSTILE]),
    invalidPage("overview", HOSTILE),
  ];
  for (const { body } of pages) {
    expect(body).not.toMatch(/<script(?! type="module" src="assets\/app-\w+\.js">| type="application\/json">)|<img/i);
    expect(body).toContain(HOSTILE.replaceAll(/[<>"']/g, (char) => `&${ENTITIES[char]};`));
  }
});

const ENTITIES: Readonly<Record<string, string>> = { "<": "lt", ">": "gt", '"': "quot", "'": "#39" };

test("a failed or interrupted run is shown even if others came after it", () => {
  const statuses = Array.from({ length: 40 }, (_, i) => (i === 20 ? "interrupted" : i === 30 ? "failed" : "ok"));
  const { body } = pageOf("health", { runs: statuses.map((status) => makeRun({ status })) });
  const shown = /<section id="runs".*?<\/section>/s.exec(body)?.[0] ?? "";
  // The headings, the ten newest runs and the two that did not succeed.
  expect(shown.match(/<tr>/g)).toHaveLength(1 + 10 + 2);
  expect(shown).toContain('<span class="state bad">failed</span>');
});

test("the duration of a run has the usual one beside it", () => {
  const { startedAt } = makeRun();
  // The durations are 0 to 39 s, each once. The first run takes 7 s.
  const finishedAt = (i: number) => new Date(startedAt.getTime() + (((i + 1) * 7) % 40) * 1_000);
  const runs = Array.from({ length: 40 }, (_, i) => makeRun({ finishedAt: finishedAt(i) }));
  expect(textOf(pageOf("health", { runs }))).toContain("7 s, usually 20 s");
});

test("the reasons why this worker can't work come first among the alerts", () => {
  const unusual = { metric: "requests", amount: "9", low: "1", high: "2", daysBefore: 0, isFinal: true } as const;
  const anomalies = [{ ...unusual, project: "production", filter: "all", unfiltered: true, day: "2026-03-06" }];
  const reminders = { rotations: [makeRotation({ keys: { orphan: 1 } })], budgets: [makeBudget()], anomalies };
  const health = { slices: { complete: 0, suspect: 0, failed: 0, missing: 1 }, ...reminders };
  const frame = { health, readiness: { live: true, reasons: ["the database is away"] } };
  const text = textOf(pageOf("overview", {}, frame));
  expect(text).toContain("2 things to look at This worker can&#39;t work now: the database is away");
  expect(text).toContain("3 notes on API keys, budgets, unusual usage");
  // On the page Usage & cost the alerts are folded.
  const isOpen = (page: PageName) => pageOf(page, {}, frame).body.includes('<details class="notice bad" open>');
  expect([isOpen("overview"), isOpen("usage")]).toEqual([true, false]);
});

test("a link to another grouping asks for every group by the same metric", () => {
  const answer = makeAnswer({ question: { group: { value: "nova-3" } }, groups: [{ group: "nova-3" }] });
  const view = { pageParameters: { grouping: "model", group: "nova-3", metric: "hours" } };
  expect(pageOf("usage", { answer }, { view }).body).toContain('href="./usage?grouping=tags&amp;metric=hours"');
});
