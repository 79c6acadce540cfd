// How answers were read before they became columns: a row was an object, and each step a walk of its own. The reference for
// normalise-reference.test.ts; unchanged from then, but for the imports and for one function that is the whole path.

import { hash } from "node:crypto";
import { AppError } from "../../src/errors.ts";
import { addDays, type Day, dayCount, daysOf, isDay, type Window } from "../../src/usage/days.ts";
import { ExactNumber } from "../../src/usage/json-value.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import type { UsageRequest } from "../../src/usage/plan.ts";
import { type Dimension, USAGE_DIMENSIONS, type UsageGrouping } from "../../src/usage/series.ts";

/** A slice with its rows in the order of the hash. */
export type ReferenceSlice = {
  readonly day: Day;
  readonly undated: boolean;
  readonly rows: readonly SnapshotRow[];
  readonly contentHash: string;
};

export function readReference(request: UsageRequest, text: string, runDay: Day, askedAs: string): ReferenceSlice[] {
  return normalise(request, parseExact(text), runDay, askedAs).map((slice) => {
    const rows = [...slice.rows].sort((a, b) => (a.group.key < b.group.key ? -1 : 1));
    const content = rows.map(({ group, metrics }) => JSON.stringify([group.key, metrics.values, metrics.extra]));
    return { ...slice, rows, contentHash: hash("sha256", content.join("")) };
  });
}

const JSON_DEPTH_MAX = 64;
const EXACT_DIGITS_MAX = 15;
const POSSIBLY_INEXACT_NUMBER = /(?:^|[:[,])\s*-?(\d(?:[\d.]{15,}(?:[eE][+-]?\d+)?|[\d.]*[eE][+-]?\d+))/g;

function parseExact(text: string): unknown {
  const value = parseJson(text);
  checkValue(value, 0);
  const isInexact = text
    .matchAll(POSSIBLY_INEXACT_NUMBER)
    .some(([, source = ""]) => numberFrom(Number(source), source) instanceof ExactNumber);
  return isInexact ? JSON.parse(text, reviveNumber) : value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError("it is not valid JSON");
  }
}

function checkValue(value: unknown, depth: number): void {
  if (typeof value === "string") checkText(value);
  if (typeof value !== "object" || value === null) return;
  if (depth >= JSON_DEPTH_MAX) throw new SyntaxError(`it is nested more than ${JSON_DEPTH_MAX} levels deep`);
  if (Array.isArray(value)) {
    for (const element of value) checkValue(element, depth + 1);
    return;
  }
  for (const key in value) {
    checkText(key);
    if (key === "__proto__") throw new SyntaxError("it has a member named __proto__");
    checkValue(value[key as keyof typeof value], depth + 1);
  }
}

function checkText(text: string): void {
  if (!text.isWellFormed()) throw new SyntaxError("it holds text with half of a surrogate pair");
}

function reviveNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" ? numberFrom(value, context?.source ?? String(value)) : value;
}

function numberFrom(value: number, source: string): number | ExactNumber {
  if (source.length <= EXACT_DIGITS_MAX && !/e/i.test(source)) return value;
  const text = String(value);
  return source === text || (Number.isFinite(value) && canonicalNumber(source) === canonicalNumber(text))
    ? value
    : new ExactNumber(source);
}

function canonicalNumber(source: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(source) ?? [];
  const digits = whole + fraction;
  let first = 0;
  while (digits[first] === "0") first++;
  if (first === digits.length) return "0";
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  return `${sign}${digits.slice(first, end)}e${Number(exponent) - fraction.length + digits.length - end}`;
}
type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

function isNumber(value: unknown): value is number | ExactNumber {
  return typeof value === "number" || value instanceof ExactNumber;
}

function describeJson(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (isNumber(value)) return `the number ${numberSource(value).slice(0, 40)}`;
  return typeof value === "object" ? "an object" : `the ${typeof value} ${JSON.stringify(value)?.slice(0, 40)}`;
}

function numberSource(value: number | ExactNumber): string {
  return value instanceof ExactNumber ? value.source : String(value);
}

function badAnswer(reason: string): AppError {
  return new AppError("bad_answer", reason);
}
type Group = {
  readonly key: string;
  readonly sent: string;
  readonly display: string | null;
};

const UNGROUPED: Group = { key: "all", sent: "absent", display: null };

function groupOf(dimension: Dimension, value: unknown, path: string): Group {
  if (value === undefined) return { key: "absent", sent: "absent", display: null };
  if (value === null) return { key: "null", sent: "null", display: null };
  const values = canonicalSet(Array.isArray(value) ? value : [value], path);
  const key = JSON.stringify(values);
  return { key, sent: JSON.stringify(value), display: dimension === "tags" ? key : displayOf(values, key) };
}

function canonicalSet(values: readonly unknown[], path: string): (string | null)[] {
  for (const value of values) {
    if (value !== null && typeof value !== "string") {
      throw badAnswer(`${path}: expected a text, an array of texts or null, got ${describeJson(value)}`);
    }
  }
  const texts = values.filter((value) => typeof value === "string");
  const sorted = [...new Set(texts)].sort();
  return values.includes(null) ? [...sorted, null] : sorted;
}

