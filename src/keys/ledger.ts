// What is known of the keys of a rotation.

import type { Secret } from "../secret.ts";

export type KeyState = "pending" | "active" | "draining" | "retired" | "orphan";

/**
 * How far a pending key is:
 * - `intent`: it may have been asked for; nothing of it is known
 * - `stored`: it exists, and its secret is sealed in the ledger
 * - `verified`: the service takes it
 */
export type PendingStep = "intent" | "stored" | "verified";

export type LedgerKey = {
  /** Recorded before the create, and written into the key's comment. */
  readonly intentId: string;
  /** The service's identifier; undefined while it is not known. */
  readonly apiKeyId: string | undefined;
  readonly state: KeyState;
  readonly step: PendingStep | undefined;
  readonly comment: string;
  readonly requestedAt: Date;
  readonly activeSince: Date | undefined;
  readonly drainingSince: Date | undefined;
  readonly dueForRemovalAt: Date | undefined;
  readonly scopesAsked: readonly string[];
  readonly scopesGranted: readonly string[];
  /** The sinks that hold it, by sinkId. A sink holds one key. */
  readonly deliveredTo: readonly string[];
};

export type Ledger = {
  readonly failedAttempts: number;
  readonly lastError: string | undefined;
  /** The key that a person asked to have back. */
  readonly rollbackTo: string | undefined;
  /** All but the retired ones, the oldest first. */
  readonly keys: readonly LedgerKey[];
};

/** A key with its secret, as the keystore gives it out. */
export type KeptKey = { readonly intentId: string; readonly apiKeyId: string; readonly key: Secret };
