// A usage request as it waits in the queue: all that its work needs, so that a worker with another configuration does the same.

import { z } from "zod";
import { type Day, startOfDay } from "../usage/day.ts";
import type { UsageRequest } from "../usage/plan.ts";
import { DIMENSIONS, GROUPINGS } from "../usage/series.ts";
import { UNDATED } from "../usage/undated.ts";

const Text = z.string();

const QueuedRequest = z.object({
  runId: Text,
  job: Text,
  seriesId: z.int(),
  /** A number taken before the run was begun: a slice with a higher one was read since. */
  fetchNo: z.number(),
  /** The day on which the run was planned. */
  runDay: Text,
  emptyGuard: z.enum(["confirm", "off"]),
  /** Missing in requests that an earlier version queued. */
  cliffGuard: z.enum(["confirm", "off"]).default("confirm"),
  checkFeatures: z.enum(["error", "warn", "off"]),
  /** Missing in requests of an older version. */
  undated: z.enum(UNDATED).default("snapshot"),
  project: z.object({ id: Text, name: Text }),
  grouping: z.enum(GROUPINGS),
  filter: z.object({
    name: Text,
    features: z.record(Text, Text),
    dimensions: z.partialRecord(z.enum(DIMENSIONS), Text),
  }),
  window: z.object({ start: Text, end: Text }).optional(),
});

export type QueuedRequest = z.output<typeof QueuedRequest>;

export function parseQueued(data: unknown): QueuedRequest {
  return QueuedRequest.parse(data);
}

export function requestOf({ project, grouping, filter, window }: QueuedRequest): UsageRequest {
  return { series: { project, grouping, filter }, window };
}

/** Two requests for the same days of a series are the same work, whichever run wants them. */
export function workKey({ seriesId, window }: Pick<QueuedRequest, "seriesId" | "window">): string {
  return window ? `${seriesId} ${window.start} ${window.end}` : `${seriesId}`;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** The newest days first: what people look at, and the nightly run before a backfill. */
export function priorityOf({ window, runDay }: Pick<QueuedRequest, "window" | "runDay">): number {
  const day: Day = window?.end ?? runDay;
  return Math.floor(startOfDay(day).getTime() / DAY_MS);
}
