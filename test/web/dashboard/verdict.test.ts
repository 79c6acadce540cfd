import { expect, test } from "vitest";
import { dashboardProblems, verdictHtml } from "../../../src/web/dashboard/verdict.ts";
import { healthState, makeBudgetUse } from "../../health/sample-health-state.ts";
import { WELL } from "../test-monitor.ts";

const SLICES = healthState().slices;
test("the reasons why this worker can't work come first", () => {
  const readiness = { live: true, reasons: ["the database does not answer"] };
  expect(dashboardProblems(healthState({ slices: { ...SLICES, missing: 1 } }), readiness)).toMatchObject([
    { text: "this worker can't work now: the database does not answer" },
    { section: "gaps" },
  ]);
});

test("without a job the verdict is not that all is well, and says what to do", () => {
  const text = verdictHtml([], healthState({ jobs: [] }), { href: () => "", isOpen: true }).toString();
  expect(text).toContain("<strong>No job is configured.</strong> Nothing is due before an export is added to");
  expect(text).not.toContain("Nothing that is due is missing");
});

test("an alert about the usage is no reason to look, and is listed below", () => {
  const health = healthState({ budgets: [makeBudgetUse()] });
  const alerts = dashboardProblems(health, WELL);
  expect(alerts).toEqual([]);
  const page = verdictHtml(alerts, health, { href: (section) => `page#${section}`, isOpen: true }).toString();
  expect(page).toContain("<strong>1 note on usage, budgets and keys</strong>");
});
