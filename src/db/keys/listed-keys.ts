// Stores the API keys that the service lists, so that a key that is deleted there keeps its comment and tags.

import { sql } from "kysely";
import type { Database } from "../connection/database.ts";
import { inTransaction } from "../connection/transaction.ts";
import { storableText } from "../storable-text.ts";

export type ListedKey = {
  readonly apiKeyId: string;
  readonly comment: string;
  readonly scopes: readonly string[];
  /** Undefined if the service sent none: the tags that it sent earlier are kept. */
  readonly tags?: readonly string[] | undefined;
  /** A time as the service writes it; one that can't be parsed is ignored. */
  readonly created?: string | undefined;
};

/**
 * `listed` is the whole list of a project. An empty list is ignored, because it lacks the very key that the service was called with.
 * Safe to repeat.
 */
export async function storeListedKeys(db: Database, projectId: string, listed: readonly ListedKey[]): Promise<void> {
  const keys = [...new Map(listed.map((key) => [key.apiKeyId, key])).values()];
  if (keys.length === 0) return;
  const ids = keys.map(({ apiKeyId }) => apiKeyId);
  await inTransaction(db, async (tx) => {
    await sql`
      insert into usage_export.listed_key as known (project_id, api_key_id, comment, tags, scopes, created_at)
      select ${projectId}, api_key_id, comment,
        case when tags is not null then array(select json_array_elements_text(tags::json)) end,
        array(select json_array_elements_text(scopes::json)), created_at::timestamptz
      from unnest(
        ${ids}::text[], ${keys.map(({ comment }) => storableText(comment))}::text[],
        ${keys.map(({ tags }) => tags && sortedJson(tags))}::text[], ${keys.map(({ scopes }) => sortedJson(scopes))}::text[],
        ${keys.map(({ created }) => instantOf(created))}::text[]
      ) as listed (api_key_id, comment, tags, scopes, created_at)
      on conflict (project_id, api_key_id) do update
      set comment = coalesce(nullif(excluded.comment, ''), known.comment), tags = coalesce(excluded.tags, known.tags),
        scopes = excluded.scopes, created_at = coalesce(excluded.created_at, known.created_at),
        last_seen_at = now(), unlisted_since = null
    `.execute(tx);
    await sql`
      update usage_export.listed_key set unlisted_since = now()
      where project_id = ${projectId} and unlisted_since is null and api_key_id <> all(${ids}::text[])
    `.execute(tx);
  });
}

/** Sorted, because their order means nothing and may differ in each answer. */
function sortedJson(texts: readonly string[]): string {
  return JSON.stringify(texts.map((text) => storableText(text)).sort());
}

function instantOf(text: string | undefined): string | null {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}
