// Rotates the key of one project of a run. The ledger records the progress, so another worker can continue.

import type { RotationConfig } from "../config/rotations.ts";
import type { OpenProject } from "../db/jobs/runs.ts";
import { AppError, errorCode, errorText } from "../errors.ts";
import { rotateKey } from "../jobs/rotation.ts";
import { NO_COUNTS } from "../usage/counts.ts";
import type { WorkerContext } from "./context.ts";
import { endProject, reportRunEnd } from "./runs.ts";

/**
 * A rotation that fails is not repeated before its next scheduled time, because each repeated create could make another key. Throws if
 * the queue job is to be tried again: the worker that claims it then continues from the ledger.
 */
export async function rotateProject(
  context: WorkerContext,
  rotation: RotationConfig,
  { runId, projectId, kind, trigger }: OpenProject,
): Promise<void> {
  const { did, error } = await attemptRotation(context, rotation);
  const status = error === undefined ? "ok" : "failed";
  const scrubbed = error && context.app.scrubber.scrub(error);
  reportRunEnd(context, { runId, kind, trigger, job: rotation.name, status, did, error: scrubbed ?? null });
  await endProject(context, { runId, projectId, counts: NO_COUNTS, error });
}

async function attemptRotation(
  context: WorkerContext,
  rotation: RotationConfig,
): Promise<{ readonly did: readonly string[]; readonly error: string | undefined }> {
  const { app } = context;
  try {
    const { did, errors } = await rotateKey(context, rotation);
    return { did, error: errors[0] };
  } catch (error) {
    app.signal.throwIfAborted();
    if (!(error instanceof AppError) || error.code === "database" || error.code === "stopped") throw error;
    const reason = errorText(error);
    app.log.error({ rotation: rotation.name, code: errorCode(error), reason }, "rotation failed");
    return { did: [], error: reason };
  }
}
