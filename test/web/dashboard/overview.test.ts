// The page Overview: its figures, lists and budgets, and what it says about missing data.

import { expect, test } from "vitest";
import { BEFORE, makeAnswer, NOTHING_LACKING, PERIOD } from "../../facts/sample-facts.ts";
import { makeBudget, makeJob, makeProject, NOW } from "../../health/sample-health-state.ts";
import { pageOf, textOf } from "./sample-pages.ts";

// PERIOD is 2026-02-10 to 2026-03-09, and BEFORE the 28 days before it.
const COST = { metric: "billed_cost", currency: "USD", grouping: "none" } as const;

test("the overview of a project begins with a failure of its own, and not of another project's key", () => {
  const cause = { isBillingRefused: false, since: NOW, slices: 9, slicesWithNumbers: 0, days: 3, projects: 1 };
  const refused = { ...cause, code: "unauthorized", project: "staging", isRetried: false, error: "no" };
  const failing = { ...refused, code: "unavailable", project: null, error: "the service answered 503" };
  const saidOf = (project: string | null) => {
    const total = makeAnswer({ question: { grouping: "none", project } });
    const days = total.days.map((one) => ({ ...one, state: one.day === PERIOD.end ? ("unread" as const) : one.state }));
    const causes = [{ ...refused, isBillingRefused: true, project: "production" }, refused, failing];
    return textOf(pageOf("overview", { total: { ...total, days } }, { health: { causes } }));
  };
  expect(saidOf(null)).toContain("No data after Mar 8: the service refuses the API key of staging.");
  expect(saidOf("project-1")).toContain("No data after Mar 8: the service is failing (503).");
});

test("a ranked group leads to its usage on the same days, and a group that is zero is left out", () => {
  const period = { start: "2026-03-01", end: "2026-03-02", name: undefined };
  const groups = [{ group: "key 1" }, { group: null }, { group: "" }, { group: "idle", amount: "0" }];
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

test("if days of both periods were not read, the overview shows no change and names those days of each period", () => {
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

test("a cost that can't be compared has no change, though the hours have one", () => {
  const figuresOf = (compared: boolean, unreadDaysBefore: string[]) => {
    const lacking = { ...NOTHING_LACKING, unreadDaysBefore };
    const cost = makeAnswer({ question: COST, compared, total: { amount: "150", before: "100", change: "50" } });
    const monthSoFar = { period: PERIOD, answer: makeAnswer({ question: COST, lacking }), forecast: null };
    const page = pageOf("overview", { cost, monthSoFar });
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

test("the overview says which days and projects a list lacks, unless its figures lack them too", () => {
  const left = { unreadDays: [PERIOD.start], projectsLeftOut: ["staging"], projectsLeftOutCount: 1 };
  const part = { lacking: { ...NOTHING_LACKING, ...left }, compared: false };
  const splits = [makeAnswer({ ...part, question: { grouping: "accessor" }, groups: [{ group: "k" }] })];
  expect(textOf(pageOf("overview", { splits }))).toContain(
    "Not in this list, as it was not read by API key: 1 day of this period; staging.",
  );
  const whole = { ...part, lacking: { ...NOTHING_LACKING, incompleteDays: [PERIOD.start] } };
  const same = { total: makeAnswer(whole), splits: [makeAnswer({ ...whole, groups: [{ group: "nova-3" }] })] };
  expect(textOf(pageOf("overview", same))).not.toContain("Not in this list");
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
  expect(body).not.toContain("<form");
  // Other projects may have numbers, for example if only the billing of this one is read.
  expect(pageOf("overview", { total }, { view: { project: "project-1" } }).body).toContain("<form");
  expect(body).toContain("<title>No job is configured: Overview, usage-export</title>");
});

test("the verdict names the last day up to which every project has data, and claims nothing of one without a due day", () => {
  const projects = ["2026-03-08", "2026-03-07", "2026-03-09"].map((freshThrough, i) =>
    makeProject({ projectId: `p${i}`, project: `p${i}`, freshThrough }),
  );
  expect(textOf(pageOf("overview", {}, { health: { projects } }))).toContain("All data up to Mar 7 is in.");
  projects.push(makeProject({ projectId: "new", project: "new", freshThrough: null }));
  expect(textOf(pageOf("overview", {}, { health: { projects } }))).toContain(
    "Where days are due, all data up to Mar 7",
  );
});
