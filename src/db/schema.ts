// The tables of the key ledger for the query builder: the types of their values are those that pg returns with the parsers of
// connection/database.ts. Also the name of the queue's schema, and storableText.

import type { Generated, GeneratedAlways } from "kysely";
import type { KeyState, PendingStep } from "../keys/ledger.ts";

/** pg returns numeric and bigint as text, so that no digit is lost. */
type Numeric = string;

interface RotationTable {
  name: string;
  lease_owner: string | null;
  lease_until: Date | null;
  fence: Generated<Numeric>;
  failed_attempts: Generated<number>;
  last_error: string | null;
  rollback_to: string | null;
}

interface ApiKeyTable {
  intent_id: string;
  rotation: string;
  project_id: string;
  project: string;
  api_key_id: string | null;
  state: KeyState;
  step: PendingStep | null;
  comment: string;
  scopes_asked: readonly string[];
  scopes_granted: readonly string[] | null;
  sealed: string | null;
  master_key: string | null;
  requested_at: Generated<Date>;
  created_at: Date | null;
  expires_at: Date | null;
  verified_at: Date | null;
  active_since: Date | null;
  put_back_at: Date | null;
  draining_since: Date | null;
  due_for_removal_at: Date | null;
  retired_at: Date | null;
  note: string | null;
}

interface KeyDeliveryTable {
  rotation: string;
  sink: string;
  intent_id: string;
  delivered_at: Generated<Date>;
}

interface KeyEventTable {
  event_id: GeneratedAlways<Numeric>;
  change_id: string | null;
  at: Generated<Date>;
  rotation: string;
  intent_id: string | null;
  event: string;
  actor: string;
  reason: string;
}

/** The schema that pg-boss manages. */
export const QUEUE_SCHEMA = "usage_export_queue";

export interface Tables {
  "usage_export.rotation": RotationTable;
  "usage_export.api_key": ApiKeyTable;
  "usage_export.key_delivery": KeyDeliveryTable;
  "usage_export.key_event": KeyEventTable;
}

const TEXT_LENGTH_MAX = 1_000;

/**
 * Cuts a text, which may quote the service, and removes what Postgres does not accept in it: NUL, and the half of a surrogate pair that
 * the cut leaves.
 */
export function storableText(text: string): string {
  return storableStart(text, TEXT_LENGTH_MAX);
}

/** The same for another length. No parameter of storableText, which is passed to `map`: that would pass an index as the length. */
export function storableStart(text: string, lengthMax: number): string {
  return text
    .replaceAll("\0", "")
    .slice(0, lengthMax)
    .replace(/[\ud800-\udbff]$/, "");
}
