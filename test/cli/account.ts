// Helpers for tests of discovered projects.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import type { UsageRecord } from "../../src/emulator/usage.ts";

/** Emulator options for an account with these projects (names by id) and the same usage on each day. A test may change `names` later. */
export function accountOf(names: ReadonlyMap<string, string>, secret: string) {
  const usage: readonly UsageRecord[] = [
    { accessor: "key-a", model: ["nova-3"], method: "sync", requests: 5, tags: null },
  ];
  return {
    usage: () => usage,
    projects: () => [...names].map(([id, name]) => ({ id, name })),
    consoleKeys: [{ secret, projectId: "a", scopes: ["member"], isAccountKey: true }],
  };
}

/** The number of complete days of each project, by its name. */
export async function completeDays(db: Database): Promise<Readonly<Record<string, number>>> {
  const { rows } = await sql<{ project: string; days: number }>`
    select project, count(*) filter (where status = 'complete')::integer as days from bi.coverage group by 1 order by 1
  `.execute(db);
  return Object.fromEntries(rows.map(({ project, days }) => [project, days]));
}

export async function dueProjects(db: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ project: string }>`
    select distinct project from usage_export.due_series order by 1
  `.execute(db);
  return rows.map(({ project }) => project);
}

/** Makes the list of projects so old that it is read again: more than an hour. */
export async function makeListOld(db: Database): Promise<void> {
  await sql`update usage_export.project_list set read_at = read_at - interval '61 minutes'`.execute(db);
}
