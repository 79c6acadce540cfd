// Which days an answer and its rows are about. Pure.

import { AppError } from "../errors.ts";
import { type Day, isDay, type Window } from "./day.ts";
import { isObject, type JsonObject, kindOf } from "./json-value.ts";

export type Dated = { readonly day: Day; readonly undated: boolean };

/**
 * The period an answer names, undefined where it names none. Throws where its buckets are not days, or where a window was
 * asked for and the answer does not echo it: a service that does not know `start` takes it for a feature.
 */
export function answerDates(answer: JsonObject, window: Window | undefined): Window | undefined {
  requireDailyBuckets(answer.resolution);
  const start = readDay(answer.start, "start");
  const end = readDay(answer.end, "end");
  if (window && (start !== window.start || end !== window.end)) {
    const came = start === undefined && end === undefined ? "none" : `${start ?? "?"} to ${end ?? "?"}`;
    throw new AppError(
      "bad_answer",
      `asked for ${window.start} to ${window.end}, and the answer names ${came} as its window; a service that does not know windows needs an export without "window"`,
    );
  }
  if (start === undefined || end === undefined) return undefined;
  if (end < start) throw new AppError("bad_answer", `the answer's window ends before it starts: ${start} to ${end}`);
  return { start, end };
}

function requireDailyBuckets(resolution: unknown): void {
  if (resolution === undefined || resolution === null) return;
  const { units, amount } = isObject(resolution) ? resolution : {};
  if ((units === "day" || units === "days") && amount === 1) return;
  throw new AppError(
    "bad_answer",
    `expected buckets of one day, got resolution ${JSON.stringify(resolution)?.slice(0, 80)}`,
  );
}

/** A row that names no day has the answer's period, or `runDay` where the answer names none either. */
export function dayOfRow(row: JsonObject, period: Window | undefined, place: string, runDay: Day): Dated {
  const holder = isObject(row.grouping) && (row.grouping.start ?? row.grouping.end) != null ? row.grouping : row;
  const start = readDay(holder.start, `${place}.start`);
  const end = readDay(holder.end, `${place}.end`);
  if (start === undefined && end === undefined) {
    if (!period) return { day: runDay, undated: true };
    return { day: oneDay(period, `${place} names no day, and the answer's period`), undated: false };
  }
  const day = oneDay({ start: start ?? end ?? "", end: end ?? start ?? "" }, place);
  if (period && (day < period.start || day > period.end)) {
    throw new AppError("bad_answer", `${place}: ${day} lies outside the window ${period.start} to ${period.end}`);
  }
  return { day, undated: false };
}

function oneDay({ start, end }: Window, what: string): Day {
  if (start === end) return start;
  throw new AppError("bad_answer", `${what}: expected a bucket of one day, got ${start} to ${end}`);
}

/** A day, also where it comes as the midnight that begins it. Null and nothing are no day. */
function readDay(value: unknown, place: string): Day | undefined {
  if (value === undefined || value === null) return undefined;
  const text = typeof value === "string" ? value.replace(/T00:00(:00(\.0+)?)?(Z|\+00:00)?$/, "") : "";
  if (isDay(text)) return text;
  throw new AppError("bad_answer", `${place}: expected a day as YYYY-MM-DD, got ${kindOf(value)}`);
}
