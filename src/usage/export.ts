// The export pipeline: runs the usage requests of a job with bounded concurrency. Each answer is fetched, normalised and stored,
// or the reason why there is none is recorded.

import type { Logger } from "pino";
import { AppError, type ErrorCode, errorCode, errorText, isRefusedData } from "../errors.ts";
import { type Day, daysOf, type Window } from "./days.ts";
import { isObject } from "./json-value.ts";
import { type NormalisedSlice, namedPeriod, normalise } from "./normalise.ts";
import { sliceCount, totalSliceCount, type UsageRequest } from "./plan.ts";
import { dayOfUndated, type FilterDoubt, type SliceDecision, type Undated } from "./slice.ts";

export type RunTrigger = "schedule" | "manual" | "catchup" | "backfill";

export type RunCounts = {
  /** Usage requests made. */
  readonly requests: number;
  /** Slices: planned, and what became of them. */
  readonly planned: number;
  readonly complete: number;
  readonly suspect: number;
  readonly failed: number;
  /** Answers without any date, stored as snapshots of unknown span. */
  readonly undated: number;
  /** A later request's answer is stored already, so this one was dropped. */
  readonly stale: number;
  /** Rows that appeared, changed or went. */
  readonly rowsChanged: number;
};

export const NO_COUNTS: RunCounts = {
  requests: 0,
  planned: 0,
  complete: 0,
  suspect: 0,
  failed: 0,
  undated: 0,
  stale: 0,
  rowsChanged: 0,
};

/** Nothing else of what has them, such as a result with its failures. */
export function pickCounts(counts: RunCounts): RunCounts {
  const { requests, planned, complete, suspect, failed, undated, stale, rowsChanged } = counts;
  return { requests, planned, complete, suspect, failed, undated, stale, rowsChanged };
}

/** What a run needs from the world. */
export type ExportDeps = RequestDeps & {
  readonly onProgress?: (counts: RunCounts) => void;
  /** The service has nothing more to answer, though answers may still wait for the database. Told which requests failed. */
  readonly onAnswered?: (failed: readonly UsageRequest[]) => void;
};

export type ExportRun = {
  readonly requests: readonly UsageRequest[];
  /** The day on which the run was planned: a failure without a window is recorded under it. */
  readonly runDay: Day;
  /** Requests that want an answer at the same time. Those that have one wait for the database besides. */
  readonly concurrency: number;
};

export type ExportResult = RunCounts & { readonly failures: readonly RequestFailure[] };
type RequestFailure = { readonly request: UsageRequest; readonly reason: string };

/**
 * Every request is tried, whatever became of the others, so that one broken project does not cost the rest their
 * snapshots. What failed is recorded on its slices and counted: a run with failures is a failed run that stored the
 * rest. Ends early only when the signal says so or the database is lost.
 */
export async function exportUsage(run: ExportRun, deps: ExportDeps, signal: AbortSignal): Promise<ExportResult> {
  const failures: RequestFailure[] = [];
  const counts = { ...NO_COUNTS, planned: totalSliceCount(run.requests) };
  const queue = run.requests.values();
  const inHand = new Set<Promise<void>>();
  let lost: { readonly error: unknown } | undefined;

  const count = (request: UsageRequest, outcome: StoredAnswer | FailedRequest) => {
    counts.requests++;
    if ("reason" in outcome) {
      failures.push({ request, reason: outcome.reason });
      counts.failed += sliceCount(request);
    } else {
      const { complete, suspect, undated, stale, rowsChanged } = countSlices(outcome);
      counts.complete += complete;
      counts.suspect += suspect;
      counts.undated += undated;
      counts.stale += stale;
      counts.rowsChanged += rowsChanged;
    }
    deps.onProgress?.(counts);
  };

  /** From the call until it is counted. */
  const settle = async (request: UsageRequest, onAnswer: () => void) => {
    try {
      count(request, await exportRequest(request, run.runDay, deps, signal, onAnswer));
    } catch (error) {
      lost ??= { error };
    }
  };

  const work = async () => {
    for (const request of queue) {
      await deps.backlog.untilRoom();
      if (lost || signal.aborted) return;
      const { promise: answered, resolve: onAnswer } = Promise.withResolvers<void>();
      const settled: Promise<void> = settle(request, onAnswer).finally(() => inHand.delete(settled));
      inHand.add(settled);
      await Promise.race([answered, settled]);
    }
  };
  await Promise.all(Array.from({ length: run.concurrency }, work));
  if (!lost && !signal.aborted) deps.onAnswered?.(failures.map(({ request }) => request));
  // Nothing goes on behind the caller's back, also when it throws.
  await Promise.all(inHand);
  if (lost) throw lost.error;
  if (counts.requests < run.requests.length) signal.throwIfAborted();
  return { ...counts, failures };
}

export type StoredCounts = Pick<RunCounts, "complete" | "suspect" | "undated" | "stale" | "rowsChanged">;

export function countSlices({ slices, rowsChanged }: StoredAnswer): StoredCounts {
  const suspect = slices.filter(({ decision }) => decision === "suspect").length;
  const stale = slices.filter(({ decision }) => decision === "stale").length;
  const undated = slices.filter((slice) => slice.undated && slice.decision !== "stale").length;
  return { complete: slices.length - suspect - stale - undated, suspect, undated, stale, rowsChanged };
}

// One usage request: its answer is fetched, normalised and stored, or why there is none is recorded.

