// Which days an answer and its rows are about. Pure.

import { AppError } from "../errors.ts";
import { addDays, type Day, dayCount, daysOf, isDay, type Window } from "./day.ts";
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

/**
 * A row that names no day has the answer's period, or `runDay` where the answer names none either. `known` gathers the days
 * of the rows before, which are read once: an answer of 50,000 rows has few.
 */
export function dayOfRow(
  row: JsonObject,
  period: Window | undefined,
  place: string,
  runDay: Day,
  known: Set<Day> = new Set(),
): Dated {
  const holder = isObject(row.grouping) && (row.grouping.start ?? row.grouping.end) != null ? row.grouping : row;
  const start = readDay(holder.start, `${place}.start`, known);
  const end = readDay(holder.end, `${place}.end`, known);
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

/** Ten years: longer than any answer, and short enough to store a slice for each of its days. */
const OWN_DAYS_MAX = 3_660;

/**
 * The days an answer covers: all of the window, because a day without rows is a day without usage and as much an answer
 * as one with rows. Without a window they are the answer's own; one absurd date among them would make every day up to it
 * due, so they end tomorrow, where a service whose clock is ahead may be already.
 */
export function coveredDays(
  window: Window | undefined,
  period: Window | undefined,
  rowDays: readonly Day[],
  runDay: Day,
): Dated[] {
  const covered = window ?? ownDays(period, rowDays, runDay);
  if (!covered) return [{ day: runDay, undated: true }];
  if (!window && (covered.end > addDays(runDay, 1) || dayCount(covered) > OWN_DAYS_MAX)) {
    throw new AppError(
      "bad_answer",
      `expected at most ${OWN_DAYS_MAX} days up to ${runDay}, got ${covered.start} to ${covered.end}`,
    );
  }
  return daysOf(covered).map((day) => ({ day, undated: false }));
}

/** From the first row (without rows, from the last day) up to the end that the answer names, leaving out days that have not begun. */
function ownDays(period: Window | undefined, rowDays: readonly Day[], runDay: Day): Window | undefined {
  const sorted = [...rowDays].sort();
  const begun = period && period.end > runDay && period.start <= runDay ? runDay : period?.end;
  const last = sorted.at(-1) ?? begun;
  const start = sorted[0] ?? last;
  if (start === undefined || last === undefined) return undefined;
  return { start, end: begun !== undefined && begun > last && begun <= runDay ? begun : last };
}

/** The period that an answer names; undefined if it is missing or malformed. `normalise` reports what is wrong. */
export function namedPeriod(answer: unknown): Window | undefined {
  try {
    return isObject(answer) ? answerDates(answer, undefined) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The days before the first covered one that an answer without a window is also about: those since the oldest stored day of its
 * period. They had usage before, and have no rows in this answer.
 */
export function emptiedDays(covered: readonly Day[], oldestStored: Day | undefined): Day[] {
  const [first] = [...covered].sort();
  if (first === undefined || oldestStored === undefined) return [];
  return daysOf({ start: oldestStored, end: addDays(first, -1) });
}

function oneDay({ start, end }: Window, what: string): Day {
  if (start === end) return start;
  throw new AppError("bad_answer", `${what}: expected a bucket of one day, got ${start} to ${end}`);
}

/** A day, also where it comes as the midnight that begins it. Null and nothing are no day. */
function readDay(value: unknown, place: string, known: Set<Day> = new Set()): Day | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && known.has(value)) return value;
  const text = typeof value === "string" ? value.replace(/T00:00(:00(\.0+)?)?(Z|\+00:00)?$/, "") : "";
  if (isDay(text)) {
    known.add(text);
    return text;
  }
  throw new AppError("bad_answer", `${place}: expected a day as YYYY-MM-DD, got ${kindOf(value)}`);
}
