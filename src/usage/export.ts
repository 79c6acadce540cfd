// The export pipeline: runs usage requests with bounded concurrency. Each answer is fetched, read into slices and stored, or the
// reason why there is none is recorded.

import type { Logger } from "pino";
import { inParallel } from "../async.ts";
import { AppError, type ErrorCode, errorCode, errorText, unexpectedStack } from "../errors.ts";
import { type Day, daysOf, type Window } from "./days.ts";
import { sliceCount, totalSliceCount, type UsageRequest } from "./plan.ts";
import type { NormalisedSlice } from "./rows.ts";
import type { SeriesName } from "./series.ts";
import type { FilterDoubt, SliceDecision } from "./slice.ts";

export type RunTrigger = "schedule" | "manual" | "catchup" | "backfill";

export type RunCounts = {
  /** Usage requests made. */
  readonly requests: number;
  /** Slices that the run was to read. The next five fields count how these ended. */
  readonly planned: number;
  readonly complete: number;
  readonly suspect: number;
  readonly failed: number;
  /** Answers without any date, stored as snapshots of unknown span. */
  readonly undated: number;
  /** Slices whose answer was dropped, because the answer of a later request is stored already. */
  readonly stale: number;
  /** Rows that appeared, changed or disappeared. */
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

const COUNT_NAMES = Object.keys(NO_COUNTS) as readonly (keyof RunCounts)[];

export function addCounts(a: RunCounts, b: RunCounts): RunCounts {
  return Object.fromEntries(COUNT_NAMES.map((name) => [name, a[name] + b[name]])) as RunCounts;
}

/** The counts without the other fields of the object, such as the failures of a result. */
export function pickCounts(counts: RunCounts): RunCounts {
  return addCounts(NO_COUNTS, counts);
}

/** The counts that one request adds to its run, except `planned`, which is counted when the run begins. */
function countOutcome(request: UsageRequest, outcome: StoredAnswer | FailedRequest): RunCounts {
  if ("reason" in outcome) return { ...NO_COUNTS, requests: 1, failed: sliceCount(request) };
  const counts: Record<keyof RunCounts, number> = { ...NO_COUNTS, requests: 1, rowsChanged: outcome.rowsChanged };
  for (const { decision, undated } of outcome.slices) {
    if (decision === "suspect" || decision === "stale") counts[decision]++;
    else counts[undated ? "undated" : "complete"]++;
  }
  return counts;
}

export type ExportDeps = RequestDeps & {
  /** Called with what each request adds to the counts. */
  readonly onCounted?: (added: RunCounts) => void;
};

export type ExportRun = {
  readonly requests: readonly UsageRequest[];
  /** The day on which the run was planned. The failure of a request without a window is recorded under this day. */
  readonly runDay: Day;
  /** How many requests are made at once, from their start until their answers are stored. */
  readonly concurrency: number;
  /** Once it is aborted, no further request is started. Requests that were started are completed, unlike with `signal`. */
  readonly stopStarting?: AbortSignal;
};

export type ExportResult = RunCounts & {
  readonly failures: readonly RequestFailure[];
  /** One for each suspect slice. */
  readonly doubts: readonly RequestDoubt[];
};
export type RequestDoubt = { readonly request: UsageRequest; readonly reason: string };
type RequestFailure = FailedRequest & { readonly request: UsageRequest };

/**
 * Makes every request, even if others fail, so that one broken filter does not keep the others from being read. Failures are
 * recorded on their slices and counted. Ends early only if a signal is aborted or the database is lost.
 */
export async function exportUsage(run: ExportRun, deps: ExportDeps, signal: AbortSignal): Promise<ExportResult> {
  const failures: RequestFailure[] = [];
  const doubts: RequestDoubt[] = [];
  let counts: RunCounts = { ...NO_COUNTS, planned: totalSliceCount(run.requests) };
  const makeRequest = async (request: UsageRequest) => {
    const outcome = await exportRequest(request, run.runDay, deps, signal);
    if ("reason" in outcome) failures.push({ request, ...outcome });
    else for (const { doubt } of outcome.slices) if (doubt !== undefined) doubts.push({ request, reason: doubt });
    const added = countOutcome(request, outcome);
    counts = addCounts(counts, added);
    deps.onCounted?.(added);
  };
  const isOver = () => signal.aborted || run.stopStarting?.aborted === true;
  await inParallel(run.requests, run.concurrency, makeRequest, isOver);
  if (counts.requests < run.requests.length) signal.throwIfAborted();
  return { ...counts, failures, doubts };
}

// One usage request.

type StoredSliceResult = {
  readonly day: Day;
  readonly decision: SliceDecision;
  /** Why it is suspect. */
  readonly doubt?: string;
  /** Stored as a snapshot without a day. */
  readonly undated?: true;
};

/** What was stored of one answer. */
export type StoredAnswer = {
  readonly slices: readonly StoredSliceResult[];
  readonly rowsChanged: number;
};

/** Why a request has no answer that could be stored. */
type FailedRequest = {
  readonly reason: string;
  readonly code: ErrorCode | "internal";
};

export type FetchedAnswer = {
  readonly slices: readonly NormalisedSlice[];
  /** Why the numbers of the answer may not be those of the filter. */
  readonly doubt?: FilterDoubt | undefined;
};

/** One attempt to read from the service. `fetchNo` orders the attempts of all processes. */
export type Attempt = {
  readonly fetchNo: number;
  /** `performance.now()` right before the call. */
  readonly askedMs: number;
};

export type RequestDeps = {
  readonly nextFetchNo: () => Promise<number>;
  /** `onPermit` is awaited before each attempt, once the rate limiter permits it. Throws `bad_answer` if the answer can't be read. */
  readonly fetch: (
    request: UsageRequest,
    runDay: Day,
    signal: AbortSignal,
    onPermit: () => Promise<void>,
  ) => Promise<FetchedAnswer>;
  readonly store: (request: UsageRequest, attempt: Attempt, answer: FetchedAnswer) => Promise<StoredAnswer>;
  readonly fail: (
    request: UsageRequest,
    fetchNo: number,
    days: readonly Day[],
    refusal: FailedRequest,
  ) => Promise<void>;
  /** Whether a request that fails with this code is retried later. If so, the caller logs the failure. */
  readonly isRetried?: ((code: FailedRequest["code"]) => boolean) | undefined;
  /** Whether the database caused the error and cannot be used, so that every other request would meet it, too. */
  readonly isDatabaseFailure: (error: unknown) => boolean;
  readonly log: Logger;
};

/** Makes one request and stores its answer, or records why there is none. Throws errors that every other request would meet, too. */
async function exportRequest(
  request: UsageRequest,
  runDay: Day,
  deps: RequestDeps,
  signal: AbortSignal,
): Promise<StoredAnswer | FailedRequest> {
  // The fetch number is taken before the call, so that this answer never replaces a later one. It is taken right before the call:
  // otherwise the answer to a request that waited long for its permit would count as older than answers that came before it.
  const nextAttempt = async (): Promise<Attempt> => ({
    fetchNo: await deps.nextFetchNo(),
    askedMs: performance.now(),
  });
  let attempt: Attempt | undefined;
  const onPermit = async () => {
    attempt = await nextAttempt();
  };
  try {
    const answer = await deps.fetch(request, runDay, signal, onPermit);
    const stored = await deps.store(request, attempt ?? (await nextAttempt()), answer);
    deps.log.debug(describeRequest(request), `${request.series.source} request done`);
    return stored;
  } catch (error) {
    signal.throwIfAborted();
    // Any other error, also a mistake in this program, fails this request alone: the others of the run may not meet it.
    if (deps.isDatabaseFailure(error) || isStop(error)) throw error;
    const failed = { reason: errorText(error), code: errorCode(error) };
    const { fetchNo } = attempt ?? (await nextAttempt());
    await deps.fail(request, fetchNo, request.window ? daysOf(request.window) : [runDay], failed);
    if (!deps.isRetried?.(failed.code)) {
      const stack = unexpectedStack(error);
      deps.log.error(
        { ...failed, ...describeRequest(request), ...(stack && { stack }) },
        `${request.series.source} request failed`,
      );
    }
    return failed;
  }
}

function isStop(error: unknown): boolean {
  return error instanceof AppError && error.code === "stopped";
}

/** The source is named only if it is not usage. */
export function describeRequest({ series, window }: UsageRequest): SeriesName & Partial<Window> {
  const { project, source, grouping, filter } = series;
  return { project: project.name, ...(source !== "usage" && { source }), grouping, filter: filter.name, ...window };
}

export function rowCount({ slices }: Pick<FetchedAnswer, "slices">): number {
  return slices.reduce((sum, slice) => sum + slice.rowCount, 0);
}
