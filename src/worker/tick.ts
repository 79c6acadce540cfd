// A tick: what the schedules and the gaps of all jobs ask for becomes runs and their work. Any number of workers that tick
// together decide it once.

import { isAway } from "../db/away.ts";
import type { JobId } from "../db/jobs.ts";
import { errorCode, errorText } from "../errors.ts";
import { type JobTick, NOTHING, STILL_RUNNING } from "./look-at-job.ts";
import { tellRunEnded } from "./run-ended.ts";
import { tickExport } from "./tick-export.ts";
import { tickRotation } from "./tick-rotation.ts";
import type { WorkerWorld } from "./world.ts";

export type TickResult = {
  /** Whether there is new work in the queue. */
  readonly began: boolean;
  /** When the first moment comes that has come, but for its job's jitter. */
  readonly wakeAt: Date | undefined;
};

/** What goes wrong with one job does not keep the others. Throws only where the database is away. */
export async function tick(world: WorkerWorld): Promise<TickResult> {
  const { exports, rotations } = world.config;
  const ticks: JobTick[] = [];
  for (const job of exports) ticks.push(await told(world, "export", job.name, () => tickExport(world, job)));
  for (const job of rotations) ticks.push(await told(world, "rotation", job.name, () => tickRotation(world, job)));
  const wakes = ticks.flatMap(({ wakeAt }) => wakeAt ?? []);
  return {
    began: ticks.some(({ began }) => began),
    wakeAt: wakes.length > 0 ? new Date(Math.min(...wakes.map(Number))) : undefined,
  };
}

async function told(
  world: WorkerWorld,
  kind: JobId["kind"],
  job: string,
  tickJob: () => Promise<JobTick>,
): Promise<JobTick> {
  const { app } = world;
  try {
    const ticked = await tickJob();
    if (ticked.skipped) {
      tellRunEnded(world, { kind, job, trigger: "schedule", status: "skipped", error: STILL_RUNNING });
    }
    return ticked;
  } catch (error) {
    if (isAway(error)) throw error;
    app.log.error({ kind, job, code: errorCode(error), reason: errorText(error) }, "tick failed");
    return NOTHING;
  }
}
