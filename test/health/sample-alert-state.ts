// Situations in which all is well but for what a test says.

import {
  type AlertPhase,
  type AlertState,
  type Notification,
  notificationsOf,
  type RotationHealth,
  type RunResult,
  type UnreadSlice,
} from "../../src/health/alerts.ts";

export const FAILED: RunResult = {
  status: "failed",
  trigger: "schedule",
  startedAt: new Date("2026-03-17T02:15:40Z"),
  planned: 14,
  suspect: 0,
  failed: 2,
  error: "the service answered 503",
};

export const OK: RunResult = { ...FAILED, status: "ok", failed: 0, error: null };

export const ROTATION: RotationHealth = {
  rotation: "exporter",
  maxAgeDays: 30,
  retire: "keep",
  needsAttention: false,
  failedAttempts: 0,
  lastError: null,
  orphans: 0,
  dueForRemoval: 0,
  longDueForRemoval: 0,
  fallback: false,
  ageDays: 5,
};

export function exportOf(last: RunResult | undefined): AlertState["jobs"] {
  return [{ kind: "export", name: "nightly", last }];
}

export function gapsOf(slices: readonly UnreadSlice[] | undefined): AlertState["gaps"] {
  return [{ job: "nightly", slices }];
}

/** What is said, where `said` was said before. */
export function notices(
  situation: Partial<AlertState>,
  said: Readonly<Record<string, AlertPhase>> = {},
  scrub = (text: string) => text,
): readonly Notification[] {
  return notificationsOf({ jobs: [], gaps: [], rotations: [], ...situation }, new Map(Object.entries(said)), scrub);
}
