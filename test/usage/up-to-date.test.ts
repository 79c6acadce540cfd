import { expect, test } from "vitest";
import { distinctSeries, planBackfill } from "../../src/usage/backfill.ts";
import { type ExportPlan, planRun, readsEverythingDue } from "../../src/usage/plan.ts";
import { sampleJob } from "./sample-request.ts";

const TODAY = "2026-03-18";
const { window: _, ...WINDOWLESS } = sampleJob();

function failedOnly(): ExportPlan | undefined {
  const range = { start: "2026-03-17", end: "2026-03-17" };
  const known = new Map([[JSON.stringify(["usage", "p1", "none", "{}"]), { "2026-03-17": "failed" as const }]]);
  return planBackfill(distinctSeries([sampleJob()], {}), range, "failed", known, TODAY)[0]?.plan;
}

test.each<[string, boolean, ExportPlan | undefined]>([
  ["a scheduled run", true, planRun(sampleJob(), TODAY)],
  ["a scheduled run without a window", true, planRun(WINDOWLESS, TODAY)],
  ["yesterday, picked by hand", true, planRun(sampleJob(), TODAY, { days: ["2026-03-17"] })],
  ["old days, picked by hand", false, planRun(sampleJob(), TODAY, { days: ["2026-03-16", "2025-01-01"] })],
  ["a backfill of failed days", false, failedOnly()],
])("%s reads everything that was due when it was planned: %s", (_name, expected, plan) => {
  expect(plan && readsEverythingDue(plan)).toBe(expected);
});
