// Which notification was sent last for each alert, and which replica is sending one now. A row is claimed before its
// notification is sent and marked after, so another replica sends it if the first dies in between. A notification may be sent
// twice then, but is never lost.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import type { Database } from "./connection/database.ts";
import { inTransaction } from "./connection/transaction.ts";

/** Longer than it takes to send one. */
const CLAIM_SECONDS = 60;

export type LastSent = {
  readonly state: "wrong" | "well";
  /** Another one with each claim, and once more when it was said. */
  readonly claim: string;
};

/** What was said last, by subject. */
export async function readLastSent(db: Database): Promise<ReadonlyMap<string, LastSent>> {
  const rows = await db.selectFrom("usage_export.notice").select(["subject", "state", "claim"]).execute();
  return new Map(rows.map(({ subject, ...said }) => [subject, said]));
}

/** Undefined while somebody else says it, or where they have since `said` was read. */
export async function claimNotification(
  db: Database,
  subject: string,
  said: LastSent | undefined,
): Promise<string | undefined> {
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
export async function markSent(
  db: Database,
  { subject, state }: { readonly subject: string; readonly state: LastSent["state"] },
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
export async function releaseNotification(db: Database, subject: string, claim: string): Promise<void> {
  await inTransaction(db, (tx) =>
    tx
      .updateTable("usage_export.notice")
      .set({ claimed_until: null })
      .where("subject", "=", subject)
      .where("claim", "=", claim)
      .execute(),
  );
}
