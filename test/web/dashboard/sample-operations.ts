// What the dashboard shows where all is well, with what a test changes in it.

import type { DashboardJob, DashboardKey, DashboardRun, Operations, WorkerHealth } from "../../../src/health/state.ts";

export const NOW = new Date("2026-03-10T06:00:30Z");

export function operations(part: Partial<Operations> = {}): Operations {
  return {
    readAt: NOW,
    callsPausedUntil: undefined,
    jobs: [jobLine()],
    workers: [worker()],
    runs: [runLine()],
    slices: { complete: 60, suspect: 0, failed: 0, missing: 0 },
    causes: [],
    gaps: [],
    rotations: [{ rotation: "exporter", maxAgeDays: 30, warnings: [], keys: [keyLine()] }],
    queue: [],
    ...part,
  };
}

export function jobLine(part: Partial<DashboardJob> = {}): DashboardJob {
  return {
    kind: "export",
    job: "nightly",
    schedule: "15 2 * * *",
    timezone: "Europe/Vienna",
    lastRun: runLine(),
    nextRun: new Date("2026-03-11T01:15:00Z"),
    paused: undefined,
    overdueSince: undefined,
    needsWorker: true,
    failedRun: undefined,
    ...part,
  };
}

export function worker(part: Partial<WorkerHealth> = {}): WorkerHealth {
  return {
    ...{ host: "node-1", pid: 41, version: "1.2.3", state: "live", recent: true },
    ...{ startedAt: new Date("2026-03-01T12:00:00Z"), lastSeenAt: new Date("2026-03-10T06:00:02Z") },
    ...part,
  };
}

export function runLine(part: Partial<DashboardRun> = {}): DashboardRun {
  return {
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

export function keyLine(part: Partial<DashboardKey> = {}): DashboardKey {
  return {
    apiKeyId: "11111111-2222-3333-4444-555555555555",
    intentId: "a1b2c3",
    state: "active",
    ageDays: 12,
    lastSeenInUse: "2026-03-09",
    dueForRemovalAt: null,
    comment: "usage exporter [a1b2c3]",
    note: null,
    ...part,
  };
}
