// Turns an answer of the service into rows by slice, or says why it is not one. Pure. What is doubtful is refused whole:
// a number that looks right and is not would cost more than a day that is late.

import { AppError } from "../errors.ts";
import { answerDates, coveredDays, dayOfRow } from "./answer-dates.ts";
import type { Day } from "./day.ts";
import { type Group, groupOf, UNGROUPED } from "./group.ts";
import { isObject, type JsonObject, kindOf } from "./json-value.ts";
import { type RowMetrics, readMetrics } from "./metrics.ts";
import type { UsageRequest } from "./plan.ts";
import type { Dimension } from "./series.ts";

export type SnapshotRow = { readonly group: Group; readonly metrics: RowMetrics };

export type NormalisedSlice = {
  readonly day: Day;
  /** The rows named no day and the answer no period: the day is that of the run, and the numbers are the service's at that moment. */
  readonly undated: boolean;
  readonly rows: readonly SnapshotRow[];
};

/**
 * The slices an answer covers, each with all its rows: every day of the window, or without one the days the answer names,
 * or `runDay` where it names none. `askedAs` is the name the grouping was sent by. Throws `bad_answer` with the reason.
 */
export function normalise(
  request: UsageRequest,
  answer: unknown,
  runDay: Day,
  askedAs: string = request.series.grouping,
): NormalisedSlice[] {
  if (!isObject(answer)) throw refused(`expected an object, got ${kindOf(answer)}`);
  if (!Array.isArray(answer.results)) {
    throw refused(`expected an array at "results", got ${kindOf(answer.results)}`);
  }
  const period = answerDates(answer, request.window);
  const results = answer.results.map((row: unknown, i) => {
    if (!isObject(row)) throw refused(`results[${i}]: expected an object, got ${kindOf(row)}`);
    return row;
  });
  const { grouping } = request.series;
  if (grouping !== "none") requireDimension(grouping, askedAs, results);

  const slices = new Map<Day, Map<string, SnapshotRow>>();
  let undatedRows = 0;
  const knownDays = new Set<Day>();
  for (const [i, row] of results.entries()) {
    const dated = dayOfRow(row, period, `results[${i}]`, runDay, knownDays);
    addRow(slices, dated.day, readRow(row, grouping, `results[${i}]`), grouping);
    if (dated.undated) undatedRows++;
  }
  if (undatedRows > 0 && undatedRows < results.length) {
    throw refused(`${undatedRows} of ${results.length} rows name no day, and nobody knows which days they are of`);
  }
  return coveredDays(request.window, period, [...slices.keys()], runDay).map(({ day, undated }) => ({
    day,
    undated: undated || undatedRows > 0,
    rows: [...(slices.get(day)?.values() ?? [])],
  }));
}

function readRow(row: JsonObject, grouping: "none" | Dimension, place: string): SnapshotRow {
  const metrics = readMetrics(row, place);
  if (grouping === "none") return { group: UNGROUPED, metrics };
  return { group: groupOf(grouping, dimensionValue(row, grouping).value, `${place}.${grouping}`), metrics };
}

/** The same group twice with the same numbers is one row said twice; with others, nobody knows which is right. */
function addRow(
  slices: Map<Day, Map<string, SnapshotRow>>,
  day: Day,
  row: SnapshotRow,
  grouping: "none" | Dimension,
): void {
  const rows = slices.get(day) ?? new Map<string, SnapshotRow>();
  const twin = rows.get(row.group.key);
  if (twin && !sameMetrics(twin.metrics, row.metrics)) {
    throw refused(
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

/**
 * A service takes a grouping it does not know for something else and answers the ungrouped total, so the asked dimension
 * must be in the rows. The other dialect's name counts only where it holds a value: that service names all its
 * dimensions in every row, and null in each of them says that it did not group.
 */
function requireDimension(dimension: Dimension, askedAs: string, results: readonly JsonObject[]): void {
  if (results.length === 0) return;
  const present = results.some((row) => {
    const { value, name } = dimensionValue(row, dimension);
    return value !== undefined && (name === askedAs || value !== null);
  });
  if (present) return;
  throw refused(
    `no row has the dimension "${dimension}" that was asked for; the likely cause is service.dialect: this service may know the dimension by another name`,
  );
}

/**
 * Whether a grouped answer has null in place of every value of its dimension. Either no usage has a value, as in a project
 * without tags, or the service ignores the grouping and sends null for every dimension. False without rows, which prove nothing.
 */
export function isAllNull(request: UsageRequest, answer: unknown): boolean {
  return valuesOf(request, answer).some((value) => value === null) && !hasValue(request, answer);
}

/** Whether some row of a grouped answer has a value of its dimension. */
export function hasValue(request: UsageRequest, answer: unknown): boolean {
  return valuesOf(request, answer).some((value) => value !== null && value !== undefined);
}

function valuesOf({ series: { grouping } }: UsageRequest, answer: unknown): readonly unknown[] {
  if (grouping === "none" || !isObject(answer) || !Array.isArray(answer.results)) return [];
  return answer.results.map((row: unknown) => (isObject(row) ? dimensionValue(row, grouping).value : undefined));
}

/** Its value and the name it stands under, in the row's `grouping` or flat on the row; undefined where it is absent. */
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

function refused(reason: string): AppError {
  return new AppError("bad_answer", reason);
}
