// The log of runs.

import { sql } from "kysely";
import type { RunCounts, RunTrigger } from "../usage/export.ts";
import type { Database } from "./database.ts";
import { storableText } from "./storable-text.ts";
import { inTransaction } from "./transaction.ts";

export type NewRun = {
  readonly runId: string;
  readonly kind: "export" | "rotation";
  readonly job: string;
  readonly trigger: RunTrigger;
};

export async function startRun(db: Database, run: NewRun): Promise<void> {
  await inTransaction(db, (tx) =>
    tx
      .insertInto("usage_export.run")
      .values({ run_id: run.runId, kind: run.kind, job: run.job, trigger: run.trigger })
      .onConflict((conflict) => conflict.column("run_id").doNothing())
      .execute(),
  );
}

/** Called while the run works: a run that stops saying so was interrupted. */
export async function touchRun(db: Database, runId: string): Promise<void> {
  await inTransaction(db, (tx) =>
    sql`update usage_export.run set heartbeat_at = now() where run_id = ${runId}`.execute(tx),
  );
}

export async function finishRun(
  db: Database,
  runId: string,
  status: "ok" | "failed" | "stopped",
  counts: RunCounts,
  error: string | undefined,
): Promise<void> {
  await inTransaction(db, (tx) =>
    tx
      .updateTable("usage_export.run")
      .set({
        status,
        finished_at: sql<Date>`now()`,
        requests: counts.requests,
        slices_planned: counts.planned,
        slices_complete: counts.complete,
        slices_suspect: counts.suspect,
        slices_failed: counts.failed,
        slices_undated: counts.undated,
        rows_changed: counts.rowsChanged,
        error: error === undefined ? null : storableText(error),
      })
      .where("run_id", "=", runId)
      .execute(),
  );
}
