// A rotation job and a ledger for tests. A test gives only the fields that matter to it.

import type { RotationConfig, Sink } from "../../src/config/rotations.ts";
import type { LedgerKey, RotationState } from "../../src/keys/rotation-plan.ts";

export const NOW = new Date("2026-05-01T12:00:00Z");

const DAY_MS = 24 * 60 * 60 * 1000;

export function daysAgo(days: number, plusMs = 0): Date {
  return new Date(NOW.getTime() - days * DAY_MS + plusMs);
}

export const FILE: Sink = { file: "/run/exporter.key" };
export const COMMAND = { command: ["store-key", "exporter"], timeoutSeconds: 30 };

export const JOB: RotationConfig = {
  ...{ name: "exporter", schedule: "0 4 * * *", timezone: "UTC" },
  project: { id: "project-1", name: "production" },
  ...{ comment: "usage exporter", scopes: ["member"], tags: [] },
  ...{ maxAgeDays: 30, graceDays: 7, deliver: [FILE], retire: "keep" },
};

export const IN_FILE = ["file /run/exporter.key"];

/** A key in use since yesterday. */
export function key(fields: Partial<LedgerKey> = {}): LedgerKey {
  const { intentId = "ue-1" } = fields;
  return {
    ...{ intentId, apiKeyId: `id of ${intentId}`, state: "active", step: null, note: null },
    ...{ requestedAt: daysAgo(1), activeSince: daysAgo(1), expiresAt: null },
    ...{ rollbackAt: null, drainingSince: null, dueForRemovalAt: null },
    ...{ scopesAsked: ["member"], scopesGranted: ["member"], heldBy: IN_FILE },
    ...fields,
  };
}

export function pending(step: "intent" | "stored" | "verified", fields: Partial<LedgerKey> = {}): LedgerKey {
  const fresh = { intentId: "ue-new", requestedAt: daysAgo(0), activeSince: null, heldBy: [] };
  return key({ ...fresh, ...(step === "intent" && { apiKeyId: null }), ...fields, state: "pending", step });
}

/** A key that was in use until yesterday. */
export function draining(fields: Partial<LedgerKey> = {}): LedgerKey {
  const past = { intentId: "ue-0", requestedAt: daysAgo(31), activeSince: daysAgo(31), drainingSince: daysAgo(1) };
  return key({ ...past, heldBy: [], ...fields, state: "draining" });
}

export function orphan(fields: Partial<LedgerKey> = {}): LedgerKey {
  const lost = { intentId: "ue-lost", apiKeyId: null, activeSince: null, heldBy: [] };
  return key({ ...lost, ...fields, state: "orphan" });
}

export function ledger(keys: readonly LedgerKey[], fields: Partial<RotationState> = {}): RotationState {
  return { failedAttempts: 0, lastError: null, rollbackTo: null, ...fields, keys };
}
