// Rows of statements that a process keeps from one read to the next: usage changes at night, and is looked at by day.

import { sql } from "kysely";
import { type KeptRows, queryCache } from "./transaction.ts";

type State = { readonly snapshot: string; readonly circumstances: string; readonly is_changed: boolean };

/**
 * Keeps rows until the data change: until a transaction that the rows' snapshot does not see has written to a table with the trigger
 * record_change. The clock may change the rows of a statement only by the day in UTC and by what is due, which are in `circumstances`.
 */
export function keepRows(): KeptRows {
  let kept: (State & { readonly known: ReturnType<typeof queryCache> }) | undefined;
  return () => {
    // The caller takes its snapshot after this, so its data are never older than the rows of `before`.
    const before = kept;
    return async (tx) => {
      const { rows } = await sql<State>`
        select * from usage_export.data_state(${before?.snapshot ?? null}::pg_snapshot)
      `.execute(tx);
      const [state] = rows;
      if (!state) throw new Error("expected one row with the state of the data");
      if (before && !state.is_changed && state.circumstances === before.circumstances) return before.known(tx);
      if (kept === before) kept = { ...state, known: queryCache() };
      // Concurrent reads that found the rows outdated usually have the same snapshot, and share the new rows.
      const newest = kept;
      const isSame = newest?.snapshot === state.snapshot && newest.circumstances === state.circumstances;
      return (isSame ? newest.known : queryCache())(tx);
    };
  };
}
