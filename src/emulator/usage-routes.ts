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
 */
export const WINDOW_MODES = ["on", "ignored", "undated"] as const;
export type WindowMode = (typeof WINDOW_MODES)[number];

export type UsageService = BreakdownStyle & {
  readonly window: WindowMode;
  readonly fields: "on" | "missing";
  readonly usage: UsageSource;
};

export function answerBreakdown(call: Call, service: UsageService): Answer {
  const query = parseBreakdownQuery(call.parameters, service.dialect);
  if (service.window === "undated") {
    const yesterday = addDays(dayOf(call.now), -1);
    return ok(undatedBreakdown(usageOn(yesterday, call, service), query, service));
  }
  const window = askedWindow(call, service);
  if (!window) return refuse(badRequest("start and end must be days, YYYY-MM-DD"), call.requestId);
  return ok(dailyBreakdown(window, (day) => usageOn(day, call, service), query, service));
}

export function answerFields(call: Call, service: UsageService): Answer {
  if (service.fields === "missing") return refuse(notFound("no such path"), call.requestId);
  const window = askedWindow(call, service);
  if (!window) return refuse(badRequest("start and end must be days, YYYY-MM-DD"), call.requestId);
  return ok(fieldsOf(daysOf(window).flatMap((day) => usageOn(day, call, service))));
}

function askedWindow({ parameters, now }: Call, { window }: UsageService): Window | undefined {
  if (window !== "on") return windowOf(undefined, undefined, now);
  const start = parameters.get("start") ?? undefined;
  const end = parameters.get("end") ?? undefined;
  if ([start, end].some((day) => day !== undefined && !isDay(day))) return undefined;
  return windowOf(start, end, now);
}

function usageOn(day: string, { caller, now }: Call, { usage }: UsageService): readonly UsageRecord[] {
  const age = ageDays(day, now);
  return age < 0 ? [] : usage(caller.projectId, day, age);
}
