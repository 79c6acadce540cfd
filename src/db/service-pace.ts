// How fast the service is called by all processes on this database together. Each question is one statement, in no
// transaction of ours, so that nobody waits for another's.

import { sql } from "kysely";
import type { Database } from "./database.ts";
import { again } from "./transaction.ts";

export type ServicePace = {
  readonly service: string;
  readonly requestsPerSecond: number;
  readonly maxConcurrent: number;
};

/**
 * - `turn`: the call has a place and may start after `wait` milliseconds
 * - `busy`: it has none yet, and is `wait` places away from one
 * - `held`: the service wants no call for `wait` milliseconds
 */
export type TurnAnswer = { readonly outcome: "turn" | "busy" | "held"; readonly wait: number };

/** A call whose process says nothing for so long has no place any more. */
export const CALL_LIVES_SECONDS = 10;

/** An answer for each call, in their order: those before it are served before it. */
export async function takeTurns(
  db: Database,
  pace: ServicePace,
  callIds: readonly string[],
): Promise<readonly TurnAnswer[]> {
  const { service, requestsPerSecond, maxConcurrent } = pace;
  const { rows } = await again(() =>
    sql<TurnAnswer>`
      select turn.outcome, turn.wait_ms as wait
      from pg_catalog.unnest(${callIds}::pg_catalog.uuid[]) with ordinality as call (call_id, place)
      cross join lateral usage_export.take_turn(
        ${service}::pg_catalog.text, call.call_id, ${requestsPerSecond}::pg_catalog.float8,
        ${maxConcurrent}::pg_catalog.int4, ${CALL_LIVES_SECONDS}::pg_catalog.float8
      ) turn
      order by call.place
    `.execute(db),
  );
  return rows;
}

/** Says that the calls are under way. */
export async function keepTurns(db: Database, callIds: readonly string[]): Promise<void> {
  await sql`
    update usage_export.service_call set until = clock_timestamp() + make_interval(secs => ${CALL_LIVES_SECONDS})
    where call_id = any(${callIds}::uuid[])
  `.execute(db);
}

export async function giveTurnsBack(db: Database, callIds: readonly string[]): Promise<void> {
  await sql`delete from usage_export.service_call where call_id = any(${callIds}::uuid[])`.execute(db);
}

/** No call starts for so long. A shorter wait does not end a longer one. */
export async function holdCalls(db: Database, service: string, ms: number): Promise<void> {
  await again(() =>
    sql`
      insert into usage_export.service_pace as p (service, held_until)
      values (${service}, clock_timestamp() + make_interval(secs => ${ms / 1000}))
      on conflict (service) do update set held_until = greatest(p.held_until, excluded.held_until)
    `.execute(db),
  );
}
