// Reads the state of keys and rotations for `keys` and the health state.

import { type RawBuilder, sql } from "kysely";
import type { Day } from "../../usage/days.ts";
import type { Database } from "../connection/database.ts";

export type KeyStatus = {
  readonly rotation: string;
  readonly project: string;
  readonly projectId: string;
  readonly apiKeyId: string | null;
  readonly intentId: string;
  readonly comment: string;
  readonly state: string;
  readonly ageDays: number;
  readonly lastSeenInUse: Day | null;
  readonly dueForRemovalAt: Date | null;
  readonly note: string | null;
};

export const KEYS_PER_PAGE = 100;

export type KeyPage = { readonly keys: readonly KeyStatus[]; readonly found: number };

/** The first of those that still exist or may exist, and how many there are. */
export async function keyPage(db: Database): Promise<KeyPage> {
  const condition = sql`k.state <> 'retired'`;
  const { rows } = await sql<{ found: number }>`
    select count(*)::integer as found from usage_export.api_key k where ${condition}
  `.execute(db);
  return { keys: await selectKeys(db, condition, sql`limit ${KEYS_PER_PAGE}`), found: rows[0]?.found ?? 0 };
}

/** Every key that still exists or may exist. */
export async function keyStatuses(db: Database): Promise<readonly KeyStatus[]> {
  return selectKeys(db, sql`k.state <> 'retired'`, sql``);
}

/**
 * Keys by rotation, the newest first. The last use is the same as in bi.api_keys, which
 * aggregates all stored usage; here each key's days are read backwards until the first one with usage.
 */
async function selectKeys(
  db: Database,
  condition: RawBuilder<unknown>,
  part: RawBuilder<unknown>,
): Promise<readonly KeyStatus[]> {
  const { rows } = await sql<KeyStatus>`
    select k.rotation, k.project, k.project_id as "projectId", k.api_key_id as "apiKeyId", k.intent_id as "intentId", k.comment, k.state,
      floor(extract(epoch from now() - k.requested_at) / 86400)::integer as "ageDays", used.usage_date as "lastSeenInUse",
      k.due_for_removal_at as "dueForRemovalAt", k.note
    from (
      select k.* from usage_export.api_key k where ${condition}
      order by k.rotation, k.requested_at desc ${part}
    ) k
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
    order by k.rotation, k.requested_at desc
  `.execute(db);
  return rows;
}

/** What `keys` and `status` show of a rotation. */
export type RotationStatus = {
  readonly rotation: string;
  /** How many projects it is for, if it is for many: then the figures are those of all of them, and `ageDays` is that of the oldest key. */
  readonly projects?: number;
  /** The id of the key in use; null while there is none, and if there are many. */
  readonly apiKeyId: string | null;
  /** Days since the key in use was requested. */
  readonly ageDays: number | null;
  readonly failedAttempts: number;
  readonly lastError: string | null;
  /**
   * Why calls fell back to the previous key: how the service refused the key in use. The newest such event since that key became
   * active, of the last 7 days.
   */
  readonly fallback: string | null;
  readonly fallbackAt: Date | null;
};

export type RotationRow = RotationStatus & {
  /** Seconds since the key in use was requested, or since a person restored it. */
  readonly ageSeconds: number | null;
  /** Of the project whose keys it has. Null if it has none, and if it is for many projects. */
  readonly projectId: string | null;
  /**
   * The number of keys by state. `longDue` keys have been due for removal for more than an hour: a run
   * deletes at once what it may delete, so a run has decided to keep these.
   */
  readonly keys: Readonly<Record<"pending" | "active" | "draining" | "orphan" | "dueForRemoval" | "longDue", number>>;
};

export async function rotationRows(db: Database): Promise<readonly RotationRow[]> {
  // In one pass over the keys: one for each rotation would take 13 s with 5,000 rotations of three keys each.
  const { rows } = await sql<RotationRow>`
    with counted as (
      select rotation, max(project_id) as project_id, count(*) filter (where state = 'pending') as pending, count(*) filter (where state = 'active') as active,
        count(*) filter (where state = 'draining') as draining, count(*) filter (where state = 'orphan') as orphan,
        count(*) filter (where state <> 'retired' and due_for_removal_at <= now()) as due,
        count(*) filter (where state <> 'retired' and due_for_removal_at <= now() - interval '1 hour') as long_due
      from usage_export.api_key group by rotation
    )
    select r.name as rotation, used.api_key_id as "apiKeyId",
      floor(extract(epoch from now() - used.requested_at) / 86400)::integer as "ageDays",
      extract(epoch from now() - coalesce(used.put_back_at, used.requested_at))::double precision as "ageSeconds",
      c.project_id as "projectId",
      r.failed_attempts as "failedAttempts", r.last_error as "lastError", e.reason as fallback, e.at as "fallbackAt",
      json_build_object(
        'pending', coalesce(c.pending, 0), 'active', coalesce(c.active, 0), 'draining', coalesce(c.draining, 0),
        'orphan', coalesce(c.orphan, 0), 'dueForRemoval', coalesce(c.due, 0), 'longDue', coalesce(c.long_due, 0)
      ) as keys
    from usage_export.rotation r
    left join usage_export.api_key used on used.rotation = r.name and used.state = 'active'
    left join lateral (
      select reason, at from usage_export.key_event
      where rotation = r.name and event = 'fallback' and at > greatest(used.active_since, now() - interval '7 days')
      order by at desc limit 1
    ) e on true
    left join counted c on c.rotation = r.name
    order by r.name
  `.execute(db);
  return rows;
}

/** Only the fields of a RotationStatus. */
export function rotationStatus(row: RotationStatus): RotationStatus {
  const { rotation, projects, apiKeyId, ageDays, failedAttempts, lastError, fallback, fallbackAt } = row;
  return {
    rotation,
    ...(projects !== undefined && { projects }),
    apiKeyId,
    ageDays,
    failedAttempts,
    lastError,
    fallback,
    fallbackAt,
  };
}

export type KeyEventRow = {
  readonly at: Date;
  readonly rotation: string;
  /** The key's id at the service, or what its comment holds; null if the event is about no single key. */
  readonly key: string | null;
  readonly event: string;
  readonly actor: string;
  readonly reason: string;
};

/** The newest first. `search`: only those of which the rotation, the key, the event or the reason has it. */
export async function recentKeyEvents(db: Database, eventsMax: number): Promise<readonly KeyEventRow[]> {
  const { rows } = await sql<KeyEventRow>`
    select e.at, e.rotation, coalesce(k.api_key_id, e.intent_id) as key, e.event, e.actor, e.reason
    from usage_export.key_event e left join usage_export.api_key k on k.intent_id = e.intent_id
    order by e.event_id desc limit ${eventsMax}
  `.execute(db);
  return rows;
}
