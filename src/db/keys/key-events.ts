// Records events of keys: who changed which key, when and why.

import { storableText } from "../../text.ts";
import type { Database } from "../connection/database.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";

export type KeyEvent = {
  readonly rotation: string;
  /** The key's id in the ledger, which it has before the service makes it. Undefined if the event is about no single key. */
  readonly intentId: string | undefined;
  readonly event: string;
  readonly actor: string;
  readonly reason: string;
};

/** Records an event that changes no key. */
export async function recordEvent(db: Database, event: KeyEvent): Promise<void> {
  await inTransaction(db, (tx) => insertEvent(tx, event, undefined));
}

/** False if an event with this change id exists: an earlier attempt was committed, although its acknowledgement was lost. */
export async function insertEvent(tx: Tx, event: KeyEvent, changeId: string | undefined): Promise<boolean> {
  const { rotation, intentId, event: name, actor, reason } = event;
  const inserted = await tx
    .insertInto("usage_export.key_event")
    .values({ change_id: changeId, rotation, intent_id: intentId, event: name, actor, reason: storableText(reason) })
    .onConflict((conflict) => conflict.column("change_id").doNothing())
    .returning("event_id")
    .execute();
  return inserted.length > 0;
}
