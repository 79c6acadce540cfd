// Turns an answer of the service into slices, or says why it can't be read. An answer with an unclear part is rejected whole: a number that
// looks right and is wrong would cost more than a day that is late. Pure.

import {
  type AnswerRow,
  addMetrics,
  badAnswer,
  combinedGroup,
  describeJson,
  type Group,
  groupOf,
  isObject,
  type JsonObject,
  type RowMetrics,
  readMetrics,
  remembered,
  sliceOf,
  UNGROUPED,
} from "./answer-rows.ts";
import { addDays, type Day, dayCount, daysOf, isDay, type Window } from "./days.ts";
import { type Dialect, type Dimension, groupingIn, type Source } from "./dimensions.ts";
import type { UsageRequest } from "./plan.ts";
import { dimensionsOf } from "./series.ts";

/** Makes a slice for each day of the window, else of the answer, else for `runDay`. `period` is what the answer covers. Throws `bad_answer`. */
export function normalise(request: UsageRequest, answer: unknown, runDay: Day, dialect: Dialect = "interface") {
  if (!isObject(answer)) throw badAnswer(`expected an object, got ${describeJson(answer)}`);
  if (!Array.isArray(answer.results)) {
    throw badAnswer(`expected an array at "results", got ${describeJson(answer.results)}`);
  }
  const period = answerPeriod(answer, request.window);
  const results = answer.results.map((row: unknown, i) => {
    if (!isObject(row)) throw badAnswer(`results[${i}]: expected an object, got ${describeJson(row)}`);
    return row;
  });
  const { source, grouping } = request.series;
  const dimensions = dimensionsOf(grouping);
  for (const name of dimensions) requireDimension(name, groupingIn(dialect, name), results, source);
  if (source === "billing") requireDollars(answer, results);

  const rowDays = results.map((row, i) => dayOfRow(row, period, i));
  const named = rowDays.filter((day) => day !== undefined);
  if (named.length > 0 && named.length < rowDays.length) {
    throw badAnswer(
      `${rowDays.length - named.length} of ${rowDays.length} rows name no day, so that their days are unknown`,
    );
  }
  const rows = results.map((row, i): AnswerRow => {
    return { group: groupOfRow(row, dimensions, i), metrics: readMetrics(row, i, source) };
  });
  const rowsOfDay = Map.groupBy(rows, (_, i) => rowDays[i] ?? runDay);
  const covered = coveredDays(request.window, period, [...new Set(named)], runDay);
  const slices = (covered ?? [runDay]).map((day) => {
    const groups = rowsByGroup(rowsOfDay.get(day) ?? [], day, dimensions);
    return sliceOf(day, groups, { source, undated: covered === undefined });
  });
  return { slices, period };
}

function groupOfRow(row: JsonObject, dimensions: readonly Dimension[], rowNo: number): Group {
  const groups = dimensions.map((dimension) => groupOf(dimension, dimensionValue(row, dimension).value, rowNo));
  const [first = UNGROUPED] = groups;
  return groups.length > 1 ? combinedGroup(dimensions, groups) : first;
}

