// The ledger's types: what is known of the keys of a rotation, and every change of it.

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
  /** By the service's clock; undefined if the service did not tell. */
  readonly createdAt: Date | undefined;
  /** When it ends by itself. */
  readonly expiresAt: Date | undefined;
  readonly activeSince: Date | undefined;
  /** When a person had it put back. */
  readonly putBackAt: Date | undefined;
  readonly drainingSince: Date | undefined;
  readonly dueForRemovalAt: Date | undefined;
  readonly scopesAsked: readonly string[];
  /** Empty where the service did not say. */
  readonly scopesGranted: readonly string[];
  /** The sinks that hold it, by sinkId. A sink holds one key. */
  readonly deliveredTo: readonly string[];
  /** Why the key is in this state, if a reason was recorded. */
  readonly note: string | undefined;
};

export type Ledger = {
  /** Since the last time that all was well. */
  readonly failedAttempts: number;
  readonly lastError: string | undefined;
  /** The key that a person asked to have back. */
  readonly rollbackTo: string | undefined;
  /** All but the retired ones, the oldest first. */
  readonly keys: readonly LedgerKey[];
};

export type NewKey = {
  readonly apiKeyId: string;
  readonly key: Secret;
  readonly scopes: readonly string[];
  /** As the service says; never relied on. */
  readonly created?: string | undefined;
};

/** One change. All that it stands for happens in one transaction, with an event, or not at all. */
export type LedgerChange =
  | { readonly kind: "intent"; readonly intentId: string; readonly comment: string }
  /** The intent surely made no key. */
  | { readonly kind: "not-created"; readonly intentId: string }
  /** The intent made a key, or may have, and its secret is lost. */
  | { readonly kind: "orphan"; readonly intentId: string }
  | { readonly kind: "stored"; readonly intentId: string; readonly created: NewKey }
  | { readonly kind: "verified"; readonly intentId: string }
  | { readonly kind: "delivered"; readonly intentId: string; readonly sink: string }
  /** In use from now on; the one before it drains. */
  | { readonly kind: "active"; readonly intentId: string; readonly putBack: boolean }
  /** A pending key that will never be used. */
  | { readonly kind: "abandoned"; readonly intentId: string }
  /** A person wants it back. */
  | { readonly kind: "rollback"; readonly intentId: string }
  | { readonly kind: "due-for-removal"; readonly intentId: string }
  /** The key was due for removal, but it is still in use. */
  | { readonly kind: "in-use"; readonly intentId: string }
  /** The key is not deleted yet, for a reason that is new. */
  | { readonly kind: "kept"; readonly intentId: string }
  | { readonly kind: "retired"; readonly intentId: string }
  /** An orphan that was found at the service. */
  | { readonly kind: "found"; readonly intentId: string; readonly apiKeyId: string }
  | { readonly kind: "failed" }
  /** Nothing is wrong any more. */
  | { readonly kind: "recovered" };

export function activeKey({ keys }: Ledger): LedgerKey | undefined {
  return keys.find(({ state }) => state === "active");
}
