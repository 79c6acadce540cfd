// Records a run of which this process makes all requests: its start, its heartbeats and how it ends.

import { finishRun, heartbeatRun, type NewRun, type RunProject, startRun } from "../db/jobs/runs.ts";
import { errorText } from "../errors.ts";
import type { RotationContext } from "./context.ts";

/** A third of the time after which a run without a heartbeat counts as interrupted. */
const HEARTBEAT_MS = 10_000;

export type RunOutcome = {
  readonly status: "ok" | "failed";
  /** The first error of the run. */
  readonly error: string | undefined;
};

/** Returns and throws what `work` does. */
export async function recordedRun<T extends RunOutcome>(
  { app, db }: Pick<RotationContext, "app" | "db">,
  run: NewRun,
  projects: readonly RunProject[],
  work: () => Promise<T>,
): Promise<T> {
  const finish = (status: "ok" | "failed" | "stopped", error: string | undefined) =>
    finishRun(db, run.runId, status, error && app.scrubber.scrub(error));
  await startRun(db, run, projects);
  const heartbeat = setInterval(() => heartbeatRun(db, run.runId).catch(() => {}), HEARTBEAT_MS);
  try {
    const result = await work();
    await finish(result.status, result.error);
    return result;
  } catch (error) {
    // If the database is lost, this fails, too, and the missing heartbeat shows that the run was interrupted.
    await finish(app.signal.aborted ? "stopped" : "failed", errorText(error)).catch(() => {});
    throw error;
  } finally {
    clearInterval(heartbeat);
  }
}
