// Checks of a whole answer: its period, its days, its resolution and its currency. Describes wrong values for error messages. Pure.

import { ExactNumber, numberSource } from "../decimal.ts";
import { AppError } from "../errors.ts";
import { addDays, type Day, dayCount, daysOf, isDay, type Window } from "./days.ts";

export function badAnswer(reason: string): AppError {
  return new AppError("bad_answer", reason);
}

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

export function isNumber(value: unknown): value is number | ExactNumber {
  return typeof value === "number" || value instanceof ExactNumber;
}

/** Describes a value in an error message: its type, and the beginning of a text or a number. */
export function describeJson(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (isNumber(value)) return `the number ${numberSource(value).slice(0, 40)}`;
  return typeof value === "object" ? "an object" : `the ${typeof value} ${JSON.stringify(value).slice(0, 40)}`;
}

/** Together they bound the memory of `remembered`. Long texts are not kept: a result may be many times as long as its text. */
const REMEMBERED_MAX = 10_000;
const REMEMBERED_LENGTH_MAX = 100;

export function remembered<T>(compute: (text: string) => T): (text: string) => T {
  const results = new Map<string, T>();
  return (text) => {
    const kept = results.get(text);
    if (kept !== undefined) return kept;
    const result = compute(text);
    if (text.length > REMEMBERED_LENGTH_MAX) return result;
    if (results.size >= REMEMBERED_MAX) results.clear();
    results.set(text, result);
    return result;
  };
}

/** The period that the answer names. It must be the window, if one was sent: a service without windows mistakes `start` for a filter by feature. */
export function answerPeriod(answer: JsonObject, window: Window | undefined): Window | undefined {
  requireDailyBuckets(answer.resolution);
  const start = readDay(answer.start, "start");
  const end = readDay(answer.end, "end");
  if (window && (start !== window.start || end !== window.end)) {
    const named = start === undefined && end === undefined ? "none" : `${start ?? "?"} to ${end ?? "?"}`;
    throw badAnswer(
      `asked for ${window.start} to ${window.end}, but the answer names ${named} as its window; if the service does not know windows, remove "window" from the export`,
    );
  }
  if (start === undefined || end === undefined) return undefined;
  if (end < start) throw badAnswer(`the answer's window ends before it starts: ${start} to ${end}`);
  return { start, end };
}

function requireDailyBuckets(resolution: unknown): void {
  if (resolution === undefined || resolution === null) return;
  const { units, amount } = isObject(resolution) ? resolution : {};
  if ((units === "day" || units === "days") && amount === 1) return;
  throw badAnswer(`expected buckets of one day, got resolution ${JSON.stringify(resolution).slice(0, 80)}`);
}

/** Ten years: longer than any answer, and short enough to store a slice for each of its days. */
const ANSWER_DAYS_MAX = 3_660;

/** With a window: all its days, because a day without rows has no usage. Without a window: all days of `namedPeriod`, if any. */
export function coveredDays(
  window: Window | undefined,
  period: Window | undefined,
  rowDays: readonly Day[],
  runDay: Day,
): Day[] | undefined {
  if (window) return daysOf(window);
  const named = namedPeriod(period, rowDays, runDay);
  // Tomorrow may have begun by the service's clock. A date far in the future would make every day up to it due.
  const tomorrow = addDays(runDay, 1);
  if (named && (named.end > tomorrow || dayCount(named) > ANSWER_DAYS_MAX))
    throw badAnswer(`expected at most ${ANSWER_DAYS_MAX} days up to ${tomorrow}, got ${named.start} to ${named.end}`);
  return named && daysOf(named);
}

/** From the first row's day to the last row's, or to the period's last day if that is later. Without rows: only the period's last day. */
function namedPeriod(period: Window | undefined, rowDays: readonly Day[], runDay: Day): Window | undefined {
  const sorted = [...rowDays].sort();
  // A period that is not over is cut at `runDay`.
  const periodEnd = period && period.end > runDay && period.start <= runDay ? runDay : period?.end;
  const last = sorted.at(-1) ?? periodEnd;
  if (last === undefined) return undefined;
  const [start = last] = sorted;
  const isPeriodLonger = periodEnd !== undefined && periodEnd > last && periodEnd <= runDay;
  return { start, end: isPeriodLonger ? periodEnd : last };
}

export function requireOneDay({ start, end }: Window, what: string): void {
  if (start !== end) throw badAnswer(`${what}: expected a bucket of one day, got ${start} to ${end}`);
}

export function readDay(value: unknown, name: string, rowNo?: number): Day | undefined {
  if (value === undefined || value === null) return undefined;
  const day = typeof value === "string" ? dayFrom(value) : "";
  if (day !== "") return day;
  const path = rowNo === undefined ? name : `results[${rowNo}].${name}`;
  throw badAnswer(`${path}: expected a day as YYYY-MM-DD, got ${describeJson(value)}`);
}

/** The text may be a day, or the midnight that begins it. The result is empty if it is neither. */
const dayFrom = remembered((text) => {
  const day = text.replace(/T00:00(:00(\.0+)?)?(Z|\+00:00)?$/, "");
  return isDay(day) ? day : "";
});

/** The views show US dollars. A charge may lack its amount, but if no row has `dollars`, the service has probably renamed it. */
export function requireDollars(answer: JsonObject, results: readonly JsonObject[]): void {
  for (const holder of [answer, ...results]) {
    for (const name of ["currency", "units"]) {
      const value = holder[name];
      if (typeof value !== "string" || value.toLowerCase() === "usd") continue;
      throw badAnswer(`expected amounts in US dollars, got ${name} ${describeJson(value)}`);
    }
  }
  if (results.length > 0 && !results.some((row) => Object.hasOwn(row, "dollars")))
    throw badAnswer(`no row has the member "dollars"`);
}
