// Rows of statements that a process keeps from one read to the next: usage changes at night, and is looked at by day.

import { sql } from "kysely";
import { type KeptRows, knownRows } from "./transaction.ts";

type State = { readonly snapshot: string; readonly circumstances: string; readonly is_changed: boolean };

/**
 * Keeps rows until a transaction that their snapshot does not see has changed a table with the trigger record_change. A statement may depend on
 * the clock only through the day in UTC and what is due.
 */
export function keepRows(): KeptRows {
  let kept: { readonly state: State | undefined; readonly known: ReturnType<typeof knownRows> } | undefined;
  return () => {
    // The caller takes its snapshot after this, so it sees everything that the snapshot of `before` sees.
    const before = kept?.state;
    return async (tx) => {
      const { rows } = await sql<State>`
        select * from usage_export.data_state(${before?.snapshot ?? null}::pg_snapshot)
      `.execute(tx);
      const [state] = rows;
      const isOver = before === undefined || state?.is_changed || state?.circumstances !== before.circumstances;
      const now = isOver ? state : before;
      // The first of concurrent reads begins anew. The others usually have the same snapshot, and then share its rows.
      if (isOver && kept?.state === before) kept = { state, known: knownRows() };
      const isKept = kept?.state?.snapshot === now?.snapshot && kept?.state?.circumstances === now?.circumstances;
      return (isKept && kept ? kept.known : knownRows())(tx);
    };
  };
}
