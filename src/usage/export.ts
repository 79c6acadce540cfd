// Runs the usage requests of one job: fetch, normalise, store, and count what failed.

import type { Logger } from "pino";
import { AppError, type ErrorCode, errorCode, errorText, isRefusedData } from "../errors.ts";
import { type Day, daysOf } from "./day.ts";
import { isObject } from "./json-value.ts";
import { type NormalisedSlice, normalise } from "./normalise.ts";
import { sliceCount, slicesOf, type UsageRequest } from "./plan.ts";
import type { SliceDecision } from "./slice.ts";

export type RunTrigger = "schedule" | "manual" | "catchup" | "backfill";

export type RunCounts = {
  /** Usage requests made. */
  readonly requests: number;
  /** Slices: planned, and what became of them. */
  readonly planned: number;
  readonly complete: number;
  readonly suspect: number;
  readonly failed: number;
  /** Rows that appeared, changed or went. */
  readonly rowsChanged: number;
};

export const NOTHING_DONE: RunCounts = { requests: 0, planned: 0, complete: 0, suspect: 0, failed: 0, rowsChanged: 0 };

/** What was stored of one answer. */
export type Stored = {
  readonly slices: readonly { readonly day: Day; readonly decision: SliceDecision }[];
  readonly rowsChanged: number;
};

/** Why a request has no answer that could be stored. */
export type Refusal = { readonly reason: string; readonly code: ErrorCode | "internal" };

/** An answer is large, and is taken apart only when it is stored. */
export type FetchedAnswer = {
  /** Its rows, about. */
  readonly rowCount: number;
  /** Throws `bad_answer`. */
  readonly slices: () => readonly NormalisedSlice[];
};

/** What a run needs from the world. */
export type ExportDeps = {
  readonly nextFetchNo: () => Promise<number>;
  /** `onTurn` is waited for before each attempt, when it has its turn with the service. */
  readonly fetch: (request: UsageRequest, signal: AbortSignal, onTurn: () => Promise<void>) => Promise<unknown>;
  /** The name the request's grouping is sent by. */
  readonly askedAs: (request: UsageRequest) => string;
  readonly store: (request: UsageRequest, fetchNo: number, answer: FetchedAnswer) => Promise<Stored>;
  readonly fail: (request: UsageRequest, fetchNo: number, days: readonly Day[], refusal: Refusal) => Promise<void>;
  /** Why this request must not be made, as far as is known before it: an unknown feature. */
  readonly refuse: (request: UsageRequest) => Promise<string | undefined>;
  readonly log: Logger;
  readonly onProgress?: (counts: RunCounts) => void;
  /** The service has nothing more to answer, though answers may still wait for the database. Told which requests failed. */
  readonly onAnswered?: (failed: readonly UsageRequest[]) => void;
};

export type ExportRun = {
  readonly requests: readonly UsageRequest[];
  /** The day an answer without any date is stored under. */
  readonly runDay: Day;
  /** Requests that want an answer at the same time. Those that have one wait for the database besides. */
  readonly concurrency: number;
};

export type ExportResult = RunCounts & { readonly failures: readonly RequestFailure[] };
export type RequestFailure = { readonly request: UsageRequest; readonly reason: string };

/** More is not asked for while so many rows wait for the database: they fill a transaction, and take little memory. */
const ROWS_WAITING_MAX = 10_000;

/**
 * Every request is tried, whatever became of the others, so that one broken project does not cost the rest their
 * snapshots. What failed is recorded on its slices and counted: a run with failures is a failed run that stored the
 * rest. Ends early only when the signal says so or the database is lost.
 */
