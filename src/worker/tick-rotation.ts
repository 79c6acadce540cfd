// Decides what a rotation does at a tick.

import { randomUUID } from "node:crypto";
import { databaseNow } from "../db/database.ts";
import { markScheduled } from "../db/jobs.ts";
import { insertRun } from "../db/shared-runs.ts";
import { inTransaction } from "../db/transaction.ts";
import type { RotationJob } from "../keys/policy.ts";
import { type JobTick, lookAtJob, NOTHING, skipRun } from "./look-at-job.ts";
import type { WorkerWorld } from "./world.ts";

export async function tickRotation({ db, queue }: WorkerWorld, job: RotationJob): Promise<JobTick> {
  const scheduled = { ...job, kind: "rotation", overlap: "skip" } as const;
  const now = await databaseNow(db);
  return inTransaction(db, async (tx) => {
    const { decision } = (await lookAtJob(tx, scheduled, now)) ?? {};
    if (decision === undefined || decision.kind === "none") return NOTHING;
    if (decision.kind === "wait") return { began: false, wakeInMs: decision.until.getTime() - now.getTime() };
    if (decision.kind === "skip") return skipRun(tx, scheduled, decision.scheduledFor);
    const { trigger, scheduledFor } = decision;
    const runId = randomUUID();
    const work = { key: job.name, priority: 0, data: { runId, job: job.name, trigger } };
    const [added] = await queue.add(tx, "rotation", [work]);
    // The one before it waits for a worker still.
    if (!added) return skipRun(tx, scheduled, scheduledFor);
    await insertRun(tx, { runId, kind: "rotation", job: job.name, trigger, scheduledFor, status: "running" });
    await markScheduled(tx, scheduled, scheduledFor);
    return { began: true };
  });
}
