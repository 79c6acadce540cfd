// Decides what an export does at a tick: its night, and the days that are due and not there.

import { databaseNow } from "../db/database.ts";
import { dueSlices } from "../db/due-slices.ts";
import { markScheduled } from "../db/jobs.ts";
import { idOf, markNextDue } from "../db/series.ts";
import { inTransaction, type Tx } from "../db/transaction.ts";
import { nextDueOf } from "../jobs/next-due.ts";
import { dayOf } from "../usage/day.ts";
import {
  type ExportJob,
  type ExportPlan,
  planRun,
  requestsOfDays,
  seriesOf,
  type UsageRequest,
} from "../usage/plan.ts";
import { isRested } from "../usage/plan-catch-up.ts";
import { type JobTick, lookAtJob, NOTHING, skipRun } from "./look-at-job.ts";
import { type SharedRun, shareRun } from "./share-run.ts";
import type { WorkerWorld } from "./world.ts";

export async function tickExport(world: WorkerWorld, job: ExportJob): Promise<JobTick> {
  const scheduled = { ...job, kind: "export" } as const;
  const now = await databaseNow(world.db);
  return inTransaction(world.db, async (tx) => {
    const looked = await lookAtJob(tx, scheduled, now);
    if (!looked) return NOTHING;
    const { decision, paused, runs } = looked;
    if (decision.kind === "wait") return { began: false, wakeInMs: decision.until.getTime() - now.getTime() };
    if (decision.kind === "none") {
      // A day that another run is about to read is no gap yet.
      return paused || runs.length > 0 ? NOTHING : fillGaps(tx, world, job, now);
    }
    // The day it would have read stays due, and is a gap as soon as the run before it is over.
    if (decision.kind === "skip") return skipRun(tx, scheduled, decision.scheduledFor);
    const night = planRun(job, dayOf(now));
    const gaps = await gapRequests(tx, world, job, now, night.due);
    const { trigger, scheduledFor } = decision;
    const plan = { ...night, requests: [...night.requests, ...gaps] };
    const begun = await begin(tx, world, { job, trigger, scheduledFor, plan });
    await markScheduled(tx, scheduled, scheduledFor);
    // Last: until then what was missed is due because this moment is past.
    await markNextDue(tx, nextDueOf(seriesOf(job), world.ids, world.config.exports, now));
    return begun;
  });
}

async function fillGaps(tx: Tx, world: WorkerWorld, job: ExportJob, now: Date): Promise<JobTick> {
  const requests = await gapRequests(tx, world, job, now, undefined);
  if (requests.length === 0) return NOTHING;
  const plan = { requests, runDay: dayOf(now), due: undefined };
  return begin(tx, world, { job, trigger: "catchup", scheduledFor: undefined, plan });
}

async function begin(tx: Tx, world: WorkerWorld, run: SharedRun): Promise<JobTick> {
  const shared = await shareRun(tx, world, run);
  if (!shared) return NOTHING;
  const { job, trigger, scheduledFor } = run;
  world.app.log.info({ job: job.name, ...shared, trigger, scheduledFor }, "run begun");
  return { began: true };
}

/** The days that are due and not there, but for those that the night reads anyway. Without a window the service chooses the days. */
async function gapRequests(
  tx: Tx,
  { ids }: WorkerWorld,
  job: ExportJob,
  now: Date,
  night: ExportPlan["due"],
): Promise<UsageRequest[]> {
  if (!job.window) return [];
  const series = new Map(seriesOf(job).map((one) => [idOf(ids, one), one]));
  const slices = await dueSlices(tx, [...series.keys()]);
  const gaps = slices.filter(
    (slice) => isRested(slice, now) && (night === undefined || slice.day < night.oldest.start),
  );
  const bySeries = Map.groupBy(gaps, ({ seriesId }) => seriesId);
  return [...series].flatMap(([id, one]) => {
    const days = bySeries.get(id) ?? [];
    return requestsOfDays(
      one,
      days.map(({ day }) => day),
    );
  });
}
