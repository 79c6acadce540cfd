// The alerts that a person has snoozed. A snooze ends by itself: after its end it is not read any more.

import { sql } from "kysely";
import type { Database } from "./connection/database.ts";
import { execute } from "./connection/transaction.ts";
import { storableText } from "./storable-text.ts";

/** Until its end the alerts with the name are not notified and nothing counts as not well because of them. They are still shown. */
export type Snooze = {
  readonly name: string;
  readonly until: Date;
  readonly at: Date;
  /** The person who snoozed it. */
  readonly by: string;
};

const columns = sql`name, until, snoozed_at as at, snoozed_by as by`;

/** Those that have not ended, by the database's clock. */
export async function storedSnoozes(db: Database): Promise<readonly Snooze[]> {
  const { rows } = await sql<Snooze>`
    select ${columns} from usage_export.snooze where until > now() order by name collate "C"
  `.execute(db);
  return rows;
}

/** Replaces an earlier snooze of the name, whether it is longer or shorter. */
export async function storeSnooze(db: Database, { name, until, by }: Omit<Snooze, "at">): Promise<void> {
  await execute(
    db,
    sql`
      insert into usage_export.snooze (name, until, snoozed_by)
      values (${name}, ${until}, ${storableText(by)})
      on conflict (name) do update set until = excluded.until, snoozed_at = now(), snoozed_by = excluded.snoozed_by
    `,
  );
}

/** Ends the snooze now. Returns whether there was one that had not ended. */
export async function removeSnooze(db: Database, name: string): Promise<boolean> {
  const query = sql<{ wasHeld: boolean }>`
    delete from usage_export.snooze where name = ${name}
    returning until > now() as "wasHeld"
  `;
  return (await execute(db, query)).rows.some(({ wasHeld }) => wasHeld);
}
