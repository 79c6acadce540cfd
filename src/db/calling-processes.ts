// The processes that call the service, the slots (calls at once) of each, and the pauses that the service asked for. Each statement is a
// transaction of its own, so that a process that is suspended between two statements blocks no other process.

import { sql } from "kysely";
import type { Database } from "./connection/database.ts";
import { withRetries } from "./connection/transaction.ts";

/** A process that has not announced itself for this long counts as gone. */
export const LIVE_MS = 8_000;
const PAUSE_SECONDS_MAX = 60 * 60;

// With `abs` and `least`, a process still counts as gone, and a pause still ends within the hour, if the clock was set back.
const isLive = sql`abs(extract(epoch from clock_timestamp() - seen_at)) * 1000 < ${LIVE_MS}`;
const pauseEnd = sql<Date>`least(call_pause.until, clock_timestamp() + make_interval(secs => ${PAUSE_SECONDS_MAX}))`;

export type Callers = {
  /** The slots of each live process, this one included. */
  readonly slots: Readonly<Record<string, number>>;
  /** The milliseconds until each pause ends, by the name of the key. */
  readonly pauses: Readonly<Record<string, number>>;
  readonly nowMs: number;
};

/** Announces that this process is alive and will use at most `slots`. Returns what all live processes have announced, and the pauses. */
export async function announce(db: Database, id: string, slots: number): Promise<Callers> {
  await withRetries(() =>
    sql`
      with gone as (delete from usage_export.calling_process where process_id <> ${id} and not ${isLive})
      insert into usage_export.calling_process (process_id, slots, seen_at) values (${id}, ${slots}, clock_timestamp())
      on conflict (process_id) do update set slots = excluded.slots, seen_at = excluded.seen_at
    `.execute(db),
  );
  const { rows } = await withRetries(() =>
    sql<Callers>`
      select extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs",
        (select coalesce(jsonb_object_agg(process_id, slots), '{}') from usage_export.calling_process where ${isLive}) as slots,
        (
          select coalesce(jsonb_object_agg(key, extract(epoch from ${pauseEnd} - clock_timestamp())::float8 * 1000), '{}')
          from usage_export.call_pause where until > clock_timestamp()
        ) as pauses
    `.execute(db),
  );
  return rows[0] as Callers;
}

export async function signOff(db: Database, id: string): Promise<void> {
  await sql`delete from usage_export.calling_process where process_id = ${id}`.execute(db);
}

/** Lets no process call for `ms` with this key, or with any key if `key` is empty. A shorter pause does not end a longer one. */
export async function storeCallPause(db: Database, key: string, ms: number): Promise<void> {
  const until = sql`clock_timestamp() + make_interval(secs => ${Math.min(ms / 1000, PAUSE_SECONDS_MAX)})`;
  await withRetries(() =>
    sql`
      insert into usage_export.call_pause (key, until) values (${key}, ${until})
      on conflict (key) do update set until = greatest(excluded.until, ${pauseEnd})
    `.execute(db),
  );
}

/** `key` is empty if all calls pause. */
export type CallPause = { readonly key: string; readonly until: Date };

export async function storedCallPauses(db: Database): Promise<readonly CallPause[]> {
  const { rows } = await sql<CallPause>`
    select key, ${pauseEnd} as until from usage_export.call_pause where call_pause.until > clock_timestamp() order by key
  `.execute(db);
  return rows;
}
