// Health states in which all is well, except for the parts that a test sets.

import type { StoredWorker } from "../../src/db/jobs/jobs.ts";
import type { HealthFacts } from "../../src/facts/conditions.ts";
import type { ProjectHealth } from "../../src/facts/coverage.ts";
import { type HealthState, withConditions } from "../../src/facts/health.ts";
import type { FailedRun, JobHealth, StoredRun } from "../../src/facts/jobs.ts";
import type { RotationHealth } from "../../src/facts/keys.ts";
import type { BudgetUse } from "../../src/usage/budgets.ts";
import { DAY_SECONDS } from "../../src/usage/days.ts";

export const NOW = new Date("2026-03-10T06:00:30Z");

export function healthState(part: Partial<HealthFacts> = {}): HealthState {
  return withConditions({
    ...{ readAt: NOW, callPauses: [], jobs: [makeJob()], workers: [makeWorker()], projects: [] },
    slices: { complete: 60, suspect: 0, failed: 0, missing: 0 },
    ...{ causes: [], rotations: [], lists: [] },
    ...{ budgets: [], anomalies: [] },
    ...part,
  });
}

export function makeJob(part: Partial<JobHealth> = {}): JobHealth {
  return {
    ...{ kind: "export", job: "nightly", schedule: "15 2 * * *", timezone: "Europe/Vienna" },
    lastRun: makeRun(),
    nextRun: new Date("2026-03-11T01:15:00Z"),
    ...{ paused: undefined, overdueSince: undefined, needsWorker: true, mayReadMissing: false },
    ...{ failedRun: undefined, lastSuccess: null },
    ...part,
  };
}

export const FAILED_RUN: FailedRun = {
  ...{ status: "failed", trigger: "manual", startedAt: NOW, error: "no", isExplained: false },
};

export function makeRun(part: Partial<StoredRun> = {}): StoredRun {
  return {
    runId: "00000000-1111-2222-3333-444444444444",
    ...{ requests: 12, kind: "export", job: "nightly", trigger: "schedule", status: "ok" },
    startedAt: new Date("2026-03-10T01:15:02Z"),
    finishedAt: new Date("2026-03-10T01:15:44Z"),
    ...{ planned: 60, complete: 60, suspect: 0, failed: 0, undated: 0, stale: 0, rowsChanged: 12_345, error: null },
    ...part,
  };
}

export function makeWorker(part: Partial<StoredWorker> = {}): StoredWorker {
  return {
    ...{ host: "node-1", pid: 41, version: "1.2.3", state: "live", recent: true, refusal: undefined },
    ...{ startedAt: new Date("2026-03-01T12:00:00Z"), lastSeenAt: new Date("2026-03-10T06:00:02Z") },
    ...part,
  };
}

export function makeProject(part: Partial<ProjectHealth> = {}): ProjectHealth {
  return {
    ...{ project: "production", projectId: "p", source: "usage", series: 16, complete: 112 },
    ...{ missing: 0, failed: 0, suspect: 0, freshThrough: "2026-03-09" },
    ...part,
  };
}

export function makeRotation({
  keys,
  ...part
}: Partial<Omit<RotationHealth, "keys">> & {
  readonly keys?: Partial<RotationHealth["keys"]>;
} = {}): RotationHealth {
  return {
    ...{ rotation: "exporter", ledgerName: "exporter", project: null },
    configured: { maxAgeDays: 30, retire: "keep" },
    apiKeyId: "11111111-2222-3333-4444-555555555555",
    ...{ ageDays: 5, ageSeconds: 5 * DAY_SECONDS },
    ...{ failedAttempts: 0, lastError: null, fallback: null, fallbackAt: null },
    keys: { pending: 0, active: 1, draining: 0, orphan: 0, dueForRemoval: 0, ...keys },
    ...part,
  };
}

/** A budget that has reached two of its three thresholds. */
export function makeBudget(part: Partial<BudgetUse> = {}): BudgetUse {
  return {
    ...{ name: "limit", projectIds: ["project-1"], scope: "all", scopeValue: null },
    ...{ metric: "cost", currency: "USD", costSource: "estimated" },
    ...{ period: "month", start: "2026-03-01", end: "2026-03-31" },
    ...{ amount: "1000", used: "834.5", percent: "83.45", thresholds: ["50", "80", "100"], reached: ["50", "80"] },
    ...{ forecast: "1120.4", forecastLow: "1050", forecastHigh: "1190", forecastPercent: "112.04" },
    ...{ daysMissing: 1, daysNotFinal: 2, hasUnpriced: true, isFinal: false, isOver: false, isBeforeStored: false },
    isNeverSeen: false,
    ...part,
  };
}