function displayOf(values: readonly (string | null)[], key: string): string | null {
  return values.length > 1 ? key : (values[0]?.replaceAll("\0", "\\u0000") ?? null);
}
type RowMetrics = {
  readonly values: readonly (string | null)[];
  readonly extra: string | null;
};

const KNOWN_NAMES = new Set<string>([...METRICS, ...USAGE_DIMENSIONS, "models", "grouping", "start", "end"]);

function readMetrics(row: JsonObject, path: string): RowMetrics {
  const values = METRICS.map((metric) => readMetric(row[metric], path, metric));
  const extra: string[] = [];
  for (const name of Object.keys(row)
    .filter((each) => !KNOWN_NAMES.has(each))
    .sort()) {
    const value = row[name];
    if (isNumber(value)) extra.push(`${JSON.stringify(name)}:${finiteText(value, path, name)}`);
  }
  if (extra.length === 0 && values.every((value) => value === null)) {
    throw badAnswer(`${path}: the row has none of the metrics ${METRICS.join(", ")}`);
  }
  return { values, extra: extra.length > 0 ? `{${extra.join(",")}}` : null };
}

function readMetric(value: unknown, path: string, metric: string): string | null {
  if (value === undefined || value === null) return null;
  if (!isNumber(value)) throw badAnswer(`${path}.${metric}: expected a number, got ${describeJson(value)}`);
  const text = finiteText(value, path, metric);
  if (text.startsWith("-")) throw badAnswer(`${path}.${metric}: expected 0 or more, got ${text.slice(0, 40)}`);
  return text;
}

function finiteText(value: number | ExactNumber, path: string, metric: string): string {
  const double = typeof value === "number" ? value : Number(value.source);
  const text = Number.isFinite(double) ? decimalText(value) : undefined;
  if (text !== undefined) return text;
  throw badAnswer(`${path}.${metric}: expected a finite number, got ${numberSource(value).slice(0, 40)}`);
}

const DECIMAL_DIGITS_MAX = 400;

function decimalText(value: number | ExactNumber): string | undefined {
  const source = value instanceof ExactNumber ? value.source : String(value);
  if (typeof value === "number" && Number.isFinite(value) && !source.includes("e")) return source;
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source);
  if (!parts) return undefined;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = parts;
  const digits = whole + fraction;
  const point = whole.length + Number(exponent);
  if (Math.abs(point) > DECIMAL_DIGITS_MAX || digits.length > DECIMAL_DIGITS_MAX) return undefined;

  const padded = "0".repeat(Math.max(0, -point)) + digits + "0".repeat(Math.max(0, point - digits.length));
  const split = Math.max(0, point);
  const before = padded.slice(0, split).replace(/^0+/, "") || "0";
  const after = padded.slice(split).replace(/0+$/, "");
  const text = after === "" ? before : `${before}.${after}`;
  return text === "0" ? text : sign + text;
}
type SnapshotRow = { readonly group: Group; readonly metrics: RowMetrics };

type NormalisedSlice = {
  readonly day: Day;
  readonly undated: boolean;
  readonly rows: readonly SnapshotRow[];
};

function normalise(
  request: UsageRequest,
  answer: unknown,
  runDay: Day,
  askedAs: string = request.series.grouping,
): NormalisedSlice[] {
  if (!isObject(answer)) throw badAnswer(`expected an object, got ${describeJson(answer)}`);
  if (!Array.isArray(answer.results)) {
    throw badAnswer(`expected an array at "results", got ${describeJson(answer.results)}`);
  }
  const period = answerDates(answer, request.window);
  const results = answer.results.map((row: unknown, i) => {
    if (!isObject(row)) throw badAnswer(`results[${i}]: expected an object, got ${describeJson(row)}`);
    return row;
  });
  const grouping = request.series.grouping as UsageGrouping;
  if (grouping !== "none") requireDimension(grouping, askedAs, results);

  const slices = new Map<Day, Map<string, SnapshotRow>>();
  let undatedRows = 0;
  const knownDays = new Set<Day>();
  for (const [i, row] of results.entries()) {
    const path = `results[${i}]`;
    const { day, undated } = dayOfRow(row, period, path, runDay, knownDays);
    addRow(slices, day, readRow(row, grouping, path), grouping);
    if (undated) undatedRows++;
  }
  if (undatedRows > 0 && undatedRows < results.length) {
    throw badAnswer(`${undatedRows} of ${results.length} rows name no day, and nobody knows which days they are of`);
  }
  return coveredDays(request.window, period, [...slices.keys()], runDay).map(({ day, undated }) => ({
    day,
    undated: undated || undatedRows > 0,
    rows: [...(slices.get(day)?.values() ?? [])],
  }));
}

