// The history of API keys: who changed what, when and why.

import type { Database } from "./database.ts";
import { storableText } from "./storable-text.ts";
import { inTransaction, type Tx } from "./transaction.ts";

export type KeyEvent = {
  readonly rotation: string;
  readonly intentId: string | undefined;
  readonly event: string;
  readonly actor: string;
  readonly reason: string;
};

/** An event that is no change of the ledger. */
export async function recordEvent(db: Database, event: KeyEvent): Promise<void> {
  await inTransaction(db, (tx) => insertEvent(tx, event, undefined));
}

/** False where the change has its event already: it was made by an attempt whose answer was lost. */
export async function insertEvent(tx: Tx, event: KeyEvent, changeId: string | undefined): Promise<boolean> {
  const { rotation, intentId, event: name, actor, reason } = event;
  const inserted = await tx
    .insertInto("usage_export.key_event")
    .values({
      change_id: changeId ?? null,
      rotation,
      intent_id: intentId ?? null,
      event: name,
      actor,
      reason: storableText(reason),
    })
    .onConflict((conflict) => conflict.column("change_id").doNothing())
    .returning("event_id")
    .execute();
  return inserted.length > 0;
}

/** Who delivered a key there last. */
export async function deliveredBy(
  db: Database,
  rotation: string,
  intentId: string,
  sink: string,
): Promise<string | undefined> {
  const row = await inTransaction(db, (tx) =>
    tx
      .selectFrom("usage_export.key_event")
      .select("actor")
      .where("rotation", "=", rotation)
      .where("intent_id", "=", intentId)
      .where("event", "=", "delivered")
      .where("reason", "=", storableText(`to ${sink}`))
      .orderBy("event_id", "desc")
      .limit(1)
      .executeTakeFirst(),
  );
  return row?.actor;
}
