// Turns an answer of the service into slices, or says why it can't be read. An answer with an unclear part is rejected whole: a number that
// looks right and is wrong would cost more than a day that is late. Pure.

import { hash } from "node:crypto";
import { decimalText, type ExactNumber, numberSource, sumOf } from "../decimal.ts";
import {
  answerPeriod,
  badAnswer,
  coveredDays,
  describeJson,
  isNumber,
  isObject,
  type JsonObject,
  readDay,
  remembered,
  requireDollars,
  requireOneDay,
} from "./answer-checks.ts";
import type { Day, Window } from "./days.ts";
import { DIMENSIONS_OF, type Dialect, type Dimension, groupingIn, type Source } from "./dimensions.ts";
import type { UsageRequest } from "./export-plan.ts";
import { METRICS_OF, type StoredMetric } from "./metrics.ts";
import { dimensionsOf } from "./series.ts";

/** Makes a slice for each day of the window; without one, for each of `coveredDays`, or for `runDay` if no day is named. Throws `bad_answer`. */
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
  const unnamed = rowDays.length - named.length;
  if (named.length > 0 && unnamed > 0) {
    throw badAnswer(`${unnamed} of ${rowDays.length} rows name no day, so their days are unknown`);
  }
  const rows = results.map((row, i): AnswerRow => {
    return { group: groupOfRow(row, dimensions, i), metrics: readMetrics(row, i, source) };
  });
  const rowsOfDay = Map.groupBy(rows, (_, i) => rowDays[i] ?? runDay);
  const covered = coveredDays(request.window, period, [...new Set(named)], runDay);
  const slices = (covered ?? [runDay]).map((day) => {
    const groups = onePerGroup(rowsOfDay.get(day) ?? [], day, dimensions);
    return sliceOf(day, groups, { source, undated: covered === undefined });
  });
  return { slices, period };
}

function groupOfRow(row: JsonObject, dimensions: readonly Dimension[], rowNo: number): Group {
  const groups = dimensions.map((dimension) => groupOf(dimension, dimensionValue(row, dimension).value, rowNo));
  const [first = UNGROUPED] = groups;
  return groups.length > 1 ? combinedGroup(dimensions, groups) : first;
}

/** One row for each group. A repeated row counts once. Rows with different shapes of "no value" are added up: each counts other requests. */
function onePerGroup(sent: readonly AnswerRow[], day: Day, dimensions: readonly Dimension[]): AnswerRow[] {
  const distinct = new Map<string, AnswerRow>();
  for (const row of sent) {
    const { unmergedKey, display } = row.group;
    const first = distinct.get(unmergedKey) ?? row;
    distinct.set(unmergedKey, first);
    if (sameMetrics(first.metrics, row.metrics)) continue;
    throw badAnswer(
      dimensions.length === 0
        ? `more than one row for ${day}, though no grouping was asked for`
        : `two rows with different numbers for ${dimensions.join(",")} ${display?.slice(0, 80) ?? "no value"} on ${day}`,
    );
  }
  const byKey = new Map<string, AnswerRow>();
  for (const { group, metrics } of distinct.values()) {
    const other = byKey.get(group.key);
    byKey.set(group.key, { group, metrics: other ? addMetrics(other.metrics, metrics) : metrics });
  }
  return [...byKey.values()];
}

function sameMetrics(a: RowMetrics, b: RowMetrics): boolean {
  return a.extra === b.extra && a.values.every((value, i) => value === b.values[i]);
}

/**
 * Throws if no row has the dimension: a service that does not know a grouping answers with the ungrouped total. The dimension's name in the other
 * dialect counts only with a value, because a service of that dialect names every dimension in every row, even if it did not group by it.
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

/** Whether a row has a value of the dimension. None has one if the service ignored the grouping or, for example, if the project has no tags. */
export function groupingEvidence(dimension: Dimension, answer: unknown): "value" | "no value" | "no rows" {
  const results: readonly unknown[] = isObject(answer) && Array.isArray(answer.results) ? answer.results : [];
  const rows = results.filter(isObject);
  if (rows.length === 0) return "no rows";
  return rows.some((row) => isValue(dimensionValue(row, dimension).value)) ? "value" : "no value";
}

/** The dimension's value in the row's `grouping` or in the row itself, under its name in either dialect; undefined if it is absent. */
function dimensionValue(row: JsonObject, dimension: Dimension): { value: unknown; name: string } {
  const inner = isObject(row.grouping) ? row.grouping : row;
  for (const name of [dimension, groupingIn("2026", dimension)]) {
    if (Object.hasOwn(inner, name)) return { value: inner[name], name };
    if (Object.hasOwn(row, name)) return { value: row[name], name };
  }
  return { value: undefined, name: dimension };
}

