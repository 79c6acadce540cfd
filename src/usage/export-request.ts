// One usage request: its answer is fetched, normalised and stored, or why there is none is recorded.

import type { Logger } from "pino";
import { AppError, type ErrorCode, errorCode, errorText, isRefusedData } from "../errors.ts";
import { namedPeriod } from "./answer-dates.ts";
import type { Backlog } from "./backlog.ts";
import { type Day, daysOf, type Window } from "./day.ts";
import { isObject } from "./json-value.ts";
import { type NormalisedSlice, normalise } from "./normalise.ts";
import type { UsageRequest } from "./plan.ts";
import type { FilterDoubt, SliceDecision } from "./slice.ts";
import { dayOfUndated, type Undated } from "./undated.ts";

type StoredSliceOf = {
  readonly day: Day;
  readonly decision: SliceDecision;
  /** Stored as a snapshot without a day. */
  readonly undated?: true;
};

/** What was stored of one answer. */
export type Stored = {
  readonly slices: readonly StoredSliceOf[];
  readonly rowsChanged: number;
};

/** Why a request has no answer that could be stored. */
export type Refusal = { readonly reason: string; readonly code: ErrorCode | "internal" };

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
  readonly store: (request: UsageRequest, fetchNo: number, answer: FetchedAnswer) => Promise<Stored>;
  readonly fail: (request: UsageRequest, fetchNo: number, days: readonly Day[], refusal: Refusal) => Promise<void>;
  /** Whether a request that fails with this code is retried later. If so, the caller logs the failure. */
  readonly triedAgain?: (code: Refusal["code"]) => boolean;
  /** Why this request must not be made, as far as is known before it: an unknown feature. */
  readonly refuse: (request: UsageRequest) => Promise<string | undefined>;
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
): Promise<Stored | Refusal> {
  // Before the call: an answer that is on its way while a later one is stored must not undo it. And right before it, or an
  // answer that waited long for its turn would count as older than one that was given before it.
  let fetchNo = await deps.nextFetchNo();
  let askedMs = performance.now();
  const onTurn = async () => {
    fetchNo = await deps.nextFetchNo();
    askedMs = performance.now();
  };
  try {
    const refusal = await deps.refuse(request);
    if (refusal !== undefined) throw new AppError("rejected", refusal);
    const answer = await deps.fetch(request, signal, onTurn);
    const rowCount = rowCountOf(answer);
    onAnswer();
    const period = namedPeriod(answer);
    const day = dayOfUndated(runDay, deps.undated);
    const slices = () => normalise(request, answer, day, deps.askedAs(request, answer));
    const doubt = deps.doubtOf?.(answer);
    const fetched = { askedMs, rowCount, period, slices, doubt };
    return await deps.backlog.hold(rowCount, () => deps.store(request, fetchNo, fetched));
  } catch (error) {
    signal.throwIfAborted();
    if (!concernsRequest(error)) throw error;
    const refusal = { reason: errorText(error), code: errorCode(error) };
    await deps.fail(request, fetchNo, request.window ? daysOf(request.window) : [runDay], refusal);
    if (!deps.triedAgain?.(refusal.code)) deps.log.error({ ...refusal, ...describe(request) }, "usage request failed");
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

export function describe({ series, window }: UsageRequest): Readonly<Record<string, string>> {
  const { project, grouping, filter } = series;
  return { project: project.name, grouping, filter: filter.name, ...window };
}
