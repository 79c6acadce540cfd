// Makes the answer of a usage breakdown: the days' usage, filtered, grouped and added up. Pure.

import { type BreakdownQuery, type Dialect, matches } from "./breakdown-query.ts";
import { daysOf, type Window } from "./days.ts";
import { type Amounts, DIMENSIONS, type Dimension, type GroupValue, sumOf, type UsageRecord } from "./usage-record.ts";

/** "nested": a row's days are in its `grouping`; "flat": they are beside its metrics. */
export type Shape = "nested" | "flat";

export type BreakdownStyle = { readonly dialect: Dialect; readonly shape: Shape };

export type BreakdownRow = Amounts & {
  readonly start?: string;
  readonly end?: string;
  /** The dimensions, all null but the one asked for, and the row's days where they are nested. */
  readonly grouping: Readonly<Record<string, GroupValue>>;
};

type Group = { readonly value: GroupValue; readonly records: UsageRecord[] };

/** One row for each day of the window and each group that used something on it. */
export function dailyBreakdown(
  window: Window,
  usageOn: (day: string) => readonly UsageRecord[],
  query: BreakdownQuery,
  style: BreakdownStyle,
): Readonly<Record<string, unknown>> {
  const results = daysOf(window).flatMap((day) => {
    const days = { start: day, end: day };
    return rowsOf(usageOn(day), query, style.dialect).map(
      ({ grouping, ...amounts }): BreakdownRow =>
        style.shape === "flat" ? { ...amounts, ...days, grouping } : { ...amounts, grouping: { ...days, ...grouping } },
    );
  });
  return { ...window, resolution: { units: "day", amount: 1 }, results };
}

/** One summary that does not say of which time. */
export function undatedBreakdown(
  records: readonly UsageRecord[],
  query: BreakdownQuery,
  style: BreakdownStyle,
): Readonly<Record<string, unknown>> {
  return { results: rowsOf(records, query, style.dialect) };
}

function rowsOf(records: readonly UsageRecord[], query: BreakdownQuery, dialect: Dialect): BreakdownRow[] {
  const matching = records.filter((record) => matches(record, query, dialect));
  return groupsOf(matching, query.grouping).map((group) => ({
    ...sumOf(group.records),
    grouping: Object.fromEntries(
      DIMENSIONS.map((dimension) => [
        nameOf(dimension, dialect),
        dimension === query.grouping ? inDialect(group.value, dimension, dialect) : null,
      ]),
    ),
  }));
}

/** Sets are the same group in whatever order their members come; the first order seen is the one shown. */
function groupsOf(records: readonly UsageRecord[], grouping: Dimension | undefined): Group[] {
  const groups = new Map<string, Group>();
  for (const record of records) {
    const value: GroupValue = grouping === undefined ? null : (record[grouping] ?? null);
    const key = JSON.stringify(value === null || typeof value === "string" ? value : value.toSorted());
    const group = groups.get(key);
    if (group) group.records.push(record);
    else groups.set(key, { value, records: [record] });
  }
  return [...groups.values()];
}

function nameOf(dimension: Dimension, dialect: Dialect): string {
  return dimension === "model" && dialect === "2026" ? "models" : dimension;
}

/** The interface's `model` is one text where a request used one model; `models` of 2026 is always a list. */
function inDialect(value: GroupValue, dimension: Dimension, dialect: Dialect): GroupValue {
  if (dimension !== "model" || dialect === "2026" || value === null || typeof value === "string") return value;
  return value.length === 1 ? (value[0] ?? null) : value;
}
