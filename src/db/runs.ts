// The log of runs, and the numbers fetches are told apart by.

import { sql } from "kysely";
import type { RunCounts, RunTrigger } from "../usage/export.ts";
import type { Database } from "./database.ts";

export type NewRun = {
  readonly runId: string;
  readonly kind: "export" | "rotation";
  readonly job: string;
  readonly trigger: RunTrigger;
};

export async function startRun(db: Database, run: NewRun): Promise<void> {
  await db
    .insertInto("usage_export.run")
    .values({ run_id: run.runId, kind: run.kind, job: run.job, trigger: run.trigger })
    .execute();
}

/** Called while the run works: a run that stops saying so was interrupted. */
export async function touchRun(db: Database, runId: string): Promise<void> {
  await sql`update usage_export.run set heartbeat_at = now() where run_id = ${runId}`.execute(db);
}

export async function finishRun(
  db: Database,
  runId: string,
  status: "ok" | "failed" | "stopped",
  counts: RunCounts,
  error: string | undefined,
): Promise<void> {
  await db
    .updateTable("usage_export.run")
    .set({
      status,
      finished_at: sql<Date>`now()`,
      requests: counts.requests,
      slices_planned: counts.planned,
      slices_complete: counts.complete,
      slices_suspect: counts.suspect,
      slices_failed: counts.failed,
      rows_changed: counts.rowsChanged,
      error: error ?? null,
    })
    .where("run_id", "=", runId)
    .execute();
}

/** Later fetches have higher numbers, whichever process makes them. */
export async function nextFetchNo(db: Database): Promise<number> {
  const { rows } = await sql<{ no: string | number }>`select nextval('usage_export.fetch_no') as no`.execute(db);
  return Number(rows[0]?.no);
}
