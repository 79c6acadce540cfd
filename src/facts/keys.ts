// The keys that rotations made, and the health of each rotation.

import { sql } from "kysely";
import type { RotationConfig } from "../config/rotations.ts";
import type { Database } from "../db/connection/database.ts";
import { BRIEF_SECONDS, readAtOneMoment } from "../db/connection/transaction.ts";
import { instantText } from "../show/format.ts";
import type { Day } from "../usage/days.ts";

export type KeyStatus = {
  /** The name of its rotation in the configuration. */
  readonly rotation: string;
  /** The name of its rotation in the ledger; it contains the project if the rotation is for many projects. */
  readonly ledgerName: string;
  readonly isForMany: boolean;
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

/** The keys that may still exist, at most `keysMax`, by rotation, the newest first. Faster than bi.api_keys, which reads the usage of all keys. */
export async function keyStatuses(db: Database, keysMax: number | null = null): Promise<readonly KeyStatus[]> {
  const { rows } = await sql<KeyStatus>`
    select k.rotation as "ledgerName", coalesce(k.job_name, k.rotation) as rotation, k.job_name is not null as "isForMany",
      coalesce(k.project_now, k.project) as project, k.project_id as "projectId", k.api_key_id as "apiKeyId", k.intent_id as "intentId", k.comment, k.state,
      floor(extract(epoch from now() - k.requested_at) / 86400)::integer as "ageDays", used.usage_date as "lastSeenInUse",
      k.due_for_removal_at as "dueForRemovalAt", k.note
    from (
      select k.*, r.job_name, r.project as project_now from usage_export.api_key k join usage_export.rotation r on r.name = k.rotation
      where k.state <> 'retired'
      order by k.rotation, k.requested_at desc limit ${keysMax}
    ) k
    left join lateral (
      select sl.usage_date
      from usage_export.series s
      join usage_export.slice sl using (series_id)
      join usage_export.group_value g on g."grouping" = 'accessor' and g.display = k.api_key_id
      join usage_export.slice_row r
        on r.series_id = sl.series_id and r.usage_date = sl.usage_date and r.group_id = g.group_id
      where s.project_id = k.project_id and s."grouping" = 'accessor' and s.filter_key = '{}' and s.superseded_at is null
        and r.requests > 0 and not r.gone
      order by sl.usage_date desc limit 1
    ) used on true
    order by k.rotation, k.requested_at desc
  `.execute(db);
  return rows;
}

export type RotationRow = {
  readonly rotation: string;
  readonly ledgerName: string;
  /** Null if the rotation is not for many projects, or if `mergeRotations` merged the rows of its projects. */
  readonly project: string | null;
  /** The id of the key in use; null if there is none, or if `mergeRotations` made one row of many projects. */
  readonly apiKeyId: string | null;
  /** How long ago the key in use was requested, or a rollback made it active again. */
  readonly ageDays: number | null;
  readonly ageSeconds: number | null;
  readonly failedAttempts: number;
  readonly lastError: string | null;
  /** Why a call used another key than the one in use: the newest such event since the key in use became active, at most 7 days old. */
  readonly fallback: string | null;
  readonly fallbackAt: Date | null;
  readonly keys: Readonly<Record<"pending" | "active" | "draining" | "orphan" | "dueForRemoval", number>>;
};

export function fallbackText({ fallback, fallbackAt }: Pick<RotationRow, "fallback" | "fallbackAt">): string {
  const at = fallbackAt && instantText(fallbackAt);
  return `the key in use did not work at ${at}, so calls used another key: ${fallback}; see usage-export keys`;
}

/** A rotation for many projects has a row for each of them. */
export async function rotationRows(db: Database): Promise<readonly RotationRow[]> {
  // One pass counts the keys of all rotations: a pass for each rotation would take 13 s with 5,000 rotations of three keys each.
  const { rows } = await sql<RotationRow>`
    with counted as (
      select r.name, json_build_object(
        'pending', count(*) filter (where state = 'pending'), 'active', count(*) filter (where state = 'active'),
        'draining', count(*) filter (where state = 'draining'), 'orphan', count(*) filter (where state = 'orphan'),
        'dueForRemoval', count(*) filter (where state <> 'retired' and due_for_removal_at <= now())
      ) as keys
      from usage_export.rotation r left join usage_export.api_key k on k.rotation = r.name group by r.name
    )
    select coalesce(r.job_name, r.name) as rotation, r.name as "ledgerName",
      case when r.job_name is not null then r.project end as project, in_use.api_key_id as "apiKeyId",
      floor(in_use.age_seconds / 86400)::integer as "ageDays", in_use.age_seconds as "ageSeconds",
      r.failed_attempts as "failedAttempts", r.last_error as "lastError", e.reason as fallback, e.at as "fallbackAt", c.keys
    from usage_export.rotation r join counted c using (name)
    left join (
      select *, extract(epoch from now() - coalesce(rollback_at, requested_at))::double precision as age_seconds
      from usage_export.api_key where state = 'active'
    ) in_use on in_use.rotation = r.name
    left join lateral (
      select reason, at from usage_export.key_event
      where rotation = r.name and event = 'fallback' and at > greatest(in_use.active_since, now() - interval '7 days')
      order by at desc limit 1
    ) e on true
    order by r.name
  `.execute(db);
  return rows;
}

export type RotationHealth = RotationRow & {
  /** How many projects it is for, if many were merged. */
  readonly projects?: number;
  /** Undefined if it is not configured any more. */
  readonly configured: Pick<RotationConfig, "maxAgeDays" | "retire"> | undefined;
};

export async function rotationHealth(db: Database, rotations: readonly RotationConfig[]) {
  const settings = new Map(rotations.map((one) => [one.name, one]));
  return (await rotationRows(db)).map((row): RotationHealth => {
    // A RotationConfig is for one project, and its `name` is the one in the ledger.
    const configured = settings.get(row.ledgerName);
    if (configured) return { ...row, configured };
    const rotation = row.project === null ? row.rotation : `${row.rotation}, projects no longer in it`;
    // A rotation that is not configured runs no more, so nothing could end its failures.
    const noFailures = { failedAttempts: 0, lastError: null, fallback: null, fallbackAt: null };
    return { ...row, ...noFailures, rotation, configured: undefined };
  });
}

/** One entry for each rotation, and one for projects no longer in it. Adds up keys; keeps the highest age and failures and the newest fallback. */
export function mergeRotations(rotations: readonly RotationHealth[]): readonly RotationHealth[] {
  // A rotation that is not for many projects is a group of its own.
  const groups = Map.groupBy(rotations, (one) => (one.project === null ? one : one.rotation));
  return [...groups.values()].flatMap((members): readonly RotationHealth[] => {
    const [first] = members;
    if (!first || first.project === null) return members;
    const maxBy = (value: (one: RotationHealth) => number) => members.reduce((a, b) => (value(b) > value(a) ? b : a));
    const { ageDays, ageSeconds } = maxBy((one) => one.ageSeconds ?? -1);
    const { failedAttempts, lastError } = maxBy((one) => one.failedAttempts);
    const { fallback, fallbackAt } = maxBy((one) => Number(one.fallbackAt));
    const keys = { ...first.keys };
    for (const state of Object.keys(keys) as (keyof typeof keys)[])
      keys[state] = members.reduce((total, one) => total + one.keys[state], 0);
    const merged = { projects: members.length, project: null, apiKeyId: null, keys };
    return [{ ...first, ...merged, ageDays, ageSeconds, failedAttempts, lastError, fallback, fallbackAt }];
  });
}

export const KEYS_SHOWN_MAX = 100;
const EVENTS_SHOWN_MAX = 50;

export type KeysData = Awaited<ReturnType<typeof readKeys>>;

/** The keys that a rotation makes for one project, or a rotation that has no keys. */
export type RotationKeys = {
  readonly rotation: string;
  /** Undefined if the rotation is not for many projects, or has no keys. */
  readonly project?: string | undefined;
  /** Null if it is not configured any more. */
  readonly maxAgeDays: number | null;
  /** The newest first. */
  readonly keys: readonly KeyStatus[];
};

/** `rotations`: one for each project, named as in the ledger. `file.rotations`: as in the configuration file, with the names there. */
type ConfiguredRotations = {
  readonly rotations: readonly RotationConfig[];
  readonly file: { readonly rotations: readonly Pick<RotationConfig, "name" | "maxAgeDays">[] };
};

/** Reads the first `KEYS_SHOWN_MAX` keys by rotation, the configured rotations that have no key, and the newest events. */
export async function readKeys(db: Database, config: ConfiguredRotations) {
  const read = async (tx: Database) =>
    [await keyStatuses(tx, KEYS_SHOWN_MAX + 1), await rotationsWithKeys(tx), await newestEvents(tx)] as const;
  const [keys, withKeys, events] = await readAtOneMoment(db, read, BRIEF_SECONDS);
  const maxAges = new Map(config.rotations.map(({ name, maxAgeDays }) => [name, maxAgeDays]));
  const byName = Map.groupBy(keys.slice(0, KEYS_SHOWN_MAX), ({ ledgerName }) => ledgerName);
  const shown = [...byName].flatMap(([name, ofRotation]): RotationKeys[] => {
    const [newest] = ofRotation;
    if (!newest) return [];
    const project = newest.isForMany ? newest.project : undefined;
    return [{ rotation: newest.rotation, project, maxAgeDays: maxAges.get(name) ?? null, keys: ofRotation }];
  });
  const without = config.file.rotations.filter(({ name }) => !withKeys.has(name));
  const keyless = without.map(({ name, maxAgeDays }): RotationKeys => ({ rotation: name, maxAgeDays, keys: [] }));
  return { rotations: [...keyless, ...shown], hasMore: keys.length > KEYS_SHOWN_MAX, events };
}

/** Returns the rotations' names as in the configuration, not as in the ledger. */
async function rotationsWithKeys(db: Database): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ name: string }>`
    select distinct coalesce(r.job_name, r.name) as name
    from usage_export.rotation r join usage_export.api_key k on k.rotation = r.name where k.state <> 'retired'
  `.execute(db);
  return new Set(rows.map(({ name }) => name));
}

/** `key` is the key's id at the service or, while that is unknown, its intent id; null if the event is not about one key. */
async function newestEvents(db: Database) {
  return db
    .selectFrom("usage_export.key_event as e")
    .leftJoin("usage_export.api_key as k", "k.intent_id", "e.intent_id")
    .select(["at", "e.rotation", "event", "actor", "reason"])
    .select(({ fn }) => fn.coalesce("api_key_id", "e.intent_id").as("key"))
    .orderBy("event_id", "desc")
    .limit(EVENTS_SHOWN_MAX)
    .execute();
}
