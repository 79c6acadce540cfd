// Compares two answers to find out what a filter does. The service treats an unknown name as a feature and answers all the same, so
// only the numbers show whether it knows the name. Pure.

import type { Day } from "./days.ts";
import { DIMENSIONS, type Dimension, hasOtherName2026 } from "./dimensions.ts";
import type { NormalisedSlice } from "./rows.ts";
import type { Filter } from "./series.ts";

/** By day, the sum of each metric over the rows. The sums are doubles and therefore rounded: they are compared, and never stored. */
export type DayTotals = ReadonlyMap<Day, readonly number[]>;

/**
 * - `no usage`: the total has no usage, which proves nothing
 * - `empty`: the total has usage, and the filtered answer has none
 * - `same`: the filtered answer has on no day less than the total, or less of a credit
 * - `narrower`: the filtered answer has usage, and on some day less than the total, or less of a credit
 */
export type Effect = "no usage" | "empty" | "same" | "narrower";

/** Sums of doubles differ in their last digits if the order differs. */
const SUM_TOLERANCE = 1e-9;

/** Days of zeros are left out. A day counts whose amounts cancel each other: an amount below 0 is a credit. */
export function dayTotals(slices: readonly NormalisedSlice[]): DayTotals {
  const totals = new Map<Day, number[]>();
  for (const { day, columns } of slices) {
    const sums = columns.metrics.map((amounts) =>
      amounts.reduce<number>((sum, amount) => sum + Number(amount ?? 0), 0),
    );
    const hasNumbers = columns.metrics.some((amounts) => amounts.some((amount) => Number(amount ?? 0) !== 0));
    if (hasNumbers) totals.set(day, sums);
  }
  return totals;
}

/** `total` must have been read first: numbers grow between two readings, and never fall. */
export function effectOf(total: DayTotals, filtered: DayTotals): Effect {
  if (total.size === 0) return "no usage";
  const days = [...total.keys()];
  if (days.every((day) => !filtered.has(day))) return "empty";
  return days.some((day) => isLess(filtered.get(day), total.get(day) ?? [])) ? "narrower" : "same";
}

function isLess(sums: readonly number[] | undefined, than: readonly number[]): boolean {
  if (sums === undefined) return true;
  return than.some((total, i) => {
    const sum = sums[i] ?? 0;
    const bound = total * (1 - SUM_TOLERANCE);
    return total < 0 ? sum > bound : sum < bound;
  });
}

/** One condition of a filter. */
export type Condition = {
  readonly kind: "feature" | Dimension;
  /** The feature, or the value of the dimension. */
  readonly name: string;
  /** Such as `tag "prod"`. */
  readonly text: string;
  /** Whether the two dialects use different names for it. */
  readonly hasOtherDialectName: boolean;
  /** If the service knows the condition, no usage meets both the condition and its opposite. `unused` is a value that no usage has. */
  readonly opposite: (unused: string) => Pick<Filter, "features" | "dimensions">;
};

const OPPOSITES: Readonly<Record<string, string>> = { true: "false", false: "true" };

export function conditionsOf({ features, dimensions }: Filter): Condition[] {
  return [
    ...Object.entries(features).map(([name, value]) => ({
      kind: "feature" as const,
      name,
      text: `feature "${name}"`,
      hasOtherDialectName: false,
      opposite: (unused: string) => ({ features: { [name]: OPPOSITES[value] ?? unused }, dimensions: {} }),
    })),
    ...DIMENSIONS.flatMap((kind) => {
      const name = dimensions[kind];
      if (name === undefined) return [];
      const text = `${kind === "tags" ? "tag" : kind} "${name}"`;
      const hasOtherDialectName = hasOtherName2026(kind, "filter");
      const opposite = (unused: string) => ({ features: {}, dimensions: { [kind]: unused } });
      return [{ kind, name, text, hasOtherDialectName, opposite }];
    }),
  ];
}

/** Whether the numbers of the opposite prove that the service ignores the condition. */
export function isIgnored({ kind }: Pick<Condition, "kind">, opposite: Effect): boolean {
  // No usage has the opposite value of a dimension, so any usage in the answer proves that the service ignores the condition. Usage
  // without a feature is normal, so for a feature only unchanged numbers prove it.
  return opposite === "same" || (kind !== "feature" && opposite === "narrower");
}
