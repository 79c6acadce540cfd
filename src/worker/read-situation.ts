// Reads what people are told of, as it is at one moment.

import { databaseNow } from "../db/database.ts";
import { dueSlices, failedSlices } from "../db/due-slices.ts";
import { type StoredJob, storedJobs } from "../db/jobs.ts";
import { rotationRows } from "../db/key-figures.ts";
import { lastOutcomes } from "../db/last-outcomes.ts";
import { readSnapshot } from "../db/read-snapshot.ts";
import { idOf } from "../db/series.ts";
import { runningRuns } from "../db/shared-runs.ts";
import type { Tx } from "../db/transaction.ts";
import { overdueSince, waitingSince } from "../jobs/next-due.ts";
import { needsAttention } from "../keys/plan.ts";
import type { GapsOfJob, RotationState, Situation } from "../monitor/situation.ts";
import { type ExportJob, seriesOf } from "../usage/plan.ts";
import type { Series } from "../usage/series.ts";
import type { WorkerWorld } from "./world.ts";

type Part = Pick<WorkerWorld, "db" | "config" | "ids">;

const DAY_SECONDS = 24 * 60 * 60;

export async function readSituation(world: Part): Promise<Situation> {
  const { exports, rotations } = world.config;
  return readSnapshot(world.db, async (tx) => {
    const gaps = await gapsOfJobs(tx, world);
    const broken = new Set(gaps.flatMap(({ job, failed }) => (failed ? [job] : [])));
    return {
      jobs: await lastOutcomes(tx, [
        ...exports.map(({ name }) => ({ kind: "export", name, whole: !broken.has(name) }) as const),
        ...rotations.map(({ name }) => ({ kind: "rotation", name, whole: true }) as const),
      ]),
      gaps,
      rotations: await rotationStates(tx, world),
    };
  });
}

type JobSeries = {
  readonly job: ExportJob;
  readonly series: ReadonlyMap<number, Series>;
  readonly unsettled: boolean;
};

/** Whether a slice of a job is failed is known even while its gaps can't be told. */
async function gapsOfJobs(tx: Tx, { config, ids }: Part): Promise<(GapsOfJob & { readonly failed: boolean })[]> {
  const now = await databaseNow(tx);
  const stored = await storedJobs(tx);
  const jobs: JobSeries[] = [];
  for (const job of config.exports) {
    const series = new Map(seriesOf(job).map((one) => [idOf(ids, one), one]));
    jobs.push({ job, series, unsettled: await isUnsettled(tx, job, stored, now) });
  }
  const seriesIds = jobs.flatMap(({ series }) => [...series.keys()]);
  const due = await dueSlices(tx, seriesIds);
  const missing = due.flatMap(({ seriesId, day, status }) => (status === "missing" ? [{ seriesId, day, status }] : []));
  const notRead = [...missing, ...(await failedSlices(tx, seriesIds))];
  return jobs.map(({ job, series }) => {
    // Whatever reads one of its series may be about to read its gaps.
    const untold = jobs.some((other) => other.unsettled && [...other.series.keys()].some((id) => series.has(id)));
    const slices = notRead.flatMap(({ seriesId, day, status }) => {
      const one = series.get(seriesId);
      return one ? [{ series: `${one.project.name} / ${one.grouping} / ${one.filter.name}`, day, status }] : [];
    });
    const failed = slices.some(({ status }) => status === "failed");
    return { job: job.name, slices: untold ? undefined : slices, failed };
  });
}

/** A run of it is under way, or begins with the next tick; or a person paused it, and knows. */
async function isUnsettled(tx: Tx, job: ExportJob, stored: readonly StoredJob[], now: Date): Promise<boolean> {
  const known = stored.find(({ kind, name }) => kind === "export" && name === job.name);
  if (known?.pause) return true;
  if (waitingSince(job, known, now) && !overdueSince(job, known, now)) return true;
  return (await runningRuns(tx, "export", job.name)).length > 0;
}

async function rotationStates(tx: Tx, { config }: Part): Promise<RotationState[]> {
  const rows = await rotationRows(tx);
  return config.rotations.flatMap(({ name, maxAgeDays, retire }) => {
    const row = rows.find(({ rotation }) => rotation === name);
    if (!row) return [];
    const { failedAttempts, lastError, orphan, dueForRemoval, longDueForRemoval, fallback, ageSeconds } = row;
    return {
      ...{ rotation: name, maxAgeDays, retire, failedAttempts, lastError, dueForRemoval, fallback },
      needsAttention: needsAttention(failedAttempts),
      longDueForRemoval,
      orphans: orphan,
      ageDays: ageSeconds === null ? null : Math.floor(ageSeconds / DAY_SECONDS),
    };
  });
}
