// Remembers the names that the service has listed for a project: one answer lists only the names of its period.

import { sql } from "kysely";
import type { Database } from "./database.ts";
import { inTransaction } from "./transaction.ts";

export type ListedName = {
  readonly kind: "feature" | "model" | "tag";
  readonly name: string;
  /** For a model, the id that today's service filters by; empty if there is none. */
  readonly modelId: string;
};

/** Longer names do not fit into an index entry, and no real name is as long. */
const LENGTH_MAX = 256;
/** Limit for one answer: a longer list is not worth remembering. */
const NAMES_MAX = 5_000;

export async function listedNames(db: Database, projectId: string): Promise<readonly ListedName[]> {
  const { rows } = await sql<ListedName>`
    select kind, name, model_id as "modelId" from usage_export.listed_name where project_id = ${projectId}
    order by kind, name, model_id
  `.execute(db);
  return rows;
}

/** Safe to repeat: a stored name is not written again. */
export async function storeListedNames(db: Database, projectId: string, listed: readonly ListedName[]): Promise<void> {
  const names = listed
    .filter(({ name, modelId }) => isStorable(name) && (modelId === "" || isStorable(modelId)))
    .slice(0, NAMES_MAX)
    .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
  if (names.length === 0) return;
  await inTransaction(db, (tx) =>
    sql`
      insert into usage_export.listed_name (project_id, kind, name, model_id)
      select ${projectId}, kind, name, model_id
      from unnest(
        ${names.map(({ kind }) => kind)}::text[], ${names.map(({ name }) => name)}::text[],
        ${names.map(({ modelId }) => modelId)}::text[]
      ) as listed (kind, name, model_id)
      on conflict do nothing
    `.execute(tx),
  );
}

/** A fixed order: two processes that store the same names can't deadlock. */
function sortKey({ kind, name, modelId }: ListedName): string {
  return JSON.stringify([kind, name, modelId]);
}

/** Postgres text accepts neither NUL nor half of a surrogate pair. */
function isStorable(text: string): boolean {
  return text !== "" && text.length <= LENGTH_MAX && !text.includes("\0") && text.isWellFormed();
}
