// A tick: what the schedules and the gaps of all jobs ask for becomes runs and their work. Any number of workers that tick
// together decide it once.

import { isAway } from "../db/away.ts";
import { databaseNow } from "../db/database.ts";
import type { JobId } from "../db/jobs.ts";
import { renewNextDue } from "../db/series.ts";
import { errorCode, errorText } from "../errors.ts";
import { followClockBack } from "../jobs/follow-clock.ts";
import { nextDueOf } from "../jobs/next-due.ts";
import { configuredSeries } from "../usage/plan.ts";
import { type JobTick, NOTHING, STILL_RUNNING } from "./look-at-job.ts";
import { tellRunEnded } from "./run-ended.ts";
import { tickExport } from "./tick-export.ts";
import { tickRotation } from "./tick-rotation.ts";
import type { WorkerWorld } from "./world.ts";

export type TickResult = {
  /** Whether there is new work in the queue. */
  readonly began: boolean;
  /** Time left until the jitter of the first job that is already due is over. */
  readonly wakeInMs: number | undefined;
};

/** What goes wrong with one job does not keep the others. Throws only where the database is away. */
export async function tick(world: WorkerWorld): Promise<TickResult> {
  const { exports, rotations } = world.config;
  if (await followClockBack(world.app, world.db)) await renewDue(world);
  const ticks: JobTick[] = [];
  for (const job of exports) ticks.push(await told(world, "export", job.name, () => tickExport(world, job)));
  for (const job of rotations) ticks.push(await told(world, "rotation", job.name, () => tickRotation(world, job)));
  const wakes = ticks.flatMap(({ wakeInMs }) => wakeInMs ?? []);
  return {
    began: ticks.some(({ began }) => began),
    wakeInMs: wakes.length > 0 ? Math.min(...wakes) : undefined,
  };
}

/** The stored due times of series were computed by the clock before it was set back. */
async function renewDue({ db, config, ids }: WorkerWorld): Promise<void> {
  const series = configuredSeries(config.exports).map((one) => one.series);
  await renewNextDue(db, nextDueOf(series, ids, config.exports, await databaseNow(db)));
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