export async function exportUsage(run: ExportRun, deps: ExportDeps, signal: AbortSignal): Promise<ExportResult> {
  const failures: RequestFailure[] = [];
  const counts = { requests: 0, planned: 0, complete: 0, suspect: 0, failed: 0, rowsChanged: 0 };
  counts.planned = slicesOf(run.requests);
  const queue = run.requests.values();
  const inHand = new Set<Promise<void>>();
  let rowsWaiting = 0;
  let lost: { readonly error: unknown } | undefined;

  const count = (request: UsageRequest, outcome: Stored | Refusal) => {
    counts.requests++;
    if ("reason" in outcome) {
      failures.push({ request, reason: outcome.reason });
      counts.failed += sliceCount(request);
    } else {
      const { complete, suspect, rowsChanged } = countsOf(outcome);
      counts.complete += complete;
      counts.suspect += suspect;
      counts.rowsChanged += rowsChanged;
    }
    deps.onProgress?.(counts);
  };

  /** From the call until it is counted. */
  const settle = async (request: UsageRequest, onAnswer: () => void) => {
    let rows = 0;
    try {
      const outcome = await exportRequest(request, run.runDay, deps, signal, (rowCount) => {
        rows = rowCount;
        rowsWaiting += rows;
        onAnswer();
      });
      count(request, outcome);
    } catch (error) {
      lost ??= { error };
    } finally {
      rowsWaiting -= rows;
    }
  };

  const work = async () => {
    for (const request of queue) {
      if (lost || signal.aborted) return;
      const { promise: answered, resolve: onAnswer } = Promise.withResolvers<void>();
      const settled: Promise<void> = settle(request, onAnswer).finally(() => inHand.delete(settled));
      inHand.add(settled);
      await Promise.race([answered, settled]);
      while (rowsWaiting > ROWS_WAITING_MAX) await Promise.race(inHand);
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

/** Makes one request and stores its answer, or records why there is none. Throws what would only repeat with the next. */
export async function exportRequest(
  request: UsageRequest,
  runDay: Day,
  deps: ExportDeps,
  signal: AbortSignal,
  onAnswer: (rowCount: number) => void = () => {},
): Promise<Stored | Refusal> {
  // Before the call: an answer that is on its way while a later one is stored must not undo it. And right before it, or an
  // answer that waited long for its turn would count as older than one that was given before it.
  let fetchNo = await deps.nextFetchNo();
  const onTurn = async () => {
    fetchNo = await deps.nextFetchNo();
  };
  try {
    const refusal = await deps.refuse(request);
    if (refusal !== undefined) throw new AppError("rejected", refusal);
    const answer = await deps.fetch(request, signal, onTurn);
    const rowCount = rowCountOf(answer);
    onAnswer(rowCount);
    return await deps.store(request, fetchNo, {
      rowCount,
      slices: () => normalise(request, answer, runDay, deps.askedAs(request)),
    });
  } catch (error) {
    signal.throwIfAborted();
    if (!concernsRequest(error)) throw error;
    const refusal = { reason: errorText(error), code: errorCode(error) };
    await deps.fail(request, fetchNo, request.window ? daysOf(request.window) : [runDay], refusal);
    deps.log.error({ ...refusal, ...describe(request) }, "usage request failed");
    return refusal;
  }
}

export function countsOf({ slices, rowsChanged }: Stored): Pick<RunCounts, "complete" | "suspect" | "rowsChanged"> {
  const suspect = slices.filter(({ decision }) => decision === "suspect").length;
  return { complete: slices.length - suspect, suspect, rowsChanged };
}

function rowCountOf(answer: unknown): number {
  return isObject(answer) && Array.isArray(answer.results) ? answer.results.length : 0;
}

/** A failure of this one request. A lost database, or a mistake in this program, would only repeat with the next. */
function concernsRequest(error: unknown): boolean {
  if (error instanceof AppError) return error.code !== "database" && error.code !== "stopped";
  return isRefusedData(error);
}

export function describe({ series, window }: UsageRequest): Readonly<Record<string, string>> {
  const { project, grouping, filter } = series;
  return { project: project.name, grouping, filter: filter.name, ...window };
}
