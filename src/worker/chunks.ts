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

/** The requests of a chunk, in order. Chunks with a higher priority are claimed first. */
export type PlannedChunk = { readonly requests: readonly UsageRequest[]; readonly priority: number };

/** The requests of a project for one day that stay together, because for each project of a chunk the worker reads names and totals. */
type Portion = {
  readonly day: Day;
  /** How many earlier portions the project has on that day. */
  readonly round: number;
  readonly requests: readonly UsageRequest[];
};

/**
 * The newest days come first, because people look at them. Of a day, each project has one portion before any has its second, so that a
 * project with very many requests does not delay the others.
 */
export function chunksOf(requests: readonly UsageRequest[], runDay: Day): PlannedChunk[] {
  const size = Math.min(CHUNK_REQUESTS_MAX, Math.ceil(requests.length / CHUNKS_MIN));
  const portions = [...Map.groupBy(requests, (request) => newestDay(request, runDay))].flatMap(([day, ofDay]) =>
    [...Map.groupBy(ofDay, ({ series }) => series.project.id).values()].flatMap((ofProject) =>
      split(ofProject, size).map((part, round): Portion => ({ day, round, requests: part })),
    ),
  );
  const sorted = portions.sort((a, b) => (a.day === b.day ? a.round - b.round : a.day < b.day ? 1 : -1));
  return packed(sorted, size).map((ofChunk) => ({
    requests: [...Map.groupBy(ofChunk, ({ day }) => day).values()].flatMap(alternating),
    priority: priorityOf(ofChunk[0]),
  }));
}

function split<T>(all: readonly T[], size: number): (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));
}

/** No portion is divided among chunks. */
function packed(portions: readonly Portion[], size: number): Portion[][] {
  const chunks: Portion[][] = [];
  let room = 0;
  for (const portion of portions) {
    if (portion.requests.length > room) {
      chunks.push([]);
      room = size;
    }
    chunks.at(-1)?.push(portion);
    room -= portion.requests.length;
  }
  return chunks;
}

/** One request of each portion in turn: while a project answers slowly, or its key is tried for the first time, others go on. */
function alternating(portions: readonly Portion[]): UsageRequest[] {
  const longest = Math.max(...portions.map(({ requests }) => requests.length));
  return Array.from({ length: longest }, (_, i) => portions.flatMap(({ requests }) => requests[i] ?? [])).flat();
}

const ROUNDS_MAX = 1_000;

/** A chunk with newer days has a higher priority. A nightly run therefore comes before a backfill. */
function priorityOf(first: Portion | undefined): number {
  if (!first) return 0;
  const dayNumber = Math.floor(startOfDay(first.day).getTime() / DAY_MS);
  return dayNumber * ROUNDS_MAX - Math.min(first.round, ROUNDS_MAX - 1);
}

function newestDay({ window }: UsageRequest, runDay: Day): Day {
  return window?.end ?? runDay;
}
