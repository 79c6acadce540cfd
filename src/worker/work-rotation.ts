// Works at one rotation from the queue. The ledger says how far it is, so that whoever takes it next goes on there.

import { z } from "zod";
import type { Taken } from "../db/queue.ts";
import { finishRun } from "../db/runs.ts";
import { inTransaction } from "../db/transaction.ts";
import { AppError, errorCode, errorText } from "../errors.ts";
import { runRotationJob } from "../jobs/run-rotation.ts";
import { NOTHING_DONE } from "../usage/export.ts";
import { tellRunEnded } from "./run-ended.ts";
import type { WorkerWorld } from "./world.ts";

const QueuedRotation = z.object({
  runId: z.string(),
  job: z.string(),
  trigger: z.enum(["schedule", "catchup"]),
});

/** A rotation that fails is not tried again before its next time: what it could not create once it may have created. */
export async function workAtRotation(world: WorkerWorld, taken: Taken): Promise<void> {
  const { runId, job: name, trigger } = QueuedRotation.parse(taken.data);
  const { app, db, queue, config, masterKeys } = world;
  const run = { kind: "rotation", job: name, trigger, runId } as const;
  const job = config.rotations.find((one) => one.name === name);
  if (job && masterKeys) {
    try {
      const { status, did, errors } = await runRotationJob({ ...world, masterKeys }, job, trigger, { runId });
      tellRunEnded(world, { ...run, status, did, error: errors[0] && app.scrubber.scrub(errors[0]) });
    } catch (error) {
      app.signal.throwIfAborted();
      // Whoever takes it next finds in the ledger how far it is.
      if (!(error instanceof AppError) || error.code === "database" || error.code === "stopped") throw error;
      tellRunEnded(world, { ...run, status: "failed", error: app.scrubber.scrub(errorText(error)) });
      app.log.error({ rotation: name, runId, code: errorCode(error), reason: errorText(error) }, "rotation failed");
    }
  } else {
    await finishRun(db, runId, "failed", NOTHING_DONE, `no rotation ${JSON.stringify(name)} is configured any more`);
  }
  await inTransaction(db, async (tx) => void (await queue.complete(tx, taken)));
}
