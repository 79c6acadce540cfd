// Reads the state of keys and rotations for `keys`, `status`, alerts and metrics.

import { sql } from "kysely";
import { needsAttention } from "../../keys/plan.ts";
import type { Day } from "../../usage/days.ts";
import type { Database } from "../connection/database.ts";
import type { Tx } from "../connection/transaction.ts";
import { type MetricSample, metricSamples } from "../schema.ts";

export type KeyStatus = {
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
export async function keyStatuses(db: Database): Promise<readonly KeyStatus[]> {
  const { rows } = await sql<KeyStatus>`
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

// Reads how old the keys are, and what a person should know of them.

export type RotationCounts = Readonly<
  Record<"pending" | "active" | "draining" | "orphan" | "dueForRemoval" | "longDueForRemoval", number>
> & {
  readonly rotation: string;
  readonly ageSeconds: number | null;
  readonly failedAttempts: number;
  readonly lastError: string | null;
  readonly fallback: boolean;
};

export async function rotationCounts(tx: Tx): Promise<readonly RotationCounts[]> {
  const { rows } = await sql<RotationCounts>`
    select r.name as rotation, r.failed_attempts as "failedAttempts", r.last_error as "lastError",
      extract(epoch from now() - max(coalesce(k.put_back_at, k.requested_at)) filter (where k.state = 'active'))::double precision
        as "ageSeconds",
      count(*) filter (where k.state = 'pending')::integer as pending,
      count(*) filter (where k.state = 'active')::integer as active,
      count(*) filter (where k.state = 'draining')::integer as draining,
      count(*) filter (where k.state = 'orphan')::integer as orphan,
      count(*) filter (where k.state <> 'retired' and k.due_for_removal_at <= now())::integer as "dueForRemoval",
      count(*) filter (where k.state <> 'retired' and k.due_for_removal_at <= now() - interval '1 hour')::integer
        as "longDueForRemoval",
      exists (
        select from usage_export.key_event e
        where e.rotation = r.name and e.event = 'fallback'
          and e.at > greatest(max(k.active_since) filter (where k.state = 'active'), now() - interval '7 days')
      ) as fallback
    from usage_export.rotation r
    left join usage_export.api_key k on k.rotation = r.name
    group by r.name
  `.execute(tx);
  return rows;
}

export async function rotationMetrics(tx: Tx): Promise<readonly MetricSample[]> {
  const rows = await rotationCounts(tx);
  return rows.flatMap(
    ({ rotation, ageSeconds, failedAttempts, fallback, dueForRemoval, pending, active, draining, orphan }) => [
      ...metricSamples("api_key_age_seconds", { rotation }, ageSeconds),
      ...Object.entries({ pending, active, draining, orphan }).flatMap(([state, keys]) =>
        metricSamples("api_keys", { rotation, state }, keys),
      ),
      ...metricSamples("api_keys_due_for_removal", { rotation }, dueForRemoval),
      ...metricSamples("api_key_fallback", { rotation }, fallback ? 1 : 0),
      ...metricSamples("rotation_failed_attempts", { rotation }, failedAttempts),
      ...metricSamples("rotation_needs_attention", { rotation }, needsAttention(failedAttempts) ? 1 : 0),
    ],
  );
}
