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

export async function takeTurn(db: Database, pace: ServicePace, callId: string): Promise<TurnAnswer> {
  const { service, requestsPerSecond, maxConcurrent } = pace;
  const { rows } = await again(() =>
    sql<TurnAnswer>`
      select outcome, wait_ms as wait from usage_export.take_turn(
        ${service}::text, ${callId}::uuid, ${requestsPerSecond}::double precision, ${maxConcurrent}::integer,
        ${CALL_LIVES_SECONDS}::double precision
      )
    `.execute(db),
  );
  const answer = rows[0];
  if (!answer) throw new Error("the database gave no answer to a call that asked for its turn");
  return answer;
}

/** Says that the calls are under way. */
export async function keepTurns(db: Database, callIds: readonly string[]): Promise<void> {
  await sql`
    update usage_export.service_call set until = clock_timestamp() + make_interval(secs => ${CALL_LIVES_SECONDS})
    where call_id = any(${callIds}::uuid[])
  `.execute(db);
}

export async function giveTurnBack(db: Database, callId: string): Promise<void> {
  await sql`delete from usage_export.service_call where call_id = ${callId}::uuid`.execute(db);
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
