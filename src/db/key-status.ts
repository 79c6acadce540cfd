// What `keys` and `status` read of the key ledger.

import { sql } from "kysely";
import type { Day } from "../usage/day.ts";
import type { Database } from "./database.ts";
import { inTransaction } from "./transaction.ts";

export type KeyRow = {
  readonly rotation: string;
  readonly project: string;
  readonly apiKeyId: string | null;
  readonly intentId: string;
  readonly comment: string;
  readonly state: string;
  readonly ageDays: number;
  readonly lastSeenInUse: Day | null;
  readonly dueForRemovalAt: Date | null;
  readonly note: string | null;
};

/** Every key that still exists or may exist, by rotation, the newest first. */
export async function keyRows(db: Database): Promise<readonly KeyRow[]> {
  const { rows } = await inTransaction(db, (tx) =>
    sql<KeyRow>`
      select rotation, project, api_key_id as "apiKeyId", intent_id as "intentId", comment, state,
        floor(age_days)::integer as "ageDays", last_seen_in_use as "lastSeenInUse",
        due_for_removal_at as "dueForRemovalAt", note
      from bi.api_keys where state <> 'retired' order by rotation, requested_at desc
    `.execute(tx),
  );
  return rows;
}

export type RotationStatus = {
  readonly rotation: string;
  /** Of the key in use; null while there is none. */
  readonly apiKeyId: string | null;
  readonly ageDays: number | null;
  readonly failedAttempts: number;
  readonly lastError: string | null;
  /** Why the key in use was not the one that was used, newest first, of the last week and this key. */
  readonly fallback: string | null;
  readonly fallbackAt: Date | null;
};

export async function rotationStatuses(db: Database): Promise<readonly RotationStatus[]> {
  const { rows } = await inTransaction(db, (tx) =>
    sql<RotationStatus>`
      select r.name as rotation, k.api_key_id as "apiKeyId",
        floor(extract(epoch from now() - k.requested_at) / 86400)::integer as "ageDays",
        r.failed_attempts as "failedAttempts", r.last_error as "lastError", e.reason as fallback, e.at as "fallbackAt"
      from usage_export.rotation r
      left join usage_export.api_key k on k.rotation = r.name and k.state = 'active'
      left join lateral (
        select reason, at from usage_export.key_event
        where rotation = r.name and event = 'fallback' and at > greatest(k.active_since, now() - interval '7 days')
        order by at desc limit 1
      ) e on true
      order by r.name
    `.execute(tx),
  );
  return rows;
}