/** The day that the row names, or else the answer's period, which must then be one day. Undefined if there is neither. */
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

export type Group = {
  /** Identifies the group. The order and the repetition of a value's members make no difference to it. */
  readonly key: string;
  /** Like `key`, but null, an empty and an absent value have different ones: the service may send a row for each, and these are added up. */
  readonly unmergedKey: string;
  /** The text for people; null for "no value". */
  readonly display: string | null;
};

export const UNGROUPED: Group = { key: "all", unmergedKey: "all", display: null };

/** Shown as a JSON object with the value of each dimension. */
export function combinedGroup(dimensions: readonly Dimension[], groups: readonly Group[]): Group {
  const shown = dimensions.map((dimension, i) => `"${dimension}":${valueJson(dimension, groups[i]?.display ?? null)}`);
  return {
    key: JSON.stringify(groups.map(({ key }) => key)),
    unmergedKey: JSON.stringify(groups.map(({ unmergedKey }) => unmergedKey)),
    display: `{${shown.join(",")}}`,
  };
}

/** The display of tags is JSON already. It is parsed only if it has an escaped NUL, which Postgres can't read: parsing all would slow every row. */
function valueJson(dimension: Dimension, display: string | null): string {
  if (dimension !== "tags" || display === null) return JSON.stringify(display);
  if (!display.includes("\\u0000")) return display;
  return JSON.stringify(JSON.parse(display, (_, tag) => (typeof tag === "string" ? withoutNul(tag) : tag)));
}

/**
 * The group of a value of a dimension. A text and an array with that one text are the same group: the service has sent both. Null, an absent
 * value, an empty text, and an array of nothing but null or empty texts are the one group "no value".
 */
export function groupOf(dimension: Dimension, value: unknown, rowNo: number): Group {
  if (value === undefined) return ABSENT;
  for (const member of Array.isArray(value) ? value : [value]) {
    if (member === null || typeof member === "string") continue;
    const expected = "expected a text, an array of texts or null";
    throw badAnswer(`results[${rowNo}].${dimension}: ${expected}, got ${describeJson(member)}`);
  }
  const json = JSON.stringify(value);
  return dimension === "tags" ? groupOfTags(json) : groupOfOthers(json);
}

const noValue = (shape: string): Group => ({ key: "null", unmergedKey: shape, display: null });
const ABSENT = noValue("absent");

// The same groups are in every answer of a series, so they are remembered.
const groupOfTags = remembered((json) => groupFrom(json, true));
const groupOfOthers = remembered((json) => groupFrom(json, false));

function groupFrom(json: string, isTags: boolean): Group {
  const sent: readonly (string | null)[] = [JSON.parse(json)].flat();
  const texts = sent.flatMap((member) => member || []);
  const sorted = [...new Set(texts)].sort();
  const [first] = sorted;
  if (first === undefined) return noValue(json);
  // The service has sent null as one of several models.
  const members = texts.length < sent.length ? [...sorted, null] : sorted;
  const key = JSON.stringify(members);
  // A single value is shown without an array, except for a tag.
  return { key, unmergedKey: key, display: isTags || members.length > 1 ? key : withoutNul(first) };
}

/** Postgres accepts no NUL in a text, so it is shown as JSON writes it. */
function withoutNul(text: string): string {
  return text.replaceAll("\0", "\\u0000");
}

export type RowMetrics = {
  /** The amounts as exact decimal text, in the order of METRICS_OF[source]; null if the service sent none. Only dollars may be negative. */
  readonly values: readonly (string | null)[];
  /** The numbers that are no known metric, as a JSON object with sorted names; null if there are none. */
  readonly extra: string | null;
};

const KNOWN_NAMES = { usage: knownNames("usage"), billing: knownNames("billing") };

function knownNames(source: Source): ReadonlySet<string> {
  const dimensions = DIMENSIONS_OF[source].flatMap((dimension) => [dimension, groupingIn("2026", dimension)]);
  return new Set([...METRICS_OF[source], ...dimensions, "grouping", "start", "end"]);
}

/** The service adds metrics without notice, so an unknown number is kept as extra. */
export function readMetrics(row: JsonObject, rowNo: number, source: Source = "usage"): RowMetrics {
  const metrics = METRICS_OF[source];
  const values = metrics.map((metric) => readMetric(row[metric], rowNo, metric));
  const unknown: Record<string, string> = {};
  for (const name in row) {
    const value = row[name];
    if (!KNOWN_NAMES[source].has(name) && isNumber(value)) unknown[name] = finiteText(value, rowNo, name);
  }
  const extra = numbersJson(unknown);
  // Only a row of billing may lack its amount. A missing amount does not mean 0.
  if (extra === null && source === "usage" && values.every((value) => value === null)) {
    throw badAnswer(`results[${rowNo}]: the row has none of the metrics ${metrics.join(", ")}`);
  }
  return { values, extra };
}

