// Health states in which all is well, except for the parts that a test sets.

import type { Gap, LastOutcome, SeriesHealth } from "../../src/db/health.ts";
import type { RecentRun } from "../../src/db/jobs/recent-runs.ts";
import { conditionsOf } from "../../src/health/conditions.ts";
import { type Notification, notificationsOf, type Phase } from "../../src/health/notifications.ts";
import type { HealthState, JobHealth, RotationHealth, WorkerHealth } from "../../src/health/state.ts";
import type { Retire } from "../../src/keys/policy.ts";
import type { BudgetUse } from "../../src/usage/budgets.ts";
import { DAY_SECONDS } from "../../src/usage/days.ts";
import { type JobSeries, NO_SERIES } from "../../src/usage/plan.ts";

export const NOW = new Date("2026-03-10T06:00:30Z");

export function healthState(part: Partial<HealthState> = {}): HealthState {
  return {
    readAt: NOW,
    callPauses: [],
    jobs: [jobLine()],
    workers: [worker()],
    series: [],
    seriesCount: 0,
    projects: [],
    slices: { complete: 60, suspect: 0, failed: 0, missing: 0 },
    causes: [],
    gaps: [],
    gapsLeftOut: 0,
    rotations: [],
    queue: [],
    lists: [],
    budgets: [],
    anomalies: [],
    notRead: [],
    ...part,
  };
}

export function jobLine(part: Partial<JobHealth> = {}): JobHealth {
  return {
    kind: "export",
    job: "nightly",
    schedule: "15 2 * * *",
    timezone: "Europe/Vienna",
    lastRun: { ...runLine(), skippedSince: 0 },
    nextRun: new Date("2026-03-11T01:15:00Z"),
    firstUnplanned: new Date("2026-03-11T01:15:00Z"),
    paused: undefined,
    overdueSince: undefined,
    needsWorker: true,
    isInProgress: false,
    outcome: undefined,
    failedRun: undefined,
    lastSuccess: null,
    failures: 0,
    series: NO_SERIES,
    ...part,
  };
}

export function runLine(part: Partial<RecentRun> = {}): RecentRun {
  return {
    runId: "00000000-1111-2222-3333-444444444444",
    requests: 12,
    kind: "export",
    job: "nightly",
    trigger: "schedule",
    status: "ok",
    startedAt: new Date("2026-03-10T01:15:02Z"),
    finishedAt: new Date("2026-03-10T01:15:44Z"),
    planned: 60,
    complete: 60,
    suspect: 0,
    failed: 0,
    undated: 0,
    stale: 0,
    rowsChanged: 12_345,
    error: null,
    ...part,
  };
}

export function worker(part: Partial<WorkerHealth> = {}): WorkerHealth {
  return {
    ...{ host: "node-1", pid: 41, version: "1.2.3", state: "live", recent: true, refusal: undefined },
    ...{ startedAt: new Date("2026-03-01T12:00:00Z"), lastSeenAt: new Date("2026-03-10T06:00:02Z") },
    ...part,
  };
}

export function rotationLine(part: Partial<RotationHealth> = {}): RotationHealth {
  return {
    rotation: "exporter",
    configured: { maxAgeDays: 30, retire: "keep" },
    apiKeyId: "11111111-2222-3333-4444-555555555555",
    ageDays: 5,
    ageSeconds: 5 * DAY_SECONDS,
    projectId: null,
    failedAttempts: 0,
    lastError: null,
    fallback: null,
    fallbackAt: null,
    keys: { pending: 0, active: 1, draining: 0, orphan: 0, dueForRemoval: 0, longDue: 0 },
    warnings: [],
    ...part,
  };
}

// Parts of health states for tests of notifications.

export const FAILED: LastOutcome = {
  status: "failed",
  trigger: "schedule",
  startedAt: new Date("2026-03-17T02:15:40Z"),
  planned: 14,
  suspect: 0,
  failed: 2,
  error: "the service answered 503",
};

export const OK: LastOutcome = { ...FAILED, status: "ok", failed: 0, error: null };

export type UnreadSlice = { readonly series: string; readonly day: string; readonly status: Gap["status"] };

/** The facts about a rotation that tests change. */
export type RotationFacts = {
  readonly retire?: Retire;
  readonly failedAttempts?: number;
  readonly lastError?: string;
  readonly orphans?: number;
  readonly dueForRemoval?: number;
  readonly longDueForRemoval?: number;
  readonly fallback?: boolean;
  readonly ageDays?: number | null;
};

