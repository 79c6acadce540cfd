import { expect, test } from "vitest";
import type { FailureCause } from "../../../src/db/usage/failures.ts";
import { dashboardProblems, verdictHtml } from "../../../src/web/dashboard/verdict.ts";
import { healthState, jobLine, makeBudgetUse, NOW, rotationLine, worker } from "../../health/sample-health-state.ts";
import { WELL } from "../test-monitor.ts";

const SLICES = healthState().slices;
const FAILED_RUN = {
  status: "failed",
  trigger: "manual",
  startedAt: NOW,
  error: "no",
  overCompleteDays: true,
} as const;
const OUTCOME = { ...FAILED_RUN, planned: 0, suspect: 0, failed: 0 };

test("a paused job is no alert", () => {
  const paused = jobLine({ paused: { at: NOW, why: "moving", by: "me" } });
  expect(dashboardProblems(healthState({ jobs: [paused] }), WELL)).toEqual([]);
});

test("that no worker runs is no alert if no job needs a worker", () => {
  const jobs = [jobLine({ needsWorker: false })];
  expect(dashboardProblems(healthState({ jobs, workers: [] }), WELL)).toEqual([]);
});

test("a worker that stopped a moment ago is no alert, because it may be restarting", () => {
  const workers = [worker({ state: "stopped" })];
  expect(dashboardProblems(healthState({ workers }), WELL)).toEqual([]);
});

test.each([
  [{ slices: { ...SLICES, missing: 1 } }, "1 slice missing: due and never read", "gaps"],
  [{ slices: { ...SLICES, failed: 2 } }, "2 slices failed: the newest reading went wrong", "gaps"],
  [{ slices: { ...SLICES, suspect: 3 } }, "3 slices suspect: empty where there were numbers, which stay", "gaps"],
  [
    { jobs: [jobLine({ overdueSince: NOW })] },
    "export nightly is overdue since 2026-03-10 06:00 UTC: no worker has taken it up",
    "jobs",
  ],
  [
    { jobs: [jobLine({ overdueSince: NOW })], workers: [worker({ state: "silent", recent: false })] },
    "no worker runs, so nothing is done on schedule: the last one, node-1 pid 41, was seen 2026-03-10 06:00 UTC; run: usage-export start",
    "jobs",
  ],
  [
    { jobs: [jobLine({ failedRun: FAILED_RUN, outcome: OUTCOME })] },
    "export nightly failed in its run of 2026-03-10 06:00 UTC (manual). The first error: no",
    "runs",
  ],
  [
    { jobs: [jobLine({ failedRun: { ...FAILED_RUN, status: "interrupted" } })] },
    "export nightly was interrupted in its run of 2026-03-10 06:00 UTC (manual): no",
    "runs",
  ],
  [
    { rotations: [rotationLine({ ageSeconds: 33 * 86_400 })] },
    "rotation exporter: the key in use is 33 days old and should have been replaced after 30: rotate --dry-run says what is in the way.",
    "keys",
  ],
  [{ rotations: [rotationLine({ warnings: ["2 failed attempts"] })] }, "rotation exporter: 2 failed attempts", "keys"],
])("the health state with %o makes one alert", (part, text, section) => {
  expect(dashboardProblems(healthState(part), WELL)).toMatchObject([{ text, section }]);
});

test("a rotation whose run failed is one alert: its warning if it has one, else the run", () => {
  const jobs = [jobLine({ kind: "rotation", job: "exporter", failedRun: FAILED_RUN, outcome: OUTCOME })];
  const alertsWith = (warnings: readonly string[]) =>
    dashboardProblems(healthState({ jobs, rotations: [rotationLine({ warnings })] }), WELL).map(({ text }) => text);
  expect(alertsWith(["1 failed attempts, the last: no"])).toEqual([
    "rotation exporter: 1 failed attempts, the last: no",
  ]);
  expect(alertsWith([])).toEqual([expect.stringMatching(/^rotation exporter failed in its run of /)]);
});

const CAUSE: FailureCause = {
  ...{
    code: "unavailable",
    project: undefined,
    isBillingRefused: false,
    since: new Date("2026-03-10T03:23:10Z"),
    error: "connect ECONNREFUSED",
  },
  ...{ slices: 12, slicesWithNumbers: 12, series: 6, nextTry: new Date("2026-03-10T06:01:00Z") },
};

test.each<[Partial<FailureCause>, string]>([
  [
    {},
    "service not reachable since 2026-03-10 03:23 UTC; 12 slices of 6 series failed; next try 2026-03-10 06:01 UTC; last good numbers shown",
  ],
  [
    { code: "unauthorized", project: "production", error: "the service answered 403", nextTry: undefined },
    "key of project production refused (403) since 2026-03-10 03:23 UTC; 12 slices of 6 series failed; with a key that works, usage-export export --project production reads them at once; last good numbers shown",
  ],
  [
    {
      ...{ code: "unauthorized", project: "production", isBillingRefused: true, nextTry: undefined },
      error: "the service answered 403: the key lacks a scope",
    },
    "key of project production may not read billing (403): it needs billing:read since 2026-03-10 03:23 UTC; 12 slices of 6 series failed; with a key that works, usage-export export --project production reads them at once; last good numbers shown",
  ],
  [
    {
      code: "bad_answer",
      error: 'expected "rows" to be an array (request id c8b6) (2 attempts)',
      slicesWithNumbers: 3,
    },
    'readings fail since 2026-03-10 03:23 UTC; 12 slices of 6 series failed; next try 2026-03-10 06:01 UTC; last good numbers shown for 3 of them; the newest error: expected "rows" to be an array',
  ],
])("failed slices with the same cause are one alert (%o)", (part, text) => {
  const causes = [{ ...CAUSE, ...part }];
  const slices = { ...SLICES, failed: 12 };
  expect(dashboardProblems(healthState({ causes, slices }), WELL)).toMatchObject([{ text, section: "gaps" }]);
});

test("only the five largest causes are listed, and the slices of the others are counted", () => {
  const causes = Array.from({ length: 8 }, (_, i) => ({ ...CAUSE, code: "bad_answer", error: `no ${i}` }));
  const texts = dashboardProblems(healthState({ causes }), WELL).map(({ text }) => text);
  expect(texts).toHaveLength(6);
  expect(texts.at(-1)).toBe("36 slices failed for other reasons");
});

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
