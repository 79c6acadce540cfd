// What `keys` and `status` read of the key ledger.

import { sql } from "kysely";
import type { Day } from "../usage/day.ts";
import type { Database } from "./database.ts";

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

/**
 * Every key that still exists or may exist, by rotation, the newest first. As bi.api_keys, which looks for the last use of
 * a key in all usage there is: here its days are looked through backwards.
 */
export async function keyRows(db: Database): Promise<readonly KeyRow[]> {
  const { rows } = await sql<KeyRow>`
    select k.rotation, k.project, k.api_key_id as "apiKeyId", k.intent_id as "intentId", k.comment, k.state,
      floor(extract(epoch from now() - k.requested_at) / 86400)::integer as "ageDays", used.usage_date as "lastSeenInUse",
      k.due_for_removal_at as "dueForRemovalAt", k.note
    from usage_export.api_key k
    left join lateral (
      select sl.usage_date
      from usage_export.series s
      join usage_export.slice sl using (series_id)
      join usage_export.group_value g on g."grouping" = 'accessor' and g.display = k.api_key_id
      join usage_export.snapshot_row r
        on r.series_id = sl.series_id and r.usage_date = sl.usage_date and r.group_id = g.group_id
      where s.project_id = k.project_id and s."grouping" = 'accessor' and s.filter_key = '{}' and s.superseded_at is null
        and r.requests > 0 and not r.gone
      order by sl.usage_date desc limit 1
    ) used on true
    where k.state <> 'retired' order by k.rotation, k.requested_at desc
  `.execute(db);
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
  const { rows } = await sql<RotationStatus>`
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
  `.execute(db);
  return rows;
}
