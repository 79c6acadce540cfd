// The ledger's types: what is known about the keys of a rotation, and every kind of change.

import type { Secret } from "../secret.ts";

type KeyState = "pending" | "active" | "draining" | "retired" | "orphan";

/**
 * How far a pending key is:
 * - `intent`: the create may have been sent; nothing is known about the key
 * - `stored`: it exists, and its secret is sealed in the ledger
 * - `verified`: a call with it succeeded
 */
type PendingStep = "intent" | "stored" | "verified";

export type LedgerKey = {
  /** Recorded before the create, and written into the key's comment. */
  readonly intentId: string;
  /** The service's identifier; null if it is not known. */
  readonly apiKeyId: string | null;
  readonly state: KeyState;
  readonly step: PendingStep | null;
  readonly requestedAt: Date;
  /** When the service lets it expire. */
  readonly expiresAt: Date | null;
  readonly activeSince: Date | null;
  /** When a rollback made it active again. */
  readonly rollbackAt: Date | null;
  readonly drainingSince: Date | null;
  readonly dueForRemovalAt: Date | null;
  readonly scopesAsked: readonly string[];
  /** Empty if the service did not say. */
  readonly scopesGranted: readonly string[];
  /** The sinks that hold it, by sinkId. A sink holds one key at a time. */
  readonly deliveredTo: readonly string[];
  /** Why the key is in this state, if a reason was recorded. */
  readonly note: string | null;
};

export type Ledger = {
  /** Since the last success. */
  readonly failedAttempts: number;
  readonly lastError: string | null;
  /** The intentId of the key that a rollback is to make active again. */
  readonly rollbackTo: string | null;
  /** All but the retired ones, the oldest first. */
  readonly keys: readonly LedgerKey[];
};

export type NewKey = {
  readonly apiKeyId: string;
  readonly key: Secret;
  /** The granted scopes. The service may order or expand the requested ones; empty if it does not return them. */
  readonly scopes: readonly string[];
  /** By the service's clock, if it sent the time. */
  readonly created?: Date | undefined;
};

/**
 * One change: one transaction, with its event.
 * - `not-created`: the service certainly made no key for the intent
 * - `orphan`: the service made a key for the intent, or may have, and its secret is lost
 * - `found`: the service lists the orphan
 * - `active`: the key becomes active, and the one that was active drains
 * - `abandoned`: a pending key that will never be used
 * - `rollback`: a person asked for this key to be active again
 * - `in-use`: the key was due for removal, but it is still in use
 * - `kept`: the key is not deleted yet, for a reason that was not recorded before
 * - `recovered`: resets the count of failed attempts
 */
export type LedgerChange =
  | { readonly kind: "intent"; readonly intentId: string; readonly comment: string }
  | { readonly kind: "stored"; readonly intentId: string; readonly created: NewKey }
  | { readonly kind: "delivered"; readonly intentId: string; readonly sink: string }
  | { readonly kind: "active"; readonly intentId: string; readonly isRollback: boolean }
  | { readonly kind: "found"; readonly intentId: string; readonly apiKeyId: string }
  | { readonly kind: "not-created" | "rollback" | KeyChange; readonly intentId: string }
  | { readonly kind: "failed" | "recovered" };

/** The changes that only set columns of the key. */
export type KeyChange = "orphan" | "verified" | "abandoned" | "due-for-removal" | "in-use" | "kept" | "retired";

export function activeKey({ keys }: Ledger): LedgerKey | undefined {
  return keys.find(({ state }) => state === "active");
}
