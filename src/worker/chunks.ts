// A chunk: the usage requests of a run that a worker claims together as one queue job. Pure.

import { z } from "zod";
import { DAY_MS, type Day, startOfDay } from "../usage/days.ts";
import { FEATURE_CHECKS, type UsageRequest } from "../usage/plan.ts";
import { DIMENSIONS, type Grouping, isGrouping, SOURCES } from "../usage/series.ts";
import { GUARD_MODES, UNDATED } from "../usage/slice.ts";

const Text = z.string();

/** The data of a queue job. It contains all settings, so that a worker with another configuration does the same. */
const Chunk = z.object({
  chunkId: Text,
  runId: Text,
  job: Text,
  /** Taken when the run started. A slice with a higher fetch number has been read since then. */
  fetchNo: z.number(),
  /** The day on which the run was planned. */
  runDay: Text,
  emptyGuard: z.enum(GUARD_MODES),
  /** Missing in jobs that an older version queued. */
  cliffGuard: z.enum(GUARD_MODES).default("confirm"),
  checkFeatures: z.enum(FEATURE_CHECKS),
  /** Missing in jobs that an older version queued. */
  undated: z.enum(UNDATED).default("snapshot"),
});

export type Chunk = z.output<typeof Chunk>;

export function parseChunk(data: unknown): Chunk {
  return Chunk.parse(data);
}

const QueuedRequest = z.object({
  seriesId: z.int(),
  project: z.object({ id: Text, name: Text }),
  /** Missing in requests that an older version queued. */
  source: z.enum(SOURCES).default("usage"),
  grouping: z.custom<Grouping>((grouping) => typeof grouping === "string" && isGrouping(grouping)),
  filter: z.object({
    name: Text,
    features: z.record(Text, Text),
    dimensions: z.partialRecord(z.enum(DIMENSIONS), Text),
    isSeen: z.literal(true).exactOptional(),
  }),
  window: z.object({ start: Text, end: Text }).optional(),
});

type SeriesRequest = UsageRequest & { readonly seriesId: number };

/** A request as it is stored. Requests of different runs for the same days of a series have the same key, and are made once. */
export function queuedRequest({ seriesId, series, window }: SeriesRequest) {
  const key = window ? `${seriesId} ${window.start} ${window.end}` : `${seriesId}`;
  return { key, request: { seriesId, ...series, window } };
}

export function parseRequest(data: unknown): SeriesRequest {
  const { seriesId, window, ...series } = QueuedRequest.parse(data);
  return { seriesId, series, window };
}

const CHUNK_REQUESTS_MAX = 50;
/** A run with at least this many requests has at least this many chunks, so that several workers are busy until its end. */
const CHUNKS_MIN = 32;

/**
 * Returns the requests of each chunk. The newest days come first, because people look at them. The requests of a project stay
 * together, because for each project of a chunk the worker requests the names that the service knows, and totals.
 */
export function chunksOf(requests: readonly UsageRequest[], runDay: Day): (readonly UsageRequest[])[] {
  const byDay = [...Map.groupBy(requests, (request) => newestDay(request, runDay))].sort(([a], [b]) =>
    a < b ? 1 : -1,
  );
  const sorted = byDay.flatMap(([, ofDay]) =>
    [...Map.groupBy(ofDay, ({ series }) => series.project.id).values()].flat(),
  );
  const size = Math.min(CHUNK_REQUESTS_MAX, Math.ceil(sorted.length / CHUNKS_MIN));
  return Array.from({ length: Math.ceil(sorted.length / size) }, (_, i) => sorted.slice(i * size, (i + 1) * size));
}

/** A chunk with newer days has a higher priority. A nightly run therefore comes before a backfill. */
export function priorityOf(chunk: readonly UsageRequest[], runDay: Day): number {
  const newest = chunk[0] ? newestDay(chunk[0], runDay) : runDay;
  return Math.floor(startOfDay(newest).getTime() / DAY_MS);
}

function newestDay({ window }: UsageRequest, runDay: Day): Day {
  return window?.end ?? runDay;
}
