// An account of the service whose projects are discovered, and what the database knows of them.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import type { UsageRecord } from "../../src/emulator/usage.ts";

/** Emulator options for an account with these projects (names by id) and the same usage on each day. The account follows later changes of `names`. */
export function accountOptions(names: ReadonlyMap<string, string>, accountKey: string) {
  const usage: readonly UsageRecord[] = [
    { accessor: "key-a", model: ["nova-3"], method: "sync", requests: 5, tags: null },
  ];
  return {
    usage: () => usage,
    projects: () => [...names].map(([id, name]) => ({ id, name })),
    consoleKeys: [{ secret: accountKey, projectId: "a", scopes: ["member"], isAccountKey: true }],
  };
}

/** The number of complete slices of each project, by its name. */
export async function completeSlices(db: Database): Promise<Readonly<Record<string, number>>> {
  const { rows } = await sql<{ project: string; slices: number }>`
    select project, count(*) filter (where status = 'complete')::integer as slices from bi.coverage group by 1 order by 1
  `.execute(db);
  return Object.fromEntries(rows.map(({ project, slices }) => [project, slices]));
}

export async function dueProjects(db: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ project: string }>`
    select distinct project from usage_export.due_series order by 1
  `.execute(db);
  return rows.map(({ project }) => project);
}

/** Makes the stored list of projects older than an hour, so that it is read again. */
export async function expireProjectList(db: Database): Promise<void> {
  await sql`update usage_export.project_list set read_at = read_at - interval '61 minutes'`.execute(db);
}
