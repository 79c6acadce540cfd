// However many projects there are, the metrics have a limited number of samples, and the totals still say what is missing.

import { expect, test } from "vitest";
import type { ProjectHealth } from "../../src/db/health.ts";
import { metricSamples } from "../../src/health/gauges.ts";
import { countSlices, type HealthFigures } from "../../src/health/state.ts";
import { healthState, jobLine, makeBudgetUse, NOW, rotationLine } from "./sample-health-state.ts";
import { testMetrics } from "./test-metrics.ts";

function project(i: number, part: Partial<ProjectHealth> = {}): ProjectHealth {
  const name = `customer-${i}`;
  return {
    ...{
      project: name,
      projectId: name,
      source: "usage",
      series: 16,
      complete: 112,
      missing: 0,
      failed: 0,
      suspect: 0,
    },
    freshThrough: "2026-03-09",
    ...part,
  };
}

function stateOf(projects: readonly ProjectHealth[], part: Partial<HealthFigures> = {}): HealthFigures {
  const seriesCount = projects.reduce((sum, { series }) => sum + series, 0);
  return healthState({ projects, seriesCount, slices: countSlices(projects), jobs: [], ...part });
}

/** As "gauge{labels} value", without the gauges that are not about days. */
function coverageOf(state: HealthFigures): readonly string[] {
  return metricSamples(state)
    .filter(({ gauge }) => /slices|complete_day/.test(gauge))
    .map(({ gauge, labels, value }) => `${gauge} ${Object.values(labels).join(" ")}: ${value}`);
}

test("of more than 200 series there is one sample for each project", () => {
  const samples = coverageOf(stateOf([project(1, { missing: 3, freshThrough: null }), project(2), ...others(50)]));
  expect(samples).toHaveLength(4 * 52 - 1);
  expect(samples.slice(0, 4)).toEqual([
    "project_incomplete_slices customer-1 missing: 3",
    "project_incomplete_slices customer-1 failed: 0",
    "project_incomplete_slices customer-1 suspect: 0",
    `project_newest_complete_day_timestamp_seconds customer-2: ${Date.UTC(2026, 2, 9) / 1000}`,
  ]);
});

function others(count: number): readonly ProjectHealth[] {
  return Array.from({ length: count }, (_, i) => project(i + 100));
}

test("of more than 200 projects there are totals and the ten worst, the worst of which has the most missing days", () => {
  const bad = Array.from({ length: 20 }, (_, i) => project(i, { failed: i, suspect: 100 }));
  const behind = project(50, { missing: 500, freshThrough: "2026-03-01" });
  const retired = project(51, { series: 0, complete: 7 });
  const samples = coverageOf(stateOf([...others(300), retired, ...bad, behind]));
  expect(samples.slice(0, 4)).toEqual([
    `all_newest_complete_day_timestamp_seconds : ${Date.UTC(2026, 2, 1) / 1000}`,
    "all_incomplete_slices missing: 500",
    "all_incomplete_slices failed: 190",
    "all_incomplete_slices suspect: 2000",
  ]);
  const worst = samples.slice(4).filter((sample) => sample.includes("failed"));
  expect(worst.map((sample) => sample.split(" ")[1])).toEqual(
    [50, 19, 18, 17, 16, 15, 14, 13, 12, 11].map((i) => `customer-${i}`),
  );
});

test("an answer of 5,000 projects, jobs, rotations and budgets is below 2 MB, and has what is wrong", async () => {
  const many = <T>(make: (i: number) => T) => Array.from({ length: 5_000 }, (_, i) => make(i));
  const state = stateOf(many(project), {
    jobs: many((i) => jobLine({ job: `job-${i}`, failures: i === 4_321 ? 2 : 0, overdueSince: NOW })),
    rotations: many((i) => rotationLine({ rotation: `key-${i}`, failedAttempts: i === 4_321 ? 5 : 0 })),
    budgets: many((i) => makeBudgetUse({ name: `budget-${i}`, percent: i === 4_321 ? "99" : "1" })),
  });
  const { text } = await testMetrics({ readHealth: async () => state }).scrape();
  expect(text.length).toBeLessThan(2_000_000);
  expect(text).toContain('usage_export_job_failures{kind="export",job_name="job-4321"} 2');
  expect(text).toContain('usage_export_rotation_failed_attempts{rotation="key-4321"} 5');
  expect(text).toContain('usage_export_budget_used_share{budget="budget-4321"} 0.99');
  expect(text).toContain('usage_export_condition{name="key attention",subject="key-4321",severity="critical"} 1');
  expect(text.match(/^usage_export_condition\{/gm)).toHaveLength(200);
  expect(text).toContain("usage_export_series 80000");
});
