// A run from the decision at a tick to the report of its end.

import { type Database, databaseNow } from "../db/connection/database.ts";
import { inTransaction, type Tx } from "../db/connection/transaction.ts";
import { type JobId, lockJob, markScheduled } from "../db/jobs/jobs.ts";
import { runningRuns } from "../db/jobs/runs.ts";
import { latestOccurrence, type Schedule } from "../schedule/cron.ts";
import { type DueRun, planTick } from "../schedule/due.ts";
import { counted, durationText, instantText } from "../show/format.ts";
import type { RunCounts } from "../usage/counts.ts";
import type { WorkerContext } from "./context.ts";

export type TickOutcome = {
  /** Whether a run was started, so that there are new queue jobs. */
  readonly started: boolean;
  /** Time until the next tick is wanted. */
  readonly wakeInMs?: number;
};

export const NOTHING_DUE: TickOutcome = { started: false };

type JobToTick = JobId & Schedule;

type TickActions = {
  /** Starts the run of this scheduled time. */
  readonly start: (tx: Tx, due: DueRun, now: Date) => Promise<TickOutcome>;
  /**
   * Starts a run of missing days, if there are any. Called if no scheduled run is due and the job is not paused; not while a run of
   * the job is in progress, which might be reading those days.
   */
  readonly idle?: (tx: Tx, now: Date) => Promise<TickOutcome>;
};

/** Decides under a lock what a job does at this tick, and does it in the same transaction. */
export async function tickJob(db: Database, job: JobToTick, { start, idle }: TickActions): Promise<TickOutcome> {
  const now = await databaseNow(db);
  return inTransaction(db, async (tx) => {
    const stored = await lockJob(tx, job);
    if (!stored) return NOTHING_DUE;
    const runs = await runningRuns(tx, job.kind, job.name);
    const latest = latestOccurrence(job, now);
    const paused = stored.pause !== undefined;
    // A scheduled run does not wait for a person's export or backfill.
    const running = runs.some(({ trigger }) => trigger === "schedule" || trigger === "catchup");
    const state = { scheduledThrough: stored.scheduledThrough, paused, running };
    const due = planTick(latest, state, now);
    if (!due) return idle && !paused && runs.length === 0 ? idle(tx, now) : NOTHING_DUE;
    const outcome = await start(tx, due, now);
    await markScheduled(tx, job, due.scheduledFor);
    return outcome;
  });
}

// Reports that a run ended: in the log or, on a terminal, in a line for a person.

export type EndedRun = {
  readonly kind: "export" | "rotation";
  readonly job: string;
  readonly trigger: string;
  readonly status: string;
  readonly runId?: string;
  readonly seconds?: number;
  /** The first error of the run. */
  readonly error?: string | null | undefined;
  /** Set for an export. */
  readonly counts?: RunCounts;
  /** Set for a rotation: its actions, in order. */
  readonly did?: readonly string[];
};

export function reportRunEnd({ app }: Pick<WorkerContext, "app">, run: EndedRun): void {
  if (app.terminal) {
    app.write(`${runLine(run, new Date())}\n`);
    return;
  }
  const { counts, error, ...rest } = run;
  const facts = { ...rest, ...counts, ...(error != null && { error }) };
  if (run.status === "ok") app.log.info(facts, "run finished");
  else app.log.warn(facts, "run finished");
}

export function runLine({ kind, job, trigger, status, seconds, error, counts, did = [] }: EndedRun, at: Date): string {
  const parts = counts
    ? [
        counted(counts.requests, "request"),
        `${counts.complete} of ${counts.planned} slices complete`,
        `${counted(counts.rowsChanged, "row")} changed`,
      ]
    : did;
  const time = seconds === undefined ? [] : [durationText(seconds)];
  const reason = error == null ? "" : `: ${error}`;
  return `${instantText(at)} ${kind} ${job} (${trigger}) ${[status, ...parts, ...time].join(", ")}${reason}`;
}
