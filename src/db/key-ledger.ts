// Reads the ledger of API keys.

import { sql } from "kysely";
import { AppError } from "../errors.ts";
import type { Ledger, LedgerKey } from "../keys/ledger.ts";
import type { RotationJob } from "../keys/policy.ts";
import type { Database } from "./database.ts";
import { inTransaction, type Tx } from "./transaction.ts";

/**
 * All keys of a rotation but the retired ones, the oldest first, and the ledger's clock. Throws `config` where they belong
 * to another project than the rotation: they could neither be used nor removed with its key.
 */
export async function readLedger(
  db: Database,
  { name, project }: Pick<RotationJob, "name" | "project">,
): Promise<{ readonly ledger: Ledger; readonly now: Date }> {
  const { state, keys } = await inTransaction(db, async (tx) => ({
    state: await rotationState(tx, name),
    keys: await keyRows(tx, name),
  }));
  const foreign = keys.find(({ project_id }) => project_id !== project.id);
  if (foreign) {
    throw new AppError(
      "config",
      `the rotation ${name} has keys of another project (${foreign.project}, ${foreign.project_id}) in the ledger; give the rotation of ${project.name} a name of its own`,
    );
  }
  const ledger = {
    failedAttempts: state.failedAttempts ?? 0,
    lastError: state.lastError ?? undefined,
    rollbackTo: state.rollbackTo ?? undefined,
    keys: keys.map(ledgerKey),
  };
  return { ledger, now: state.now };
}

type State = {
  readonly now: Date;
  readonly failedAttempts: number | null;
  readonly lastError: string | null;
  readonly rollbackTo: string | null;
};

async function rotationState(tx: Tx, rotation: string): Promise<State> {
  const { rows } = await sql<State>`
    select clock_timestamp() as now, r.failed_attempts as "failedAttempts", r.last_error as "lastError",
      r.rollback_to as "rollbackTo"
    from (values (1)) as one left join usage_export.rotation r on r.name = ${rotation}
  `.execute(tx);
  const [state] = rows;
  if (!state) throw new AppError("database", "the database does not tell the time");
  return state;
}

async function keyRows(tx: Tx, rotation: string) {
  return tx
    .selectFrom("usage_export.api_key as k")
    .selectAll("k")
    .select(
      sql<string[]>`array(select sink from usage_export.key_delivery d where d.intent_id = k.intent_id)`.as(
        "delivered_to",
      ),
    )
    .where("k.rotation", "=", rotation)
    .where("k.state", "<>", "retired")
    .orderBy("k.requested_at")
    .orderBy("k.intent_id")
    .execute();
}

function ledgerKey(row: Awaited<ReturnType<typeof keyRows>>[number]): LedgerKey {
  return {
    intentId: row.intent_id,
    apiKeyId: row.api_key_id ?? undefined,
    state: row.state,
    step: row.step ?? undefined,
    comment: row.comment,
    requestedAt: row.requested_at,
    createdAt: row.created_at ?? undefined,
    expiresAt: row.expires_at ?? undefined,
    activeSince: row.active_since ?? undefined,
    putBackAt: row.put_back_at ?? undefined,
    drainingSince: row.draining_since ?? undefined,
    dueForRemovalAt: row.due_for_removal_at ?? undefined,
    scopesAsked: row.scopes_asked,
    scopesGranted: row.scopes_granted ?? [],
    deliveredTo: row.delivered_to,
    note: row.note ?? undefined,
  };
}
