// The page Overview: its figures, lists and budgets, and what it says about missing data.

import { expect, test } from "vitest";
import { BEFORE, makeAnswer, NOTHING_LACKING, PERIOD } from "../../facts/sample-facts.ts";
import { makeBudget, makeJob, makeProject, NOW } from "../../health/sample-health-state.ts";
import { pageOf, textOf } from "./sample-pages.ts";

// PERIOD is 2026-02-10 to 2026-03-09, and BEFORE the 28 days before it. Unless a test says otherwise, the hours rose by 7.7% to 1,620.
const COST = { metric: "billed_cost", currency: "USD", grouping: "none" } as const;

test("missing days are explained by the first failure that concerns usage of the shown projects", () => {
  const cause = { isBillingRefused: false, since: NOW, slices: 9, slicesWithNumbers: 0, days: 3, projects: 1 };
  const refused = { ...cause, code: "unauthorized", project: "staging", isRetried: false, error: "no" };
  const failing = { ...refused, code: "unavailable", project: null, error: "the service answered 503" };
  const saidOf = (project: string | null) => {
    const projects = project === null ? ["production", "staging"] : ["production"];
    const total = makeAnswer({ question: { grouping: "none", project }, projects });
    const days = total.days.map((one) => ({ ...one, state: one.day === PERIOD.end ? ("unread" as const) : one.state }));
    const causes = [{ ...refused, isBillingRefused: true, project: "production" }, refused, failing];
    return textOf(pageOf("overview", { total: { ...total, days } }, { health: { causes } }));
  };
  expect(saidOf(null)).toContain("No data after Mar 8: the service refuses the API key of staging.");
  expect(saidOf("project-1")).toContain("No data after Mar 8: the service is failing (503).");
});

