// Situations in which all is well but for what a test says.

import type { NoticeState } from "../../src/monitor/notice-texts.ts";
import { type Notice, noticesOf } from "../../src/monitor/notices.ts";
import type { GapSlice, Outcome, RotationState, Situation } from "../../src/monitor/situation.ts";

export const FAILED: Outcome = {
  status: "failed",
  trigger: "schedule",
  startedAt: new Date("2026-03-17T02:15:40Z"),
  planned: 14,
  suspect: 0,
  failed: 2,
  error: "the service answered 503",
};

export const OK: Outcome = { ...FAILED, status: "ok", failed: 0, error: null };

export const ROTATION: RotationState = {
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

export function exportOf(last: Outcome | undefined): Situation["jobs"] {
  return [{ kind: "export", name: "nightly", last }];
}

export function gapsOf(slices: readonly GapSlice[] | undefined): Situation["gaps"] {
  return [{ job: "nightly", slices }];
}

/** What is said, where `said` was said before. */
export function notices(
  situation: Partial<Situation>,
  said: Readonly<Record<string, NoticeState>> = {},
  scrub = (text: string) => text,
): readonly Notice[] {
  return noticesOf({ jobs: [], gaps: [], rotations: [], ...situation }, new Map(Object.entries(said)), scrub);
}
