// Plans a rotation at a tick, and runs one from the queue. The ledger records its progress, so another worker can continue.

import { randomUUID } from "node:crypto";
import { z } from "zod";
import { inTransaction } from "../db/connection/transaction.ts";
import type { ClaimedJob } from "../db/jobs/queue.ts";
import { finishRun, insertRun } from "../db/jobs/runs.ts";
import { AppError, errorCode, errorText } from "../errors.ts";
import { runRotationJob } from "../jobs/run-rotation.ts";
import type { RotationJob } from "../keys/policy.ts";
import { NO_COUNTS } from "../usage/export.ts";
import type { WorkerContext } from "./context.ts";
import { recordSkippedRun, reportRunEnd, type TickOutcome, tickJob } from "./runs.ts";

export async function tickRotation({ db, queue }: WorkerContext, job: RotationJob): Promise<TickOutcome> {
  const scheduled = { ...job, kind: "rotation", overlap: "skip" } as const;
  return tickJob(db, scheduled, {
    async start(tx, { trigger, scheduledFor }) {
      const runId = randomUUID();
      const queueJob = { key: job.name, priority: 0, data: { runId, job: job.name, trigger } };
      const [added] = await queue.add(tx, "rotation", [queueJob]);
      // The previous run still waits for a worker.
      if (!added) return recordSkippedRun(tx, scheduled, scheduledFor);
      await insertRun(tx, { runId, kind: "rotation", job: job.name, trigger, scheduledFor });
      return { started: true };
    },
  });
}

// Works at one rotation from the queue. The ledger says how far it is, so that whoever takes it next goes on there.

const RotationItem = z.object({
  runId: z.string(),
  job: z.string(),
  trigger: z.enum(["schedule", "catchup"]),
});

/** A rotation that fails is not tried again before its next time: what it could not create once it may have created. */
export async function handleRotation(world: WorkerContext, taken: ClaimedJob): Promise<void> {
  const { runId, job: name, trigger } = RotationItem.parse(taken.data);
  const { app, db, queue, config, masterKeys } = world;
  const run = { kind: "rotation", job: name, trigger, runId } as const;
  const job = config.rotations.find((one) => one.name === name);
  if (job && masterKeys) {
    try {
      const { status, did, errors } = await runRotationJob({ ...world, masterKeys }, job, trigger, { runId });
      reportRunEnd(world, { ...run, status, did, error: errors[0] && app.scrubber.scrub(errors[0]) });
    } catch (error) {
      app.signal.throwIfAborted();
      // Whoever takes it next finds in the ledger how far it is.
      if (!(error instanceof AppError) || error.code === "database" || error.code === "stopped") throw error;
      reportRunEnd(world, { ...run, status: "failed", error: app.scrubber.scrub(errorText(error)) });
      app.log.error({ rotation: name, runId, code: errorCode(error), reason: errorText(error) }, "rotation failed");
    }
  } else {
    await finishRun(db, runId, "failed", NO_COUNTS, `no rotation ${JSON.stringify(name)} is configured any more`);
  }
  await inTransaction(db, async (tx) => void (await queue.complete(tx, taken)));
}
