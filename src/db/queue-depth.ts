// Reads what waits in the queue, what is worked at, and what was given up.

import { sql } from "kysely";
import type { Database } from "./database.ts";
import { QUEUE_SCHEMA } from "./queue.ts";

export type QueueDepth = {
  readonly queue: string;
  readonly state: "waiting" | "retrying" | "active" | "dead";
  readonly jobs: number;
};

/** "dead" is what was given up in the last day: it is kept for longer, and what matters of it later is whether its days are complete. */
export async function queueDepths(db: Database): Promise<readonly QueueDepth[]> {
  const { rows } = await sql<QueueDepth>`
    select q.name as queue, s.label as state, count(j.id)::integer as jobs
    from ${sql.id(QUEUE_SCHEMA, "queue")} q
    cross join (values ('created', 'waiting'), ('retry', 'retrying'), ('active', 'active'), ('failed', 'dead')) as s (state, label)
    left join ${sql.id(QUEUE_SCHEMA, "job")} j
      on j.name = q.name and j.state::text = s.state
      and (s.state <> 'failed' or j.completed_on > now() - interval '24 hours')
    where q.name not like '\\_\\_pgboss\\_\\_%'
    group by q.name, s.label
  `.execute(db);
  return rows;
}
