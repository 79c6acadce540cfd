// Stores, in the table `notice`, the last notification sent about each subject, such as "budget NAME 80", and whether a replica is sending one.
// A replica claims the subject, sends, and marks it as sent. If the replica dies in between, another one sends: perhaps twice, but at least once.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import type { Database } from "./connection/database.ts";
import { execute, inTransaction } from "./connection/transaction.ts";
import { WATCHED_DAYS_MAX } from "./prices-and-budgets.ts";

/** Longer than it takes to send a notification. */
const CLAIM_SECONDS = 60;
/** Notifications about a budget are sent in its period (31 days at most) and for WATCHED_DAYS_MAX days after. This is longer. */
const RECORD_KEPT_DAYS = WATCHED_DAYS_MAX + 35;

export type LastSent = {
  /** What the notification said; "well" if none was ever sent. */
  readonly state: "wrong" | "well";
  /** Changes with each claim and with each notification sent. */
  readonly claim: string;
};

/** By subject. A subject that was claimed, but about which nothing was sent, also has an entry. */
export async function readLastSent(db: Database): Promise<ReadonlyMap<string, LastSent>> {
  const rows = await db.selectFrom("usage_export.notice").select(["subject", "state", "claim"]).execute();
  return new Map(rows.map(({ subject, ...lastSent }) => [subject, lastSent]));
}

/** Returns the claim; undefined if another replica holds one, or has sent a notification since `lastSent` was read. */
export async function claimNotification(db: Database, subject: string, lastSent: LastSent | undefined) {
  const claim = randomUUID();
  // If the answer to the commit was lost, this runs again and finds its own claim: n.claim = excluded.claim. A `claimed_until` more than
  // CLAIM_SECONDS ahead was written before the database's clock was set back, and is ignored.
  const insertClaim = sql`
    insert into usage_export.notice as n (subject, state, claim, claimed_until)
    values (${subject}, 'well', ${claim}::uuid, clock_timestamp() + make_interval(secs => ${CLAIM_SECONDS}))
    on conflict (subject) do update set claim = excluded.claim, claimed_until = excluded.claimed_until
    where n.claim = excluded.claim
      or (n.claim = ${lastSent?.claim ?? null}::uuid and (n.claimed_until is null
        or n.claimed_until not between clock_timestamp() and clock_timestamp() + make_interval(secs => ${CLAIM_SECONDS})))
    returning n.subject
  `;
  return (await execute(db, insertClaim)).rows.length > 0 ? claim : undefined;
}

type Sent = Pick<LastSent, "state"> & { readonly subject: string; readonly covers?: readonly string[] };

/** Unless the claim is lost, stores that a notification about `subject` was sent that also told of those in `covers`. Always deletes old records. */
export async function markSent(db: Database, { subject, state, covers = [] }: Sent, claim: string): Promise<void> {
  await inTransaction(db, async (tx) => {
    const { rows } = await sql`
      update usage_export.notice
      set state = ${state}, since = clock_timestamp(), claim = ${randomUUID()}::uuid, claimed_until = null
      where subject = ${subject} and claim = ${claim}::uuid
      returning subject
    `.execute(tx);
    await sql`
      delete from usage_export.notice
      where (subject like 'budget %' or subject like 'report %') and since < now() - make_interval(days => ${RECORD_KEPT_DAYS})
    `.execute(tx);
    const others = covers.filter((one) => one !== subject).sort();
    if (rows.length === 0 || others.length === 0) return;
    await sql`
      insert into usage_export.notice (subject, state, since, claim)
      select subject, ${state}, clock_timestamp(), gen_random_uuid() from unnest(${others}::text[]) as subject
      on conflict (subject) do update
        set state = excluded.state, since = excluded.since, claim = excluded.claim, claimed_until = null
    `.execute(tx);
  });
}

/** Lets any replica claim the subject after a failed attempt to send. */
export async function releaseNotification(db: Database, subject: string, claim: string): Promise<void> {
  const release = sql`update usage_export.notice set claimed_until = null where subject = ${subject} and claim = ${claim}::uuid`;
  await execute(db, release);
}