/** The views show US dollars. A charge may lack its amount, but if no row has the member, the service has probably renamed it. */
function requireDollars(answer: JsonObject, results: readonly JsonObject[]): void {
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

/** Rows that repeat one count once. Rows with different shapes of "no value" are added up: the service counts no request in two of them. */
function rowsByGroup(sent: readonly AnswerRow[], day: Day, dimensions: readonly Dimension[]): AnswerRow[] {
  const ofService = new Map<string, AnswerRow>();
  for (const row of sent) {
    const { keyOfService, display } = row.group;
    const twin = ofService.get(keyOfService) ?? row;
    ofService.set(keyOfService, twin);
    if (sameMetrics(twin.metrics, row.metrics)) continue;
    throw badAnswer(
      dimensions.length === 0
        ? `more than one row for ${day}, though no grouping was asked for`
        : `two rows with different numbers for ${dimensions.join(",")} ${display?.slice(0, 80) ?? "no value"} on ${day}`,
    );
  }
  const byKey = new Map<string, AnswerRow>();
  for (const { group, metrics } of ofService.values()) {
    const other = byKey.get(group.key);
    byKey.set(group.key, { group, metrics: other ? addMetrics(other.metrics, metrics) : metrics });
  }
  return [...byKey.values()];
}

function sameMetrics(a: RowMetrics, b: RowMetrics): boolean {
  return a.extra === b.extra && a.values.every((value, i) => value === b.values[i]);
}

/**
 * Some row must have the dimension, because a service that does not know a grouping answers with the ungrouped total. If a row has it under
 * the name of the other dialect, only a value proves it: a service of that dialect names all its dimensions in every row.
 */
function requireDimension(dimension: Dimension, askedAs: string, results: readonly JsonObject[], source: Source): void {
  const hasDimension = (row: JsonObject) => {
    const { value, name } = dimensionValue(row, dimension);
    return value !== undefined && (name === askedAs || isValue(value));
  };
  if (results.length === 0 || results.some(hasDimension)) return;
  const cause =
    source === "usage"
      ? "the likely cause is service.dialect: this service may know the dimension by another name"
      : "the service does not group costs by it";
  throw badAnswer(`no row has the dimension "${dimension}" that was asked for; ${cause}`);
}

/** False for each shape of "no value". */
function isValue(value: unknown): boolean {
  return Array.isArray(value) ? value.some(isValue) : value !== undefined && value !== null && value !== "";
}

/** "no value": either nothing has a value, as in a project without tags, or the service ignores the grouping. */
export function groupingEvidence(dimension: Dimension, answer: unknown): "value" | "no value" | "no rows" {
  const results: readonly unknown[] = isObject(answer) && Array.isArray(answer.results) ? answer.results : [];
  const rows = results.filter(isObject);
  if (rows.length === 0) return "no rows";
  return rows.some((row) => isValue(dimensionValue(row, dimension).value)) ? "value" : "no value";
}

/** The dimension's value in the row's `grouping` or in the row itself, under its name in either dialect; undefined if it is absent. */
function dimensionValue(row: JsonObject, dimension: Dimension): { value: unknown; name: string } {
  const { grouping } = row;
  const inner = isObject(grouping) ? grouping : row;
  for (const name of [dimension, groupingIn("2026", dimension)]) {
    if (Object.hasOwn(inner, name)) return { value: inner[name], name };
    if (Object.hasOwn(row, name)) return { value: row[name], name };
  }
  return { value: undefined, name: dimension };
}

/** The period that the answer names. It must be `window`: a service that does not know `start` takes it for a feature. */
export function answerPeriod(answer: JsonObject, window: Window | undefined): Window | undefined {
  requireDailyBuckets(answer.resolution);
  const start = readDay(answer.start, "start");
  const end = readDay(answer.end, "end");
  if (window && (start !== window.start || end !== window.end)) {
    const came = start === undefined && end === undefined ? "none" : `${start ?? "?"} to ${end ?? "?"}`;
    throw badAnswer(
      `asked for ${window.start} to ${window.end}, and the answer names ${came} as its window; a service that does not know windows needs an export without "window"`,
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

/** The day that the row names, or else the answer's period, which then must be a single day. */
export function dayOfRow(row: JsonObject, period: Window | undefined, rowNo: number): Day | undefined {
  const holder = isObject(row.grouping) && (row.grouping.start ?? row.grouping.end) != null ? row.grouping : row;
  const start = readDay(holder.start, "start", rowNo);
  const end = holder.end === holder.start ? start : readDay(holder.end, "end", rowNo);
  const day = start ?? end;
  if (day === undefined) {
    if (period) requireOneDay(period, `results[${rowNo}] names no day, and the answer's period`);
    return period?.start;
  }
  if (end !== undefined && end !== day) requireOneDay({ start: day, end }, `results[${rowNo}]`);
  if (period && (day < period.start || day > period.end)) {
    throw badAnswer(`results[${rowNo}]: ${day} lies outside the window ${period.start} to ${period.end}`);
  }
  return day;
}

/** Ten years: longer than any answer, and short enough to store a slice for each of its days. */
const ANSWER_DAYS_MAX = 3_660;

/** All days of the window, because a day without rows is a day without usage; without a window the days that the answer names, if any. */
export function coveredDays(
  window: Window | undefined,
  period: Window | undefined,
  rowDays: readonly Day[],
  runDay: Day,
): Day[] | undefined {
  if (window) return daysOf(window);
  const named = namedDays(period, rowDays, runDay);
  // Tomorrow may have begun by the service's clock. A date far in the future would make every day up to it due.
  if (named && (named.end > addDays(runDay, 1) || dayCount(named) > ANSWER_DAYS_MAX)) {
    throw badAnswer(`expected at most ${ANSWER_DAYS_MAX} days up to ${runDay}, got ${named.start} to ${named.end}`);
  }
  return named && daysOf(named);
}

/** From the first row's day to the end of the period, but not beyond today unless a row is later. Without rows, only the last of these days. */
function namedDays(period: Window | undefined, rowDays: readonly Day[], runDay: Day): Window | undefined {
  const sorted = [...rowDays].sort();
  const periodEnd = period && period.end > runDay && period.start <= runDay ? runDay : period?.end;
  const last = sorted.at(-1) ?? periodEnd;
  if (last === undefined) return undefined;
  const [start = last] = sorted;
  return { start, end: periodEnd !== undefined && periodEnd > last && periodEnd <= runDay ? periodEnd : last };
}

function requireOneDay({ start, end }: Window, what: string): void {
  if (start !== end) throw badAnswer(`${what}: expected a bucket of one day, got ${start} to ${end}`);
}

function readDay(value: unknown, name: string, rowNo?: number): Day | undefined {
  if (value === undefined || value === null) return undefined;
  const day = typeof value === "string" ? dayFrom(value) : "";
  if (day !== "") return day;
  const path = rowNo === undefined ? name : `results[${rowNo}].${name}`;
  throw badAnswer(`${path}: expected a day as YYYY-MM-DD, got ${describeJson(value)}`);
}

/** The day may be sent as the midnight that begins it. Empty if the text is no day. */
const dayFrom = remembered((text) => {
  const day = text.replace(/T00:00(:00(\.0+)?)?(Z|\+00:00)?$/, "");
  return isDay(day) ? day : "";
});
