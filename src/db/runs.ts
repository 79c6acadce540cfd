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
        slices_stale: counts.stale,
        rows_changed: counts.rowsChanged,
        error: error === undefined ? null : storableText(error),
      })
      .where("run_id", "=", runId)
      .execute(),
  );
}

/** Limit for one statement: a job that runs every minute has some hundred thousand runs after a year or more. */
const FORGOTTEN_AT_ONCE = 10_000;

export type Forgotten = { readonly runs: number; readonly keyEvents: number };

/**
 * Deletes runs older than `keepDays`, and the events of keys that were retired longer ago than that. The newest run of each job,
 * outcome and trigger stays, because the job's health is read from it. `now` comes from another clock than the database's, and
 * the earlier of both counts: a clock set ahead must not delete everything.
 */
export async function forgetOldRuns(db: Database, keepDays: number, now: Date): Promise<Forgotten> {
  const before = sql`least(now(), ${now}::timestamptz) - make_interval(days => ${keepDays})`;
  let runs = 0;
  for (let last = FORGOTTEN_AT_ONCE; last === FORGOTTEN_AT_ONCE; runs += last) {
    const { numAffectedRows } = await inTransaction(db, (tx) =>
      sql`
        delete from usage_export.run where run_id in (
          select run_id from usage_export.run old
          where started_at < ${before} and heartbeat_at < ${before} and exists (
            select from usage_export.run newer
            where newer.kind = old.kind and newer.job = old.job and newer.started_at > old.started_at
              and newer.status = old.status and newer.trigger = old.trigger
          )
          order by started_at limit ${FORGOTTEN_AT_ONCE}
        )
      `.execute(tx),
    );
    last = Number(numAffectedRows ?? 0);
  }
  const { numAffectedRows } = await inTransaction(db, (tx) =>
    sql`
      delete from usage_export.key_event e using usage_export.api_key k
      where k.intent_id = e.intent_id and k.state = 'retired' and k.retired_at < ${before} and e.at < ${before}
    `.execute(tx),
  );
  return { runs, keyEvents: Number(numAffectedRows ?? 0) };
}
