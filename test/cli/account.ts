// Helpers for tests of discovered projects: the usage of an account's projects, which of their days are read, and the age of their list.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import type { UsageRecord } from "../../src/emulator/usage.ts";

/** Options of the emulator for an account of these projects, by their ids, with the same usage on each day. A test changes the names. */
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

/** By the name of a project, how many of its days are complete. */
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

/** A list is read again when it is an hour old. */
export async function makeListOld(db: Database): Promise<void> {
  await sql`update usage_export.project_list set read_at = read_at - interval '61 minutes'`.execute(db);
}
