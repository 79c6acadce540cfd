// Runs the usage requests of one job, as many at once as it may, and counts what became of them.

import type { Day } from "./day.ts";
import { exportRequest, type Refusal, type RequestDeps, type Stored } from "./export-request.ts";
import { sliceCount, slicesOf, type UsageRequest } from "./plan.ts";

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

export const NOTHING_DONE: RunCounts = {
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
export type RequestFailure = { readonly request: UsageRequest; readonly reason: string };

/**
 * Every request is tried, whatever became of the others, so that one broken project does not cost the rest their
 * snapshots. What failed is recorded on its slices and counted: a run with failures is a failed run that stored the
 * rest. Ends early only when the signal says so or the database is lost.
 */
export async function exportUsage(run: ExportRun, deps: ExportDeps, signal: AbortSignal): Promise<ExportResult> {
  const failures: RequestFailure[] = [];
  const counts = { ...NOTHING_DONE, planned: slicesOf(run.requests) };
  const queue = run.requests.values();
  const inHand = new Set<Promise<void>>();
  let lost: { readonly error: unknown } | undefined;

  const count = (request: UsageRequest, outcome: Stored | Refusal) => {
    counts.requests++;
    if ("reason" in outcome) {
      failures.push({ request, reason: outcome.reason });
      counts.failed += sliceCount(request);
    } else {
      const { complete, suspect, undated, stale, rowsChanged } = countStored(outcome);
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
      await deps.backlog.room();
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

export function countStored({ slices, rowsChanged }: Stored): StoredCounts {
  const suspect = slices.filter(({ decision }) => decision === "suspect").length;
  const stale = slices.filter(({ decision }) => decision === "stale").length;
  const undated = slices.filter((slice) => slice.undated && slice.decision !== "stale").length;
  return { complete: slices.length - suspect - stale - undated, suspect, undated, stale, rowsChanged };
}
