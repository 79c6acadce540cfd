// Slots, permits and pauses of the rate limiter that all processes on this database share. Each question is one statement, outside
// any transaction of ours, so that no process waits for another's.

import { sql } from "kysely";
import type { Database } from "./connection/database.ts";
import { inTransaction, withRetries } from "./connection/transaction.ts";

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
const CALL_LIVES_SECONDS = 10;

/** Turns are given ahead for so long: what a process does not use of it is lost for all. */
const AHEAD_SECONDS = 0.1;

export type Asked = {
  readonly ended: readonly string[];
  readonly waiting: readonly string[];
  readonly ahead: number;
};

export type Turns = {
  readonly answers: readonly TurnAnswer[];
  readonly aheadMs: readonly number[];
};

/**
 * Gives back the places of the calls that ended and asks for turns for those that wait: an answer for each of these, in
 * their order; those before it are served before it. While nobody else waits there are turns ahead, as many as are asked
 * for or fewer: each is usable after so many milliseconds, on a place that the process has.
 */
export async function takeTurns(db: Database, pace: ServicePace, { ended, waiting, ahead }: Asked): Promise<Turns> {
  const { service, requestsPerSecond, maxConcurrent } = pace;
  const { rows } = await withRetries(() =>
    sql<{ callId: string | null; outcome: TurnAnswer["outcome"]; wait: number }>`
      select call_id as "callId", outcome, wait_ms as wait from usage_export.take_turns(
        ${service}::pg_catalog.text, ${ended}::pg_catalog.uuid[], ${waiting}::pg_catalog.uuid[], ${ahead}::pg_catalog.int4,
        ${requestsPerSecond}::pg_catalog.float8, ${maxConcurrent}::pg_catalog.int4,
        ${CALL_LIVES_SECONDS}::pg_catalog.float8, ${AHEAD_SECONDS}::pg_catalog.float8
      )
    `.execute(db),
  );
  const answers = new Map(rows.map(({ callId, outcome, wait }) => [callId, { outcome, wait }]));
  return {
    answers: waiting.map((callId) => {
      const answer = answers.get(callId);
      if (!answer) throw new Error("the database did not answer a call that waits");
      return answer;
    }),
    aheadMs: rows.filter(({ callId }) => callId === null).map(({ wait }) => wait),
  };
}

/** Says that the calls are under way. */
export async function keepTurns(db: Database, callIds: readonly string[]): Promise<void> {
  await sql`
    update usage_export.service_call set until = clock_timestamp() + make_interval(secs => ${CALL_LIVES_SECONDS})
    where call_id = any(${callIds}::uuid[])
  `.execute(db);
}

/** Upper limit of a pause, whatever the caller passes. */
const HOLD_SECONDS_MAX = 60 * 60;

/** No call starts for so long. A shorter wait does not end a longer one. */
export async function holdCalls(db: Database, service: string, ms: number): Promise<void> {
  const seconds = Math.min(ms / 1000, HOLD_SECONDS_MAX);
  await withRetries(() =>
    sql`
      insert into usage_export.service_pace as p (service, held_until, held_for)
      values (${service}, clock_timestamp() + make_interval(secs => ${seconds}), make_interval(secs => ${seconds}))
      on conflict (service) do update set held_until = excluded.held_until, held_for = excluded.held_for
      where p.held_until < excluded.held_until
    `.execute(db),
  );
}

/** When the pause that the service asked for ends; undefined if calls are not paused. */
export async function pausedUntil(db: Database, service: string): Promise<Date | undefined> {
  const { rows } = await sql<{ until: Date }>`
    select least(held_until, clock_timestamp() + held_for) as until from usage_export.service_pace
    where service = ${service} and held_until > clock_timestamp()
  `.execute(db);
  return rows[0]?.until;
}

/** Ends the pause; waiting processes notice within seconds. Returns when the pause would have ended, if there was one. */
export async function resumeCalls(db: Database, service: string): Promise<Date | undefined> {
  return inTransaction(db, async (tx) => {
    const until = await pausedUntil(tx, service);
    await sql`
      update usage_export.service_pace set held_until = '-infinity', held_for = '0' where service = ${service}
    `.execute(tx);
    return until;
  });
}