function numbersJson(numbers: Readonly<Record<string, string | null>>): string | null {
  const names = Object.keys(numbers).sort();
  return names.length > 0 ? `{${names.map((name) => `${JSON.stringify(name)}:${numbers[name]}`).join(",")}}` : null;
}

function readMetric(value: unknown, rowNo: number, metric: StoredMetric): string | null {
  // Most values are in this range, in which JavaScript writes no exponent. Without this shortcut, normalising takes 4 % more processor time.
  if (typeof value === "number" && (value === 0 || (value >= 1e-6 && value < 1e21))) return String(value);
  if (value === undefined || value === null) return null;
  if (!isNumber(value)) throw badAnswer(`results[${rowNo}].${metric}: expected a number, got ${describeJson(value)}`);
  const text = finiteText(value, rowNo, metric);
  // A credit is a negative amount.
  if (text.startsWith("-") && metric !== "dollars") {
    throw badAnswer(`results[${rowNo}].${metric}: expected 0 or more, got ${text.slice(0, 40)}`);
  }
  return text;
}

function finiteText(value: number | ExactNumber, rowNo: number, metric: string): string {
  const source = numberSource(value);
  const text = Number.isFinite(Number(source)) ? decimalText(value) : undefined;
  if (text !== undefined) return text;
  throw badAnswer(`results[${rowNo}].${metric}: expected a finite number, got ${source.slice(0, 40)}`);
}

function addMetrics(a: RowMetrics, b: RowMetrics): RowMetrics {
  const [one, other] = [extraNumbers(a), extraNumbers(b)];
  const names = Object.keys({ ...one, ...other });
  return {
    values: a.values.map((value, i) => addAmounts(value, b.values[i])),
    extra: numbersJson(Object.fromEntries(names.map((name) => [name, addAmounts(one[name], other[name])]))),
  };
}

function extraNumbers({ extra }: RowMetrics): Readonly<Record<string, string>> {
  return JSON.parse(extra ?? "{}", (_, value, context?: { source?: string }) => context?.source ?? value);
}

function addAmounts(a: string | null | undefined, b: string | null | undefined): string | null {
  return a == null || b == null ? (a ?? b ?? null) : sumOf(a, b);
}

/** The rows of a slice, sorted by group key, column by column: `groups`, `extras` and each array of `metrics` have an element for each row. */
type Columns = {
  readonly groups: readonly Group[];
  readonly metricNames: readonly StoredMetric[];
  /** The amounts of each metric, in the order of metricNames. */
  readonly metrics: readonly (readonly (string | null)[])[];
  readonly extras: readonly (string | null)[];
};

export type AnswerRow = { readonly group: Group; readonly metrics: RowMetrics };

export type NormalisedSlice = {
  readonly day: Day;
  /** Neither the rows nor the answer name a day, so `day` is that of the run. */
  readonly undated: boolean;
  readonly columns: Columns;
  readonly rowCount: number;
  /** Two slices with the same hash have the same groups and numbers. */
  readonly contentHash: string;
};

/** No two of the rows may have the same group. */
export function sliceOf(
  day: Day,
  rows: readonly AnswerRow[],
  { source = "usage", undated = false }: { readonly source?: Source; readonly undated?: boolean } = {},
): NormalisedSlice {
  const sorted = rows.toSorted((a, b) => (a.group.key < b.group.key ? -1 : 1));
  const metricNames = METRICS_OF[source];
  const columns: Columns = {
    groups: sorted.map(({ group }) => group),
    metricNames,
    metrics: metricNames.map((_, i) => sorted.map(({ metrics }) => metrics.values[i] ?? null)),
    extras: sorted.map(({ metrics }) => metrics.extra),
  };
  return { day, undated, columns, rowCount: rows.length, contentHash: contentHash(columns) };
}

export function rowCount(slices: readonly NormalisedSlice[]): number {
  return slices.reduce((sum, slice) => sum + slice.rowCount, 0);
}

/** The hash is stored: if it were made of another text, every stored slice would seem changed. */
function contentHash({ groups, metrics, extras }: Columns): string {
  return hash("sha256", JSON.stringify([groups.map(({ key }) => key), metrics, extras]));
}