test("a ranking links its groups to their usage on the same days", () => {
  const period = { start: "2026-03-01", end: "2026-03-02", name: undefined };
  const groups = [{ group: "key 1" }, { group: null }, { group: "" }, { group: "idle", amount: "0" }]; // "" can have no link
  const splits = [
    makeAnswer({ groups: [{ group: '["nova-3","aura-2"]' }] }),
    makeAnswer({ question: { grouping: "accessor" }, groups }),
  ];
  const { body } = pageOf("overview", { splits }, { view: { period, project: "mine" } });
  const days = "./usage?from=2026-03-01&to=2026-03-02&project=mine";
  const links = [...(body.split('<section id="top-accessor"')[1] ?? "").matchAll(/ href="([^"#]*usage[^"]*)"/g)];
  expect(links.map(([, href]) => href?.replaceAll("&amp;", "&"))).toEqual([
    `${days}&grouping=accessor&metric=hours`,
    `${days}&grouping=accessor&metric=hours&group=key+1`,
    `${days}&grouping=accessor&metric=hours&no-value=yes`,
  ]);
  expect(body).toContain('<span class="chips"><span><bdi>nova-3</bdi></span> <span><bdi>aura-2</bdi></span> </span>');
  expect(body).not.toContain("idle");
});

test("if both periods lack days, the overview names the days of each in place of a change", () => {
  expect(textOf(pageOf("overview"))).toContain("+7.7%");
  const lacking = { ...NOTHING_LACKING, unreadDays: [PERIOD.end], incompleteDaysBefore: [BEFORE.start, BEFORE.end] };
  const answer = { compared: false, complete: false, lacking };
  const splits = [makeAnswer({ ...answer, groups: [{ group: "nova-3" }] })];
  const alone = textOf(pageOf("overview", { total: makeAnswer(answer), splits }));
  expect(alone).not.toMatch(/[+-]\d[\d.]*%|rose|fell/);
  expect(alone).toContain(
    `Not compared with Jan 13 – Feb 9, 2026: 1 day of this period was not read (Mar 9, 2026); 2 days of the period before are not complete (Jan 13, 2026; Feb 9, 2026).`,
  );
});

test("each figure is compared only if its own earlier numbers allow it", () => {
  const figuresOf = (compared: boolean, unreadDaysOfLastMonth: string[]) => {
    const lacking = { ...NOTHING_LACKING, unreadDaysBefore: unreadDaysOfLastMonth };
    const cost = makeAnswer({ question: COST, compared, total: { amount: "150", before: "100", change: "50" } });
    const month = makeAnswer({ question: COST, lacking, total: { amount: "90", before: "1480", change: null } });
    const page = pageOf("overview", { cost, monthSoFar: { period: PERIOD, answer: month, forecast: null } });
    expect(page.body).toContain('href="./usage?period=this-month&amp;grouping=none&amp;metric=billed_cost"');
    return textOf(page).split(" Requests ")[0];
  };
  expect(figuresOf(true, [])).toMatch(/all of January: \$1,480 .* \$150\.00 28 days, \+50% Hours 1,620 \+7\.7%/);
  expect(figuresOf(false, [])).toMatch(/ \$150\.00 28 days Hours 1,620 \+7\.7%/);
  expect(figuresOf(true, [BEFORE.end])).not.toContain("all of January");
});

test("budgets are bars of one scale on the overview, the fullest first", () => {
  const budgets = ["5", "120.5", null, "80"].map((percent, i) =>
    makeBudget({ name: `b${i}`, percent, forecast: null, forecastPercent: null }),
  );
  const { body } = pageOf("overview", {}, { health: { budgets } });
  expect(textOf({ body })).toMatch(/ b1 .*\(120%\).* b3 .*\(80%\).* b0 .*\(5%\).* b2 /);
  // The fullest bar takes 98 % of the width.
  const widths = [...body.matchAll(/class="used" width="([^"]*)"/g)].map(([, width]) => width);
  expect(widths).toEqual(["98.0%", "65.1%", "4.1%", "0.0%"]);
});

test("a budget of several projects is not shown beside the usage of one", () => {
  const budgets = [["p1"], ["p1", "p2"]].map((projectIds) => makeBudget({ name: projectIds.join("+"), projectIds }));
  const namesOf = (project: string | null) => {
    const total = makeAnswer({ question: { grouping: "none", project } });
    const { body } = pageOf("overview", { total }, { health: { budgets } });
    return [...body.matchAll(/<bdi>(p1[^<]*)</g)].map(([, name]) => name);
  };
  expect(namesOf("p1")).toEqual(["p1"]);
  expect(namesOf(null)).toEqual(["p1", "p1+p2"]);
});

test("the overview names the days and projects that only a list lacks", () => {
  const missing = { unreadDays: [PERIOD.start], projectsLeftOut: ["staging"], projectsLeftOutCount: 1 };
  const listLacks = { lacking: { ...NOTHING_LACKING, ...missing }, compared: false };
  const splits = [makeAnswer({ ...listLacks, question: { grouping: "accessor" }, groups: [{ group: "k" }] })];
  expect(textOf(pageOf("overview", { splits }))).toContain(
    "Not in this list, as it was not read by API key: 1 day of this period; staging.",
  );
  const allLack = { ...listLacks, lacking: { ...NOTHING_LACKING, incompleteDays: [PERIOD.start] } };
  const both = { total: makeAnswer(allLack), splits: [makeAnswer({ ...allLack, groups: [{ group: "nova-3" }] })] };
  expect(textOf(pageOf("overview", both))).not.toContain("Not in this list");
});

test("before the first export, the overview says what to do", () => {
  const available = { groupings: [], filters: [], currencies: [] };
  const total = makeAnswer({ projectCount: 0, available });
  const slices = { complete: 0, suspect: 0, failed: 0, missing: 0 };
  const health = { slices, jobs: [makeJob({ lastRun: undefined })] };
  expect(textOf(pageOf("overview", { total }, { health }))).toContain(
    "There are no numbers yet. Run usage-export export to read usage now, or usage-export start to read it on schedule.",
  );
  const { body } = pageOf("overview", { total }, { health: { jobs: [] } });
  expect(body).toContain("<title>No job is configured: Overview, usage-export</title>");
  // The form chooses days and project. One project without numbers still has it, as other projects may have numbers.
  expect(body).not.toContain("<form");
  expect(pageOf("overview", { total }, { view: { project: "project-1" } }).body).toContain("<form");
});

test("the verdict names the last day up to which every project with due days has data", () => {
  const projects = ["2026-03-08", "2026-03-07", "2026-03-09"].map((freshThrough, i) =>
    makeProject({ projectId: `p${i}`, project: `p${i}`, freshThrough }),
  );
  expect(textOf(pageOf("overview", {}, { health: { projects } }))).toContain("All data up to Mar 7 is in.");
  projects.push(makeProject({ projectId: "new", project: "new", freshThrough: null }));
  expect(textOf(pageOf("overview", {}, { health: { projects } }))).toContain(
    "Where days are due, all data up to Mar 7",
  );
});
