// Stores the projects that the service has listed. None is ever removed, so that a project that comes back is known again. The column `list` names
// the key that reads the list, such as "env NAME" (`keyName` in config/projects.ts). `last_seen_at` is set only while the list lacks the project.

import { sql } from "kysely";
import { storableText } from "../text.ts";
import type { KnownProject, Project } from "../usage/series.ts";
import type { Database } from "./connection/database.ts";
import { execute, inTransaction, type Tx } from "./connection/transaction.ts";

/** Every project of every list, including those that have vanished. */
export async function storedProjects(db: Database): Promise<readonly KnownProject[]> {
  const { rows } = await sql<KnownProject>`
    select list as "keyName", project_id as id, name, named_at as "namedAt", vanished_at as "vanishedAt"
    from usage_export.discovered_project order by list, first_seen_at, project_id
  `.execute(db);
  return rows;
}

export type ListReading = {
  readonly keyName: string;
  readonly listed: readonly Project[];
  /** When the reading began, by the database's clock. */
  readonly readAt: Date;
  /** A person confirmed that the list is right, however short it is. */
  readonly isConfirmed?: boolean;
};

/** `waiting` are missing from a list in doubt. They count as listed until a later reading confirms that they are gone. */
export type ListChange = Readonly<Record<"added" | "vanished" | "waiting", readonly Project[]>>;

/** If a reading of the same list at least this much later lacks the project again, the project is gone. */
const CONFIRM_AFTER_MS = 60 * 60_000;

/**
 * Returns undefined if a newer list is stored already. A list is in doubt if it lacks more than half of the projects listed before: it may be
 * cut, or another key may have read it. A doubtful list adds and removes no project until a later list or a person confirms it.
 */
export async function storeReading(db: Database, reading: ListReading): Promise<ListChange | undefined> {
  const { keyName, listed, readAt, isConfirmed } = reading;
  return inTransaction(db, async (tx) => {
    const lastReadAt = await lockList(tx, keyName);
    if (lastReadAt !== null && lastReadAt >= readAt) return undefined;
    const known = await tx
      .selectFrom("usage_export.discovered_project")
      .select(["project_id as id", "name", "missing_since as missingSince", "vanished_at as vanishedAt"])
      .where("list", "=", keyName)
      .execute();
    const listedIds = new Set(listed.map(({ id }) => id));
    const current = known.filter(({ vanishedAt }) => vanishedAt === null);
    const missing = current.filter(({ id }) => !listedIds.has(id));
    const isInDoubt = !isConfirmed && missing.length * 2 > current.length;
    const isGone = (since: Date | null) => since !== null && readAt.getTime() - since.getTime() >= CONFIRM_AFTER_MS;
    const waiting = missing.filter(({ missingSince }) => isInDoubt && !isGone(missingSince));
    const vanished = missing.filter((project) => !waiting.includes(project));
    const currentIds = new Set(current.map(({ id }) => id));
    const believed = waiting.length > 0 ? listed.filter(({ id }) => currentIds.has(id)) : listed;
    const changedCount = await writeListed(tx, keyName, believed, readAt);
    await sql`
      update usage_export.discovered_project
      set last_seen_at = coalesce(last_seen_at, ${lastReadAt}::timestamptz),
        missing_since = case when project_id = any(${idsOf(waiting)}) then coalesce(missing_since, ${readAt}) end,
        vanished_at = case when project_id <> all(${idsOf(waiting)}) then ${readAt}::timestamptz end
      where list = ${keyName} and project_id = any(${idsOf(missing)})
    `.execute(tx);
    const changedAt = changedCount + vanished.length > 0 ? readAt : null;
    await sql`
      update usage_export.project_list
      set read_at = ${readAt}, error = null, failing_since = null, changed_at = coalesce(${changedAt}, changed_at) where list = ${keyName}
    `.execute(tx);
    const knownIds = new Set(known.map(({ id }) => id));
    return { added: believed.filter(({ id }) => !knownIds.has(id)), vanished, waiting };
  });
}

