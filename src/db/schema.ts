// The private tables that the query builder is used on, as pg returns them with the parsers that connection/database.ts sets, and the
// text that a column can hold.

import type { ColumnType, Generated, GeneratedAlways } from "kysely";
import type { KeyState, PendingStep } from "../keys/ledger.ts";

/** numeric and bigint come as text, so that no digit is lost. */
type Numeric = string;
type Instant = ColumnType<Date, Date, Date>;

interface JobTable {
  kind: "export" | "rotation";
  name: string;
  scheduled_through: Date | null;
  paused_at: Date | null;
  paused_why: string | null;
  paused_by: string | null;
  resumed_at: Date | null;
  created_at: Generated<Date>;
}

interface RunTable {
  run_id: string;
  kind: "export" | "rotation";
  job: string;
  trigger: "schedule" | "manual" | "catchup" | "backfill";
  scheduled_for: Date | null;
  started_at: Generated<Instant>;
  heartbeat_at: Generated<Date>;
  finished_at: Date | null;
  status: Generated<"running" | "ok" | "failed" | "stopped" | "skipped">;
  requests_open: number | null;
  requests: Generated<number>;
  slices_planned: Generated<number>;
  slices_complete: Generated<number>;
  slices_suspect: Generated<number>;
  slices_failed: Generated<number>;
  slices_undated: Generated<number>;
  slices_stale: Generated<number>;
  rows_changed: Generated<Numeric | number>;
  error: string | null;
}

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
  "usage_export.job": JobTable;
  "usage_export.rotation": RotationTable;
  "usage_export.api_key": ApiKeyTable;
  "usage_export.key_delivery": KeyDeliveryTable;
  "usage_export.key_event": KeyEventTable;
  "usage_export.run": RunTable;
}

// Makes a reason for a person fit for a column: it may quote what a service sent, of any length.

const TEXT_LENGTH_MAX = 1_000;

/** Postgres takes no NUL in a text, and half of a character that was cut in two would become another one. */
export function storableText(text: string): string {
  return text
    .replaceAll("\0", "")
    .slice(0, TEXT_LENGTH_MAX)
    .replace(/[\ud800-\udbff]$/, "");
}
