// What was said of what, and who is saying it now: of many replicas one. A row is claimed before its notice is sent and
// noted after, so that a process that dies in between lets another send it once the claim ran out. It may be sent twice then,
// but never not at all.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import type { Database } from "./database.ts";
import { inTransaction } from "./transaction.ts";

/** Longer than it takes to send one. */
const CLAIM_SECONDS = 60;

export type Said = {
  readonly state: "wrong" | "well";
  /** Another one with each claim, and once more when it was said. */
  readonly claim: string;
};

/** What was said last, by subject. */
export async function readSaid(db: Database): Promise<ReadonlyMap<string, Said>> {
  const rows = await db.selectFrom("usage_export.notice").select(["subject", "state", "claim"]).execute();
  return new Map(rows.map(({ subject, ...said }) => [subject, said]));
}

/** Undefined while somebody else says it, or where they have since `said` was read. */
export async function claimNotice(db: Database, subject: string, said: Said | undefined): Promise<string | undefined> {
  const claim = randomUUID();
  const { rows } = await inTransaction(db, (tx) =>
    sql`
      insert into usage_export.notice as n (subject, state, claim, claimed_until)
      values (${subject}, 'well', ${claim}::uuid, clock_timestamp() + make_interval(secs => ${CLAIM_SECONDS}))
      on conflict (subject) do update set claim = excluded.claim, claimed_until = excluded.claimed_until
      where n.claim = excluded.claim
        or (n.claim = ${said?.claim ?? null}::uuid and (n.claimed_until is null
          or n.claimed_until not between clock_timestamp() and clock_timestamp() + make_interval(secs => ${CLAIM_SECONDS})))
      returning n.subject
    `.execute(tx),
  );
  return rows.length > 0 ? claim : undefined;
}

/** It was said. Leaves alone what somebody else has claimed by now. Who read the claim meanwhile must not say it again, hence the new one. */
export async function noteSaid(
  db: Database,
  { subject, state }: { readonly subject: string; readonly state: Said["state"] },
  claim: string,
): Promise<void> {
  await inTransaction(db, (tx) =>
    tx
      .updateTable("usage_export.notice")
      .set({ state, since: sql<Date>`clock_timestamp()`, claim: randomUUID(), claimed_until: null })
      .where("subject", "=", subject)
      .where("claim", "=", claim)
      .execute(),
  );
}

/** It could not be said: anybody may try. */
export async function giveNoticeBack(db: Database, subject: string, claim: string): Promise<void> {
  await inTransaction(db, (tx) =>
    tx
      .updateTable("usage_export.notice")
      .set({ claimed_until: null })
      .where("subject", "=", subject)
      .where("claim", "=", claim)
      .execute(),
  );
}