/** Creates the row of the list if there is none, and locks it. Returns when the list was last read. */
async function lockList(tx: Tx, keyName: string): Promise<Date | null> {
  const { rows } = await sql<{ readonly readAt: Date | null }>`
    insert into usage_export.project_list (list) values (${keyName})
    on conflict (list) do update set list = excluded.list returning read_at as "readAt"
  `.execute(tx);
  return rows[0]?.readAt ?? null;
}

function idsOf(projects: readonly Project[]) {
  return sql`${projects.map(({ id }) => id)}::text[]`;
}

/** Returns how many projects are new, renamed or listed again. */
async function writeListed(tx: Tx, keyName: string, listed: readonly Project[], readAt: Date): Promise<number> {
  const { rows } = await sql`
    insert into usage_export.discovered_project as stored (list, project_id, name, named_at, first_seen_at)
    select ${keyName}, id, name, ${readAt}::timestamptz, ${readAt}::timestamptz
    from unnest(${idsOf(listed)}, ${listed.map(({ name }) => storableText(name))}::text[]) as listed (id, name)
    on conflict (list, project_id) do update
    set name = excluded.name, missing_since = null, vanished_at = null, last_seen_at = null,
      named_at = case when stored.name = excluded.name then stored.named_at else excluded.named_at end
    where stored.name <> excluded.name or stored.last_seen_at is not null
    returning 1
  `.execute(tx);
  return rows.length;
}

/** Whether the project was once listed, and no list has it any more. */
export async function hasVanished(db: Database, projectId: string): Promise<boolean> {
  const { rows } = await sql<{ readonly isGone: boolean | null }>`
    select bool_and(vanished_at is not null) as "isGone" from usage_export.discovered_project where project_id = ${projectId}
  `.execute(db);
  return rows[0]?.isGone === true;
}

/** A text that changes whenever a project is added, renamed, gone or listed again. */
export async function projectsVersion(db: Database): Promise<string> {
  const { rows } = await sql<{ readonly version: string | null }>`
    select string_agg(concat(list, ' ', changed_at at time zone 'UTC'), ', ' order by list) as version
    from usage_export.project_list where changed_at is not null
  `.execute(db);
  return rows[0]?.version ?? "none";
}

/** Locks the projects whose first days have not become due yet, and returns their ids. */
export async function lockNewProjects(tx: Tx): Promise<readonly string[]> {
  const { rows } = await sql<{ readonly id: string }>`
    select project_id as id from usage_export.discovered_project
    where made_due_at is null and vanished_at is null order by list, project_id for update
  `.execute(tx);
  return rows.map(({ id }) => id);
}

export async function markMadeDue(tx: Tx, projectIds: readonly string[]): Promise<void> {
  await sql`
    update usage_export.discovered_project set made_due_at = now()
    where project_id = any(${projectIds}::text[]) and made_due_at is null
  `.execute(tx);
}

/** The projects of the list stay as they are. */
export async function recordListFailure(db: Database, keyName: string, reason: string): Promise<void> {
  const record = sql`
    insert into usage_export.project_list as stored (list, error, failing_since)
    values (${keyName}, ${storableText(reason)}, now())
    on conflict (list) do update
    set error = excluded.error, failing_since = coalesce(stored.failing_since, excluded.failing_since)
  `;
  await execute(db, record);
}

export type StoredList = {
  readonly keyName: string;
  /** When the newest readable list was read; null if none was. */
  readonly readAt: Date | null;
  readonly error: string | null;
  readonly failingSince: Date | null;
  /** How many projects are listed, or missing from a list in doubt. */
  readonly projects: number;
  /** How many projects are missing from a list in doubt. */
  readonly waiting: number;
  readonly waitingSince: Date | null;
};

export async function storedProjectLists(db: Database): Promise<readonly StoredList[]> {
  const { rows } = await sql<StoredList>`
    select l.list as "keyName", l.read_at as "readAt", l.error, l.failing_since as "failingSince",
      (count(p.project_id) filter (where p.vanished_at is null))::integer as projects,
      count(p.missing_since)::integer as waiting, min(p.missing_since) as "waitingSince"
    from usage_export.project_list l
    left join usage_export.discovered_project p using (list)
    group by l.list
    order by l.list
  `.execute(db);
  return rows;
}
