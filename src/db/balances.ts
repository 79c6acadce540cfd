// Stores the balances of a project. A row is a stretch of readings with the same amount, so that a run that reads nothing new only
// moves the end of the stretch.

import { sql } from "kysely";
import type { Project } from "../usage/series.ts";
import type { Database } from "./connection/database.ts";
import { inTransaction } from "./connection/transaction.ts";
import { storableText } from "./storable-text.ts";

export type Balance = {
  readonly balanceId: string;
  /** Exact decimal text, which may be negative. */
  readonly amount: string;
  /** The currency as the service writes it; null if it sent none. */
  readonly units: string | null;
  readonly purchaseOrderId: string | null;
};

/** `balances` are all that the service lists: the stretch of any other has ended. */
export async function storeBalances(db: Database, project: Project, balances: readonly Balance[]): Promise<void> {
  const texts = (of: (balance: Balance) => string | null) =>
    balances.map((balance) => {
      const text = of(balance);
      return text === null ? null : storableText(text);
    });
  const listed = sql`
    unnest(
      ${texts(({ balanceId }) => balanceId)}::text[], ${balances.map(({ amount }) => amount)}::numeric[],
      ${texts(({ units }) => units)}::text[], ${texts(({ purchaseOrderId }) => purchaseOrderId)}::text[]
    ) as listed (balance_id, amount, units, purchase_order_id)
  `;
  await inTransaction(db, async (tx) => {
    await sql`
      update usage_export.balance b set ended_at = now()
      where b.project_id = ${project.id} and b.ended_at is null and not exists (
        select from ${listed}
        where listed.balance_id = b.balance_id
          and (listed.amount, listed.units, listed.purchase_order_id) is not distinct from (b.amount, b.units, b.purchase_order_id)
      )
    `.execute(tx);
    await sql`
      insert into usage_export.balance as known (project_id, project, balance_id, amount, units, purchase_order_id)
      select ${project.id}, ${project.name}, balance_id, amount, units, purchase_order_id from ${listed}
      on conflict (project_id, balance_id) where ended_at is null
      do update set project = excluded.project, last_read_at = now()
      -- Another run may have stored another amount at the same time: this run did not read that one.
      where (known.amount, known.units, known.purchase_order_id)
        is not distinct from (excluded.amount, excluded.units, excluded.purchase_order_id)
    `.execute(tx);
  });
}
