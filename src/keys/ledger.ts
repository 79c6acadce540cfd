// The ledger's types: what is known about the keys of a rotation, and every kind of change.

import type { Secret } from "../secret.ts";

type KeyState = "pending" | "active" | "draining" | "retired" | "orphan";

/**
 * How far a pending key is:
 * - `intent`: the create may have been sent; nothing is known about the key
 * - `stored`: it exists, and its secret is sealed in the ledger
 * - `verified`: a call with it succeeded
 */
export type PendingStep = "intent" | "stored" | "verified";

export type LedgerKey = {
  /** Recorded before the create, and written into the key's comment. */
  readonly intentId: string;
  /** The service's identifier, if it is known. */
  readonly apiKeyId: string | undefined;
  readonly state: KeyState;
  readonly step: PendingStep | undefined;
  readonly comment: string;
  readonly requestedAt: Date;
  /** By the service's clock, if the service sent it. */
  readonly createdAt: Date | undefined;
  /** When the service lets it expire. */
  readonly expiresAt: Date | undefined;
  readonly activeSince: Date | undefined;
  /** When a rollback made it active again. */
  readonly putBackAt: Date | undefined;
  readonly drainingSince: Date | undefined;
  readonly dueForRemovalAt: Date | undefined;
  readonly scopesAsked: readonly string[];
  /** Empty if the service did not say. */
  readonly scopesGranted: readonly string[];
  /** The sinks that hold it, by sinkId. A sink holds one key at a time. */
  readonly deliveredTo: readonly string[];
  /** Why the key is in this state, if a reason was recorded. */
  readonly note: string | undefined;
};

export type Ledger = {
  /** Since the last success. */
  readonly failedAttempts: number;
  readonly lastError: string | undefined;
  /** The intentId of the key that a rollback is to make active again. */
  readonly rollbackTo: string | undefined;
  /** All but the retired ones, the oldest first. */
  readonly keys: readonly LedgerKey[];
};

export type NewKey = {
  readonly apiKeyId: string;
  readonly key: Secret;
  readonly scopes: readonly string[];
  /** A time as the service writes it; one that can't be parsed is ignored. */
  readonly created?: string | undefined;
};

/** One change: one transaction, with its event. */
export type LedgerChange =
  | { readonly kind: "intent"; readonly intentId: string; readonly comment: string }
  /** The service certainly made no key for the intent. */
  | { readonly kind: "not-created"; readonly intentId: string }
  /** The service made a key for the intent, or may have, and its secret is lost. */
  | { readonly kind: "orphan"; readonly intentId: string }
  | { readonly kind: "stored"; readonly intentId: string; readonly created: NewKey }
  | { readonly kind: "verified"; readonly intentId: string }
  | { readonly kind: "delivered"; readonly intentId: string; readonly sink: string }
  /** The key becomes active, and the one that was active drains. */
  | { readonly kind: "active"; readonly intentId: string; readonly putBack: boolean }
  /** A pending key that will never be used. */
  | { readonly kind: "abandoned"; readonly intentId: string }
  /** A person asked for this key to be active again. */
  | { readonly kind: "rollback"; readonly intentId: string }
  | { readonly kind: "due-for-removal"; readonly intentId: string }
  /** The key was due for removal, but it is still in use. */
  | { readonly kind: "in-use"; readonly intentId: string }
  /** The key is not deleted yet, for a reason that was not recorded before. */
  | { readonly kind: "kept"; readonly intentId: string }
  | { readonly kind: "retired"; readonly intentId: string }
  /** An orphan that was found at the service. */
  | { readonly kind: "found"; readonly intentId: string; readonly apiKeyId: string }
  | { readonly kind: "failed" }
  /** Resets the count of failed attempts. */
  | { readonly kind: "recovered" };

export function activeKey({ keys }: Ledger): LedgerKey | undefined {
  return keys.find(({ state }) => state === "active");
}
