// Begins a run whose requests the workers share: the run, its work and what it makes due are one transaction.

import { randomUUID } from "node:crypto";
import { takeFetchNo } from "../db/fetch-numbers.ts";
import type { Queue } from "../db/queue.ts";
import { extendDue, idOf, type SeriesIds } from "../db/series.ts";
import { insertRun, openRequests } from "../db/shared-runs.ts";
import type { Tx } from "../db/transaction.ts";
import type { RunTrigger } from "../usage/export.ts";
import { type ExportJob, type ExportPlan, slicesOf } from "../usage/plan.ts";
import { priorityOf, type QueuedRequest, workKey } from "./queued-request.ts";

export type SharedRun = {
  readonly job: ExportJob;
  readonly trigger: RunTrigger;
  /** The moment of its schedule; undefined where a gap or a person began it. */
  readonly scheduledFor: Date | undefined;
  readonly plan: ExportPlan;
};

export type Shared = { readonly runId: string; readonly requests: number };

/** Undefined where there is a run for that moment already. What another run is reading is left to it. */
export async function shareRun(
  tx: Tx,
  { queue, ids }: { readonly queue: Queue; readonly ids: SeriesIds },
  { job, trigger, scheduledFor, plan }: SharedRun,
): Promise<Shared | undefined> {
  const runId = randomUUID();
  const run = { runId, kind: "export", job: job.name, trigger, scheduledFor, status: "running" } as const;
  if (!(await insertRun(tx, run))) return undefined;
  const { requests, runDay, due } = plan;
  const seriesIds = new Set(requests.map(({ series }) => idOf(ids, series)));
  if (due) await extendDue(tx, [...seriesIds], due);
  const fetchNo = await takeFetchNo(tx);
  const works = requests.map((request) => {
    const { series, window } = request;
    const data: QueuedRequest = {
      ...{ runId, fetchNo, runDay, job: job.name, seriesId: idOf(ids, series) },
      ...{ emptyGuard: job.emptyGuard, cliffGuard: job.cliffGuard },
      ...{ checkFeatures: job.checkFeatures, undated: job.undated },
      ...series,
      ...(window && { window }),
    };
    return { key: workKey(data), priority: priorityOf(data), data, request };
  });
  const added = await queue.add(tx, "usage_request", works);
  await openRequests(tx, runId, { requests: added.length, slices: slicesOf(added.map(({ request }) => request)) });
  return { runId, requests: added.length };
}
