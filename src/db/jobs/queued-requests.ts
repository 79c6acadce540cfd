// The usage requests of queued runs. A queue job is a chunk of them. The row of a request leaves the queue in the transaction that stores its
// answer: a worker that takes a chunk over finds what is left of it.

import { sql } from "kysely";
import type { Database } from "../connection/database.ts";
import type { Tx } from "../connection/transaction.ts";
import { storableText } from "../storable-text.ts";
import type { ClaimedJob } from "./queue.ts";
import { QUEUE_SCHEMA } from "./queue-names.ts";
import { type EndedRequest, insertRequests } from "./run-requests.ts";

export type NewRequest = {
  /** A request whose key is queued already, for whichever run, is not added. */
  readonly key: string;
  readonly chunkId: string;
  /** The order in which the requests of a chunk are made. */
  readonly position: number;
  readonly request: object;
};

/** Returns the keys of the added requests. */
export async function addRequests(
  tx: Tx,
  runId: string,
  requests: readonly NewRequest[],
): Promise<ReadonlySet<string>> {
  // Sorted, so that two transactions that add the same keys can't deadlock.
  const { rows } = await sql<{ key: string }>`
    insert into usage_export.queued_request (request_key, run_id, chunk_id, position, request)
    select key, ${runId}, "chunkId", position, request
    from json_to_recordset(${JSON.stringify(requests)}::json)
      as added (key text, "chunkId" uuid, position integer, request jsonb)
    order by key
    on conflict do nothing returning request_key as key
  `.execute(tx);
  return new Set(rows.map(({ key }) => key));
}

export type OpenRequest = {
  readonly key: string;
  readonly request: unknown;
  /** Why its last attempt failed; null before that. */
  readonly error: string | null;
  readonly errorCode: string | null;
};

/** The requests of the chunk that have no outcome yet. */
export async function openRequests(db: Database, chunkId: string): Promise<readonly OpenRequest[]> {
  const { rows } = await sql<OpenRequest>`
    select request_key as key, request, error, error_code as "errorCode"
    from usage_export.queued_request where chunk_id = ${chunkId} order by position
  `.execute(db);
  return rows;
}

/**
 * Removes requests that have an outcome from the queue, and keeps them as requests of the run. Returns the keys of those that were open: their outcomes are to be counted. None is
 * returned if another worker has claimed the chunk since, and will count them.
 */
export async function closeRequests(
  tx: Tx,
  { queue, id, retryCount }: ClaimedJob,
  { chunkId, runId }: { readonly chunkId: string; readonly runId: string },
  ended: ReadonlyMap<string, EndedRequest>,
): Promise<readonly string[]> {
  const keys = [...ended.keys()];
  const isClosed = sql`(${keys}::text[])[ended.n::integer] in (select key from closed)`;
  const { rows } = await sql<{ key: string }>`
    with closed as (
      delete from usage_export.queued_request
      where request_key = any(${keys}::text[]) and chunk_id = ${chunkId} and exists (
        select from ${sql.id(QUEUE_SCHEMA, "job")}
        where name = ${queue} and id = ${id} and retry_count = ${retryCount} and state::text = 'active'
      )
      returning request_key as key
    ), kept as (
      ${insertRequests(runId, [...ended.values()], isClosed)}
    )
    select key from closed
  `.execute(tx);
  return rows.map(({ key }) => key);
}

/** Records why an attempt failed that is to be repeated. */
export async function recordAttempt(
  tx: Tx,
  key: string,
  { reason, code }: { readonly reason: string; readonly code: string },
): Promise<void> {
  await sql`
    update usage_export.queued_request set error = ${storableText(reason)}, error_code = ${code} where request_key = ${key}
  `.execute(tx);
}
