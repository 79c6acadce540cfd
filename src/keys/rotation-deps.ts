// What a rotation needs from outside: jobs/rotation.ts wires it, a test gives its own.

import type { Logger } from "pino";
import type { Secret } from "../secret.ts";
import type { Ledger, LedgerChange, LedgerKey, NewKey } from "./ledger.ts";
import type { Clocks, Inspection } from "./plan.ts";
import type { RotationJob, Sink } from "./policy.ts";

export type RotationTask = { readonly job: RotationJob; readonly deps: RotationDeps; readonly signal: AbortSignal };

/** The ledger of one rotation, for the process that holds its lease. */
export type KeyLedger = {
  /** The ledger, and the time by the database's clock. */
  readonly read: () => Promise<{ readonly ledger: Ledger; readonly now: Date }>;
  /** Throws `stopped` if another process has taken over the rotation. */
  readonly write: (change: LedgerChange, reason: string) => Promise<void>;
  readonly openKey: (intentId: string) => Promise<OpenedKey>;
  /** Throws `stopped` if this process no longer has the rotation's lease. */
  readonly confirmLease: () => Promise<void>;
};

export type OpenedKey = { readonly apiKeyId: string; readonly key: Secret };

export type ServiceKey = { readonly apiKeyId: string; readonly comment: string };

/**
 * Whether a key was used in the days of its grace period. "no" only if the service's usage covers all these days, is recent, tells keys
 * apart and does not show this key. "unknown" if the service does not tell.
 */
export type LastUse = { readonly seen: "yes" | "no" | "unknown"; readonly text: string };

export type RotationDeps = {
  readonly ledger: KeyLedger;
  readonly newIntentId: () => string;
  readonly testSink: (sink: Sink) => Promise<void>;
  readonly deliver: (sink: Sink, key: OpenedKey) => Promise<void>;
  /** Checks that the active key works and is still where it was delivered. */
  readonly inspect: (key: LedgerKey) => Promise<Inspection>;
  /** The key to create with. It is found by harmless calls: they may be repeated with another key, a create may not. */
  readonly findCaller: () => Promise<Secret>;
  /** One POST. A failure says in `details.created` whether a key may have been made. */
  readonly create: (comment: string, caller: Secret) => Promise<NewKey>;
  /** A harmless call with the key, of the kind that its scopes (`granted`) allow. */
  readonly verify: (key: OpenedKey, granted: readonly string[]) => Promise<void>;
  /** Undefined if the service does not list its keys. */
  readonly list: () => Promise<readonly ServiceKey[] | undefined>;
  /** The ids of the keys that this rotation calls with, as far as the service tells. */
  readonly callerIds: () => Promise<readonly string[]>;
  readonly remove: (apiKeyId: string) => Promise<"deleted" | "absent">;
  readonly lastUse: (key: LedgerKey) => Promise<LastUse>;
  readonly clocks: () => Promise<Clocks>;
  readonly log: Logger;
};
