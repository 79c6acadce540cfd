// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // The usage requests of queued runs. A queue job is a chunk of them: its data has the chunk's id.
  await sql`
    create table usage_export.queued_request (
      -- The series and the window: a request that several runs need is queued once.
      request_key text    primary key,
      run_id      uuid    not null,
      chunk_id    uuid    not null,
      -- The order of the requests of a run.
      position    integer not null,
      request     jsonb   not null,
      -- Why its last attempt failed; null before that.
      error       text,
      error_code  text
    )
  `.execute(db);
  await sql`create index queued_request_chunk on usage_export.queued_request (chunk_id)`.execute(db);

  const { rows } = await sql`select from pg_class where oid = to_regclass('usage_export_queue.job')`.execute(db);
  if (rows.length === 0) return;
  // Until now each request was a queue job. Such a job becomes a chunk of one request.
  await sql`
    with single as (
      update usage_export_queue.job set data = data || jsonb_build_object('chunkId', id)
      where name in ('usage_request', 'usage_request_dead') and state::text in ('created', 'retry', 'active')
        and data ? 'seriesId'
      returning id, name, data
    )
    insert into usage_export.queued_request (request_key, run_id, chunk_id, position, request)
    select
      -- A dead letter's request may be queued again by now.
      case when name = 'usage_request' then concat_ws(' ', data->>'seriesId', data->'window'->>'start', data->'window'->>'end')
        else id::text end,
      (data->>'runId')::uuid, id, 0, data
    from single
  `.execute(db);
}