export function rotationOf(facts: RotationFacts = {}): RotationHealth {
  const { retire = "keep", failedAttempts = 0, lastError = null, fallback = false, ageDays = 5 } = facts;
  const { orphans = 0, dueForRemoval = 0, longDueForRemoval = 0 } = facts;
  return rotationLine({
    ...{ failedAttempts, lastError, ageDays, ageSeconds: ageDays === null ? null : ageDays * DAY_SECONDS },
    configured: { maxAgeDays: 30, retire },
    fallback: fallback ? "refused" : null,
    keys: { ...rotationLine().keys, orphan: orphans, dueForRemoval, longDue: longDueForRemoval },
  });
}

export function jobOf(kind: JobHealth["kind"], job: string, outcome: LastOutcome | undefined): JobHealth {
  return jobLine({ kind, job, outcome, series: kind === "export" ? seriesWith("key") : NO_SERIES });
}

/** A job that reads the series with this key alone. */
function seriesWith(key: string): JobSeries {
  return { has: (other) => other === key };
}

export function exportOf(outcome: LastOutcome | undefined): readonly JobHealth[] {
  return [jobOf("export", "nightly", outcome)];
}

export type HealthParts = {
  readonly jobs?: readonly JobHealth[];
  /** The gaps of the export. `slices` is undefined while a run of the export is in progress. */
  readonly gaps?: { readonly slices: readonly UnreadSlice[] | undefined };
  readonly rotations?: readonly RotationHealth[];
};

export function gapsOf(slices: readonly UnreadSlice[] | undefined): HealthParts["gaps"] & object {
  return { slices };
}

/** The notifications to send if `lastSent` was sent before. */
export function notificationsFor(
  { jobs = [], gaps, rotations = [] }: HealthParts,
  lastSent: Readonly<Record<string, Phase>> = {},
  scrub = (text: string) => text,
): readonly Notification[] {
  const known = gaps && !jobs.some(({ kind }) => kind === "export") ? [...jobs, ...exportOf(undefined)] : jobs;
  const isInProgress = gaps !== undefined && gaps.slices === undefined;
  const state = healthState({
    jobs: known.map((job) => ({ ...job, isInProgress })),
    gaps: gaps?.slices?.map(gapOf) ?? [],
    series: gaps?.slices?.map(seriesOf) ?? [],
    rotations,
  });
  return notified(state, lastSent, scrub);
}

/** The notifications to send about a state if `lastSent` was sent before. */
export function notified(
  state: HealthState,
  lastSent: Readonly<Record<string, Phase>> = {},
  scrub = (text: string) => text,
): readonly Notification[] {
  return notificationsOf(conditionsOf(state), new Map(Object.entries(lastSent)), scrub);
}

/** One for each slice, though several of them may be of one series. */
function seriesOf(slice: UnreadSlice): SeriesHealth {
  const { key, project, grouping, filter } = gapOf(slice);
  return {
    ...{ key, project, grouping, filter, source: "usage", seriesId: 1, isActive: true, complete: 0, suspect: 0 },
    ...{ missing: 0, failed: 0, [slice.status]: 1, freshThrough: null },
  };
}

function gapOf({ series, day, status }: UnreadSlice): Gap {
  const [project = "", grouping = "", filter = ""] = series.split(" / ");
  return { key: "key", project, grouping, filter, status, from: day, to: day, error: null };
}

/** A budget of which a threshold is reached. */
export function makeBudgetUse(part: Partial<BudgetUse> = {}): BudgetUse {
  return {
    ...{
      name: "limit",
      projectIds: ["project-1"],
      scope: "all",
      scopeValue: null,
      metric: "cost",
      currency: "USD",
      costSource: "estimated",
      period: "month",
      start: "2026-03-01",
      end: "2026-03-31",
    },
    ...{ amount: "1000", used: "834.5", percent: "83.45", thresholds: ["50", "80", "100"], reached: ["50", "80"] },
    ...{ forecast: "1120.4", forecastLow: "1050", forecastHigh: "1190", forecastPercent: "112.04" },
    ...{ daysMissing: 1, daysNotFinal: 2, hasUnpriced: true, isFinal: false, isOver: false, isBeforeStored: false },
    ...{ minimum: null, isNeverSeen: false },
    ...part,
  };
}
