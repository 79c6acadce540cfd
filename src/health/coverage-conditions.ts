// The conditions about slices that are not complete. While they are shown, they are counted by cause; they are notified by export, and
// only if no run of it is about to read them. Pure.

import type { SeriesHealth } from "../db/health.ts";
import type { FailureCause } from "../db/usage/failures.ts";
import { counted, instantText } from "../show/format.ts";
import { shellQuoted, truncate } from "../text.ts";
import { type Day, daysOf } from "../usage/days.ts";
import { seriesText } from "../usage/series.ts";
import type { Condition, StateToJudge } from "./condition.ts";
import { errorReason, type JobHealth } from "./state.ts";

export function coverageConditions(state: StateToJudge): readonly Condition[] {
  const { slices, causes = [] } = state;
  const { missing, failed, suspect } = slices;
  return [
    countCondition("missing", missing, `${counted(missing, "slice")} missing: due and never read`),
    ...(causes.length > 0
      ? causeConditions(causes)
      : [countCondition("failed", failed, `${counted(failed, "slice")} failed: the newest reading went wrong`)]),
    countCondition(
      "suspect",
      suspect,
      `${counted(suspect, "slice")} suspect: empty where there were numbers, which stay`,
    ),
    ...state.jobs.flatMap((job) => gapsCondition(job, state)),
  ];
}

function countCondition(name: "missing" | "failed" | "suspect", count: number, text: string): Condition {
  const about = { name, subject: "", severity: "warning", section: "gaps", told: "shown" } as const;
  return { ...about, isWrong: count > 0, text, since: null };
}

const CAUSES_SHOWN_MAX = 5;
const ERROR_LENGTH_MAX = 200;

function causeConditions(causes: readonly FailureCause[]): readonly Condition[] {
  const others = causes.slice(CAUSES_SHOWN_MAX).reduce((sum, { slices }) => sum + slices, 0);
  return [
    ...causes.slice(0, CAUSES_SHOWN_MAX).map((cause) => ({
      ...countCondition("failed", cause.slices, causeText(cause)),
      since: cause.since,
    })),
    countCondition("failed", others, `${counted(others, "slice")} failed for other reasons`),
  ];
}

/** One line for all failures with the same cause. */
function causeText(cause: FailureCause): string {
  const { since, slices, slicesWithNumbers, series, nextTry } = cause;
  const numbers =
    slicesWithNumbers === 0
      ? "no numbers of these days yet"
      : `last good numbers shown${slicesWithNumbers < slices ? ` for ${slicesWithNumbers} of them` : ""}`;
  const head = headOf(cause);
  const error = truncate(errorReason(cause.error), ERROR_LENGTH_MAX);
  return [
    `${head ?? "readings fail"} since ${instantText(since)}`,
    `${counted(slices, "slice")} of ${series} series failed`,
    ...(nextTry ? [`next try ${instantText(nextTry)}`] : []),
    ...(cause.code === "unauthorized"
      ? [`with a key that works, usage-export export --project ${shellQuoted(cause.project ?? "")} reads them at once`]
      : []),
    numbers,
    // At the end and without quotation marks, because an error may contain any character.
    ...(head === undefined && error !== "" ? [`the newest error: ${error}`] : []),
  ].join("; ");
}

/** Undefined if only the text of the error says what happened. */
function headOf({ code, project, isBillingRefused, error }: FailureCause): string | undefined {
  const status = /the service answered (\d{3})/.exec(error)?.[1];
  // What failed is the command that prints the key: the service was not called.
  if (error.startsWith("the key command ")) return undefined;
  switch (code) {
    case "unavailable":
      return status === undefined ? "service not reachable" : `service not available (${status})`;
    case "rate_limited":
      return `service asks for fewer calls (${status ?? "429"})`;
    case "unauthorized":
      if (isBillingRefused) return `key of project ${project} may not read billing (403): it needs billing:read`;
      return `key of project ${project} refused${status === undefined ? "" : ` (${status})`}`;
    default:
      return undefined;
  }
}

/**
 * There is no condition for a job whose newest outcome is failed: the notification about the failure covers its gaps, and gaps that
 * are left are sent once the job works again. There is also none while it, or another job that reads one of its series with gaps, is paused, or has a run in
 * progress or about to start, which may fill them.
 */
function gapsCondition({ kind, job, outcome, series }: JobHealth, state: StateToJudge): readonly Condition[] {
  if (kind !== "export" || outcome?.status === "failed") return [];
  const own = state.series.filter(
    ({ isActive, missing, failed, key }) => isActive && missing + failed > 0 && series.has(key),
  );
  const readers = state.jobs.filter((other) => other.series === series || own.some(({ key }) => other.series.has(key)));
  if (readers.some(({ isInProgress, paused }) => isInProgress || paused)) return [];
  const about = { name: "gaps", subject: job, severity: "warning", section: "gaps", told: "notified" } as const;
  return [{ ...about, isWrong: own.length > 0, text: gapsText(job, own, state), since: null }];
}

const SERIES_SHOWN_MAX = 3;

/** `own` are the series of the job that have gaps. */
function gapsText(job: string, own: readonly SeriesHealth[], { gaps = [], gapsLeftOut = 0 }: StateToJudge): string {
  if (own.length === 0) return `export ${job} has no gaps any more.`;
  const keys = new Set(own.map(({ key }) => key));
  const listed = gaps.filter(({ key }) => keys.has(key));
  const days = [...new Set(listed.flatMap(({ from, to }) => daysOf({ start: from, end: to })))].sort();
  const missing = own.reduce((sum, one) => sum + one.missing, 0);
  const failed = own.reduce((sum, one) => sum + one.failed, 0);
  const series = [...new Set([...listed, ...own].map(seriesText))];
  const others = series.length - SERIES_SHOWN_MAX;
  const older = gapsLeftOut > 0 ? " and before" : "";
  const more = others > 0 ? ` and ${others} more series` : "";
  return `export ${job} has gaps: ${counted(missing + failed, "slice")} of ${daysText(days)}${older} (${missing} missing, ${failed} failed), of ${series.slice(0, SERIES_SHOWN_MAX).join(", ")}${more}.`;
}

/** `days` are in order. */
function daysText(days: readonly Day[]): string {
  const [oldest, newest] = [days[0], days.at(-1)];
  return oldest === newest ? `${oldest}` : `${days.length} days from ${oldest} to ${newest}`;
}
