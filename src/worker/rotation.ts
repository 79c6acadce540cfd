// Plans a rotation at a tick, and runs one from the queue. The ledger records its progress, so another worker can continue.

import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { RotationConfig } from "../config/rotations.ts";
import { databaseNow } from "../db/connection/database.ts";
import { storedJobFinder, storedJobs } from "../db/jobs/jobs.ts";
import type { ClaimedJob } from "../db/jobs/queue.ts";
import { finishRun, heartbeatRun, insertRun } from "../db/jobs/runs.ts";
import { AppError, errorCode, errorText } from "../errors.ts";
import { runRotationJob } from "../jobs/rotation.ts";
import { latestOccurrence } from "../schedule/cron.ts";
import { planTick } from "../schedule/due.ts";
import type { WorkerContext } from "./context.ts";
import { NOTHING_DUE, reportRunEnd, type TickOutcome, tickJob } from "./runs.ts";

/** The rotations that may begin now. Finding that out for all of them takes one statement, and planning each a transaction. */
export async function rotationsToPlan({ db, config }: WorkerContext): Promise<readonly RotationConfig[]> {
  if (config.rotations.length === 0) return [];
  const storedOf = storedJobFinder(await storedJobs(db));
  const now = await databaseNow(db);
  return config.rotations.filter((job) => {
    const stored = storedOf({ ...job, kind: "rotation" });
    const state = { scheduledThrough: stored?.scheduledThrough, paused: stored?.pause !== undefined, running: false };
    return planTick(latestOccurrence(job, now), state, now) !== undefined;
  });
}

export async function tickRotation({ db, queue }: WorkerContext, job: RotationConfig): Promise<TickOutcome> {
  return tickJob(
    db,
    { ...job, kind: "rotation" },
    {
      async start(tx, { trigger, scheduledFor }) {
        const runId = randomUUID();
        const queueJob = { singletonKey: job.name, data: { runId, job: job.name, trigger } };
        const added = await queue.add(tx, "rotation", [queueJob]);
        // The previous run's job is still in the queue.
        if (added === 0) return NOTHING_DUE;
        await insertRun(tx, { runId, kind: "rotation", job: job.name, trigger, scheduledFor });
        return { started: true };
      },
    },
  );
}

/** With the delays of the queue this is two minutes: a worker takes up a changed list of projects, or a changed file, in less. */
const UNKNOWN_RETRIES_MAX = 6;

const QueuedRotation = z.object({
  runId: z.string(),
  job: z.string(),
  trigger: z.enum(["schedule", "catchup"]),
});

/**
 * Runs a queued rotation. A rotation that fails is not repeated before its next scheduled time, because each repeated create could make
 * another key.
 */
export async function handleRotation(
  context: WorkerContext,
  claimed: ClaimedJob,
  onUnknownProject: () => void,
): Promise<void> {
  const { runId, job: name, trigger } = QueuedRotation.parse(claimed.data);
  const { app, db, config } = context;
  const job = config.rotations.find((rotation) => rotation.name === name);
  if (!job && claimed.retryCount < UNKNOWN_RETRIES_MAX) {
    onUnknownProject();
    await heartbeatRun(db, runId);
    throw new AppError(
      "config",
      `no rotation ${JSON.stringify(name)} is in the configuration of this worker; the one that planned it may have a newer one`,
    );
  }
  if (!job) return finishRun(db, runId, "failed", `no rotation ${JSON.stringify(name)} is configured any more`);
  const run = { kind: "rotation", job: name, trigger, runId } as const;
  try {
    const { status, did, errors } = await runRotationJob(context, job, trigger, { runId });
    reportRunEnd(context, { ...run, status, did, error: errors[0] && app.scrubber.scrub(errors[0]) });
  } catch (error) {
    app.signal.throwIfAborted();
    // The queue job then goes back to the queue, and the worker that claims it continues from the ledger.
    if (!(error instanceof AppError) || error.code === "database" || error.code === "stopped") throw error;
    reportRunEnd(context, { ...run, status: "failed", error: app.scrubber.scrub(errorText(error)) });
    app.log.error({ rotation: name, runId, code: errorCode(error), reason: errorText(error) }, "rotation failed");
  }
}