function readRow(row: JsonObject, grouping: "none" | Dimension, path: string): SnapshotRow {
  const metrics = readMetrics(row, path);
  if (grouping === "none") return { group: UNGROUPED, metrics };
  return { group: groupOf(grouping, dimensionValue(row, grouping).value, `${path}.${grouping}`), metrics };
}

function addRow(
  slices: Map<Day, Map<string, SnapshotRow>>,
  day: Day,
  row: SnapshotRow,
  grouping: "none" | Dimension,
): void {
  const rows = slices.get(day) ?? new Map<string, SnapshotRow>();
  const twin = rows.get(row.group.key);
  if (twin && !sameMetrics(twin.metrics, row.metrics)) {
    throw badAnswer(
      grouping === "none"
        ? `more than one row for ${day}, though no grouping was asked for`
        : `two rows with different numbers for ${grouping} ${row.group.sent.slice(0, 80)} on ${day}`,
    );
  }
  rows.set(row.group.key, twin ?? row);
  slices.set(day, rows);
}

function sameMetrics(a: RowMetrics, b: RowMetrics): boolean {
  return a.extra === b.extra && a.values.every((value, i) => value === b.values[i]);
}

function requireDimension(dimension: Dimension, askedAs: string, results: readonly JsonObject[]): void {
  if (results.length === 0) return;
  const present = results.some((row) => {
    const { value, name } = dimensionValue(row, dimension);
    return value !== undefined && (name === askedAs || value !== null);
  });
  if (present) return;
  throw badAnswer(
    `no row has the dimension "${dimension}" that was asked for; the likely cause is service.dialect: this service may know the dimension by another name`,
  );
}

function dimensionValue(row: JsonObject, dimension: Dimension): { value: unknown; name: string } {
  const names = dimension === "model" ? ["model", "models"] : [dimension];
  const holders = isObject(row.grouping) ? [row.grouping, row] : [row];
  for (const name of names) {
    for (const holder of holders) {
      if (Object.hasOwn(holder, name)) return { value: holder[name], name };
    }
  }
  return { value: undefined, name: dimension };
}

type DatedRow = { readonly day: Day; readonly undated: boolean };

function answerDates(answer: JsonObject, window: Window | undefined): Window | undefined {
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
  throw badAnswer(`expected buckets of one day, got resolution ${JSON.stringify(resolution)?.slice(0, 80)}`);
}

function dayOfRow(
  row: JsonObject,
  period: Window | undefined,
  path: string,
  runDay: Day,
  known: Set<Day> = new Set(),
): DatedRow {
  const holder = isObject(row.grouping) && (row.grouping.start ?? row.grouping.end) != null ? row.grouping : row;
  const start = readDay(holder.start, `${path}.start`, known);
  const end = readDay(holder.end, `${path}.end`, known);
  if (start === undefined && end === undefined) {
    if (!period) return { day: runDay, undated: true };
    return { day: requireOneDay(period, `${path} names no day, and the answer's period`), undated: false };
  }
  const day = requireOneDay({ start: start ?? end ?? "", end: end ?? start ?? "" }, path);
  if (period && (day < period.start || day > period.end)) {
    throw badAnswer(`${path}: ${day} lies outside the window ${period.start} to ${period.end}`);
  }
  return { day, undated: false };
}

const ANSWER_DAYS_MAX = 3_660;

function coveredDays(
  window: Window | undefined,
  period: Window | undefined,
  rowDays: readonly Day[],
  runDay: Day,
): DatedRow[] {
  const covered = window ?? ownDays(period, rowDays, runDay);
  if (!covered) return [{ day: runDay, undated: true }];
  if (!window && (covered.end > addDays(runDay, 1) || dayCount(covered) > ANSWER_DAYS_MAX)) {
    throw badAnswer(`expected at most ${ANSWER_DAYS_MAX} days up to ${runDay}, got ${covered.start} to ${covered.end}`);
  }
  return daysOf(covered).map((day) => ({ day, undated: false }));
}

function ownDays(period: Window | undefined, rowDays: readonly Day[], runDay: Day): Window | undefined {
  const sorted = [...rowDays].sort();
  const begun = period && period.end > runDay && period.start <= runDay ? runDay : period?.end;
  const last = sorted.at(-1) ?? begun;
  const start = sorted[0] ?? last;
  if (start === undefined || last === undefined) return undefined;
  return { start, end: begun !== undefined && begun > last && begun <= runDay ? begun : last };
}

function requireOneDay({ start, end }: Window, what: string): Day {
  if (start === end) return start;
  throw badAnswer(`${what}: expected a bucket of one day, got ${start} to ${end}`);
}

function readDay(value: unknown, path: string, known: Set<Day> = new Set()): Day | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && known.has(value)) return value;
  const text = typeof value === "string" ? value.replace(/T00:00(:00(\.0+)?)?(Z|\+00:00)?$/, "") : "";
  if (isDay(text)) {
    known.add(text);
    return text;
  }
  throw badAnswer(`${path}: expected a day as YYYY-MM-DD, got ${describeJson(value)}`);
}
