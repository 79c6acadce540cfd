// Stores the projects that the service has listed. They are never removed, so that a project that comes back is known again.

import { sql } from "kysely";
import {
  applyChange,
  changeList,
  type KnownProject,
  type ListChange,
  type ListedProject,
} from "../usage/project-list.ts";
import type { Database } from "./connection/database.ts";
import { execute, inTransaction, type Tx } from "./connection/transaction.ts";
import { storableText } from "./limits.ts";

/** Every project of every list, those that have vanished, too. */
export async function storedProjects(db: Database | Tx, list?: string): Promise<readonly KnownProject[]> {
  const { rows } = await sql<ProjectRow>`
    select list, project_id as id, name, first_seen_at as "firstSeenAt", coalesce(named_at, first_seen_at) as "namedAt",
      missing_since as "missingSince", vanished_at as "vanishedAt"
    from usage_export.discovered_project
    where (${list ?? null}::text is null or list = ${list ?? null})
    order by list, first_seen_at, project_id
  `.execute(db);
  return rows.map(({ missingSince, vanishedAt, ...row }) => ({
    ...row,
    missingSince: missingSince ?? undefined,
    vanishedAt: vanishedAt ?? undefined,
  }));
}

type ProjectRow = Omit<KnownProject, "missingSince" | "vanishedAt"> & {
  readonly missingSince: Date | null;
  readonly vanishedAt: Date | null;
};

export type ListReading = {
  readonly list: string;
  readonly listed: readonly ListedProject[];
  /** When the reading began, by the database's clock. */
  readonly readAt: Date;
  /** A person confirmed that the list is right, however short it is. */
  readonly isConfirmed?: boolean;
};

/** Stores what the list changes. Undefined if a list that was read later is stored already. */
export async function storeReading(db: Database, reading: ListReading): Promise<ListChange | undefined> {
  const { list, listed, readAt, isConfirmed } = reading;
  return inTransaction(db, async (tx) => {
    const last = await lockList(tx, list);
    if (last !== undefined && last >= readAt) return undefined;
    const known = await storedProjects(tx, list);
    const change = changeList(listed, known, readAt, isConfirmed);
    const before = new Map(known.map((one) => [one.id, JSON.stringify(one)]));
    const after = applyChange(list, known, change, readAt);
    const changed = after.filter((one) => before.get(one.id) !== JSON.stringify(one));
    if (changed.length > 0) await writeProjects(tx, list, changed, last);
    await sql`
      update usage_export.project_list
      set read_at = ${readAt}, error = null, failing_since = null,
        changed_at = case when ${changed.length > 0}::boolean then ${readAt} else changed_at end
      where list = ${list}
    `.execute(tx);
    return change;
  });
}

/** Creates the row of the list, if there is none, and locks it. Returns when the list was read last. */
async function lockList(tx: Tx, list: string): Promise<Date | undefined> {
  await sql`
    insert into usage_export.project_list (list) values (${list}) on conflict do nothing
  `.execute(tx);
  const { rows } = await sql<{ readAt: Date | null }>`
    select read_at as "readAt" from usage_export.project_list where list = ${list}
    for update
  `.execute(tx);
  return rows[0]?.readAt ?? undefined;
}

async function writeProjects(
  tx: Tx,
  list: string,
  projects: readonly KnownProject[],
  lastReadAt: Date | undefined,
): Promise<void> {
  const times = (of: (project: KnownProject) => Date | undefined) =>
    projects.map((one) => of(one)?.toISOString() ?? null);
  await sql`
    insert into usage_export.discovered_project as stored
      (list, project_id, name, first_seen_at, named_at, missing_since, vanished_at)
    select ${list}, changed.*
    from unnest(
      ${projects.map(({ id }) => id)}::text[], ${projects.map(({ name }) => storableText(name))}::text[],
      ${times(({ firstSeenAt }) => firstSeenAt)}::timestamptz[], ${times(({ namedAt }) => namedAt)}::timestamptz[],
      ${times(({ missingSince }) => missingSince)}::timestamptz[], ${times(({ vanishedAt }) => vanishedAt)}::timestamptz[]
    ) as changed
    on conflict (list, project_id) do update
    set name = excluded.name, named_at = excluded.named_at, missing_since = excluded.missing_since,
      vanished_at = excluded.vanished_at,
      last_seen_at = case when excluded.missing_since is null and excluded.vanished_at is null then null
        else coalesce(stored.last_seen_at, ${lastReadAt ?? null}::timestamptz) end
  `.execute(tx);
}

/** The ids of those that no list has any more. */
export async function vanishedProjects(db: Database): Promise<ReadonlySet<string>> {
  const stored = await storedProjects(db);
  const listed = new Set(stored.flatMap(({ id, vanishedAt }) => (vanishedAt ? [] : [id])));
  return new Set(stored.map(({ id }) => id)).difference(listed);
}

/** A text that is another one whenever what is known of the projects has changed. */
export async function projectsVersion(db: Database | Tx): Promise<string> {
  const { rows } = await sql<{ version: string }>`
    select coalesce(string_agg(list || ' ' || extract(epoch from changed_at), ', ' order by list), 'none') as version
    from usage_export.project_list where changed_at is not null
  `.execute(db);
  return rows[0]?.version ?? "none";
}

/** The ids of the projects whose first days have not become due yet. They are locked until the transaction ends. */
export async function lockNewProjects(tx: Tx): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    select project_id as id from usage_export.discovered_project
    where made_due_at is null and vanished_at is null
    order by list, project_id
    for update
  `.execute(tx);
  return rows.map(({ id }) => id);
}

export async function markMadeDue(tx: Tx, projectIds: readonly string[]): Promise<void> {
  await sql`
    update usage_export.discovered_project set made_due_at = now()
    where project_id = any(${projectIds}::text[]) and made_due_at is null
  `.execute(tx);
}

/** The projects stay as they are. */
export async function recordListFailure(db: Database, list: string, reason: string): Promise<void> {
  const error = storableText(reason);
  await execute(
    db,
    sql`
      insert into usage_export.project_list as stored (list, error, failing_since)
      values (${list}, ${error}, now())
      on conflict (list) do update
      set error = excluded.error, failing_since = coalesce(stored.failing_since, excluded.failing_since)
    `,
  );
}

export type StoredList = {
  readonly list: string;
  /** When the newest readable list was read; null if none was. */
  readonly readAt: Date | null;
  readonly error: string | null;
  readonly failingSince: Date | null;
  /** Those that are listed or in doubt. */
  readonly projects: number;
  /** Those that are missing from a list in doubt. */
  readonly waiting: number;
  readonly waitingSince: Date | null;
  /** Those found to be gone in the last seven days. */
  readonly vanished: number;
};

export async function storedLists(db: Database | Tx): Promise<readonly StoredList[]> {
  const { rows } = await sql<StoredList>`
    select l.list, l.read_at as "readAt", l.error, l.failing_since as "failingSince",
      (count(p.project_id) filter (where p.vanished_at is null))::integer as projects,
      (count(p.missing_since))::integer as waiting, min(p.missing_since) as "waitingSince",
      (count(*) filter (where p.vanished_at > now() - interval '7 days'))::integer as vanished
    from usage_export.project_list l
    left join usage_export.discovered_project p using (list)
   
    group by l.list, l.read_at, l.error, l.failing_since
    order by l.list
  `.execute(db);
  return rows;
}