type StoredSliceResult = {
  readonly day: Day;
  readonly decision: SliceDecision;
  /** Stored as a snapshot without a day. */
  readonly undated?: true;
};

/** What was stored of one answer. */
export type StoredAnswer = {
  readonly slices: readonly StoredSliceResult[];
  readonly rowsChanged: number;
};

/** Why a request has no answer that could be stored. */
export type FailedRequest = { readonly reason: string; readonly code: ErrorCode | "internal" };

/** An answer is large, and is taken apart only when it is stored. */
export type FetchedAnswer = {
  /** `performance.now()` right before the call. */
  readonly askedMs: number;
  /** Its rows, about. */
  readonly rowCount: number;
  /** The first and last day that the answer names. */
  readonly period: Window | undefined;
  /** Throws `bad_answer`. */
  readonly slices: () => readonly NormalisedSlice[];
  readonly doubt?: FilterDoubt | undefined;
};

/** What a request needs from the world. */
export type RequestDeps = {
  readonly nextFetchNo: () => Promise<number>;
  /** `onTurn` is waited for before each attempt, when it has its turn with the service. */
  readonly fetch: (request: UsageRequest, signal: AbortSignal, onTurn: () => Promise<void>) => Promise<unknown>;
  /** The name under which this request sent its grouping. */
  readonly askedAs: (request: UsageRequest, answer: unknown) => string;
  /** Why the answer's numbers may not be those of the filter. */
  readonly doubtOf?: (answer: unknown) => FilterDoubt | undefined;
  /** How an answer without a date is stored. */
  readonly undated: Undated;
  readonly store: (request: UsageRequest, fetchNo: number, answer: FetchedAnswer) => Promise<StoredAnswer>;
  readonly fail: (
    request: UsageRequest,
    fetchNo: number,
    days: readonly Day[],
    refusal: FailedRequest,
  ) => Promise<void>;
  /** Whether a request that fails with this code is retried later. If so, the caller logs the failure. */
  readonly isRetried?: (code: FailedRequest["code"]) => boolean;
  /** Why this request must not be made, as far as is known before it: an unknown feature. */
  readonly refusalOf: (request: UsageRequest) => Promise<string | undefined>;
  /** Shared by all requests of the process. Whoever makes one waits for room before. */
  readonly backlog: Backlog;
  readonly log: Logger;
};

/** Makes one request and stores its answer, or records why there is none. Throws what would only repeat with the next. */
export async function exportRequest(
  request: UsageRequest,
  runDay: Day,
  deps: RequestDeps,
  signal: AbortSignal,
  onAnswer: () => void = () => {},
): Promise<StoredAnswer | FailedRequest> {
  // Before the call: an answer that is on its way while a later one is stored must not undo it. And right before it, or an
  // answer that waited long for its turn would count as older than one that was given before it.
  let fetchNo = await deps.nextFetchNo();
  let askedMs = performance.now();
  const onTurn = async () => {
    fetchNo = await deps.nextFetchNo();
    askedMs = performance.now();
  };
  try {
    const refusal = await deps.refusalOf(request);
    if (refusal !== undefined) throw new AppError("rejected", refusal);
    const answer = await deps.fetch(request, signal, onTurn);
    const rowCount = rowCountOf(answer);
    onAnswer();
    const period = namedPeriod(answer);
    const day = dayOfUndated(runDay, deps.undated);
    const slices = () => normalise(request, answer, day, deps.askedAs(request, answer));
    const doubt = deps.doubtOf?.(answer);
    const fetched = { askedMs, rowCount, period, slices, doubt };
    return await deps.backlog.countDuring(rowCount, () => deps.store(request, fetchNo, fetched));
  } catch (error) {
    signal.throwIfAborted();
    if (!concernsRequest(error)) throw error;
    const refusal = { reason: errorText(error), code: errorCode(error) };
    await deps.fail(request, fetchNo, request.window ? daysOf(request.window) : [runDay], refusal);
    if (!deps.isRetried?.(refusal.code))
      deps.log.error({ ...refusal, ...describeRequest(request) }, "usage request failed");
    return refusal;
  }
}

function rowCountOf(answer: unknown): number {
  return isObject(answer) && Array.isArray(answer.results) ? answer.results.length : 0;
}

/** A failure of this one request. A lost database, or a mistake in this program, would only repeat with the next. */
function concernsRequest(error: unknown): boolean {
  if (error instanceof AppError) return error.code !== "database" && error.code !== "stopped";
  return isRefusedData(error);
}

export function describeRequest({ series, window }: UsageRequest): Readonly<Record<string, string>> {
  const { project, grouping, filter } = series;
  return { project: project.name, grouping, filter: filter.name, ...window };
}

// Bounds what a process holds of answers that wait for the database.

/** They fill two transactions, and take little memory. */
const BACKLOG_ROWS_MAX = 10_000;

export type Backlog = {
  /** Resolves when more may be asked for. */
  readonly untilRoom: () => Promise<void>;
  /** So many rows wait until the work is over. */
  readonly countDuring: <T>(rows: number, work: () => Promise<T>) => Promise<T>;
};

export function openBacklog(): Backlog {
  const held = new Set<Promise<unknown>>();
  let rowsHeld = 0;
  return {
    async untilRoom() {
      while (rowsHeld > BACKLOG_ROWS_MAX) await Promise.race(held);
    },
    async countDuring(rows, work) {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      held.add(over);
      rowsHeld += rows;
      try {
        return await work();
      } finally {
        held.delete(over);
        rowsHeld -= rows;
        resolve();
      }
    },
  };
}
