// What a rotation needs from outside, as functions: jobs/run-rotation.ts wires them, a test gives its own.

import type { Logger } from "pino";
import type { Secret } from "../secret.ts";
import type { Ledger, LedgerChange, LedgerKey, NewKey } from "./ledger.ts";
import type { Clocks, Inspection } from "./plan.ts";
import type { Sink } from "./policy.ts";

export type ServiceKey = { readonly apiKeyId: string; readonly comment: string };

/**
 * Whether a key was used in the days of its grace. "no" only if the service's usage covers all these days, is recent, tells keys
 * apart and does not show this key. "unknown" if the service does not tell.
 */
export type LastUse = { readonly seen: "yes" | "no" | "unknown"; readonly text: string };

export type RotationDeps = {
  /** With the ledger's clock at that moment. */
  readonly readLedger: () => Promise<{ readonly ledger: Ledger; readonly now: Date }>;
  /** Throws `stopped` where another process has taken the rotation over. */
  readonly writeLedger: (change: LedgerChange, reason: string) => Promise<void>;
  readonly newIntentId: () => string;
  /** Throws `stopped` where the rotation is not this process's any more. */
  readonly confirmLease: () => Promise<void>;
  readonly testSink: (sink: Sink) => Promise<void>;
  readonly deliver: (sink: Sink, key: Secret, apiKeyId: string) => Promise<void>;
  /** Checks that the key in use works and is still where it was delivered. */
  readonly inspect: (key: LedgerKey, signal: AbortSignal) => Promise<Inspection>;
  /** The key to create with, tried by a call that may be repeated. */
  readonly findCaller: (signal: AbortSignal) => Promise<Secret>;
  /** One POST. A failure says in `details.created` whether a key may have been made. */
  readonly create: (comment: string, caller: Secret, signal: AbortSignal) => Promise<NewKey>;
  readonly openKey: (intentId: string) => Promise<{ readonly apiKeyId: string; readonly key: Secret }>;
  /** A harmless call with the key, of the kind that it is for. */
  readonly verify: (key: Secret, apiKeyId: string, granted: readonly string[], signal: AbortSignal) => Promise<void>;
  /** Undefined where the service does not list its keys. */
  readonly list: (signal: AbortSignal) => Promise<readonly ServiceKey[] | undefined>;
  /** The ids of the keys that this rotation calls with, as far as the service tells. */
  readonly callerIds: (signal: AbortSignal) => Promise<readonly string[]>;
  readonly remove: (apiKeyId: string, signal: AbortSignal) => Promise<"deleted" | "absent">;
  readonly lastUse: (key: LedgerKey, signal: AbortSignal) => Promise<LastUse>;
  readonly clocks: (signal: AbortSignal) => Promise<Clocks>;
  readonly log: Logger;
};
