// What the service answers about usage.

import { type Answer, badRequest, notFound, ok, refuse } from "./answer.ts";
import { type BreakdownStyle, dailyBreakdown, undatedBreakdown } from "./breakdown.ts";
import { parseBreakdownQuery } from "./breakdown-query.ts";
import type { Call } from "./call.ts";
import { addDays, ageDays, dayOf, daysOf, isDay, type Window, windowOf } from "./days.ts";
import { fieldsOf } from "./fields.ts";
import type { UsageRecord, UsageSource } from "./usage-record.ts";

/**
 * - "on": `start` and `end` are honoured, and echoed
 * - "ignored": both are names of features like any unknown name; the answer is of the last 30 days whatever was asked
 * - "undated": the same, and the answer is one summary of yesterday that does not say so
 * - "unnamed": both are honoured, and the answer is one summary that does not name them; without them it is of yesterday
 * - "cumulative": both are ignored, and the answer is one summary of all usage up to now, which only grows and has no date
 */
export const WINDOW_MODES = ["on", "ignored", "undated", "unnamed", "cumulative"] as const;
export type WindowMode = (typeof WINDOW_MODES)[number];

export type UsageService = BreakdownStyle & {
  readonly window: WindowMode;
  /** "ignored": every answer is the one without a grouping. */
  readonly grouping: "on" | "ignored";
  /** The first day of the cumulative summary. */
  readonly countsFrom: string;
  readonly fields: "on" | "missing";
  readonly usage: UsageSource;
};

export function answerBreakdown(call: Call, service: UsageService): Answer {
  const parsed = parseBreakdownQuery(call.parameters, service.dialect);
  const query = service.grouping === "ignored" ? { ...parsed, grouping: undefined } : parsed;
  const window = askedWindow(call, service);
  if (!window) return refuse(badRequest("start and end must be days, YYYY-MM-DD"), call.requestId);
  if (isUndated(service.window)) {
    const days = daysOf(summaryWindow(call, service, window));
    return ok(
      undatedBreakdown(
        days.flatMap((day) => usageOn(day, call, service)),
        query,
        service,
      ),
    );
  }
  return ok(dailyBreakdown(window, (day) => usageOn(day, call, service), query, service));
}

export function answerFields(call: Call, service: UsageService): Answer {
  if (service.fields === "missing") return refuse(notFound("no such path"), call.requestId);
  const window = askedWindow(call, service);
  if (!window) return refuse(badRequest("start and end must be days, YYYY-MM-DD"), call.requestId);
  return ok(fieldsOf(daysOf(window).flatMap((day) => usageOn(day, call, service))));
}

function isUndated(window: WindowMode): boolean {
  return window !== "on" && window !== "ignored";
}

/** The days of a summary that does not name its days. */
function summaryWindow({ parameters, now }: Call, { window, countsFrom }: UsageService, asked: Window): Window {
  if (window === "cumulative") return { start: countsFrom, end: dayOf(now) };
  if (window === "unnamed" && (parameters.has("start") || parameters.has("end"))) return asked;
  const yesterday = addDays(dayOf(now), -1);
  return { start: yesterday, end: yesterday };
}

function askedWindow({ parameters, now }: Call, { window }: UsageService): Window | undefined {
  if (window !== "on" && window !== "unnamed") return windowOf(undefined, undefined, now);
  const start = parameters.get("start") ?? undefined;
  const end = parameters.get("end") ?? undefined;
  if ([start, end].some((day) => day !== undefined && !isDay(day))) return undefined;
  return windowOf(start, end, now);
}

function usageOn(day: string, { caller, now }: Call, { usage }: UsageService): readonly UsageRecord[] {
  const age = ageDays(day, now);
  return age < 0 ? [] : usage(caller.projectId, day, age);
}
