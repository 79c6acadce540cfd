// The rows of a slice as columns: how they are hashed, compared and stored. Pure.

import { hash } from "node:crypto";
import type { Day } from "./days.ts";
import type { Source } from "./dimensions.ts";
import type { Group } from "./groups.ts";
import { METRICS_OF, type StoredMetric } from "./metrics.ts";
import type { RowMetrics } from "./row-metrics.ts";

/** Rows in the order of their group keys, each of which occurs once. Every array has an element for each row. */
export type Columns = {
  readonly groups: readonly Group[];
  readonly metricNames: readonly StoredMetric[];
  /** In the order of metricNames: the amounts of each metric, as RowMetrics has them. */
  readonly metrics: readonly (readonly (string | null)[])[];
  /** The numbers without a metric of their own, as a JSON object with sorted names; null if there are none. */
  readonly extras: readonly (string | null)[];
};

export type SnapshotRow = { readonly group: Group; readonly metrics: RowMetrics };

/** No two of the rows may have the same group. */
export function columnsOf(rows: readonly SnapshotRow[], source: Source = "usage"): Columns {
  const metricNames = METRICS_OF[source];
  const sorted = [...rows].sort((a, b) => (a.group.key < b.group.key ? -1 : 1));
  return {
    groups: sorted.map(({ group }) => group),
    metricNames,
    metrics: metricNames.map((_, i) => sorted.map(({ metrics }) => metrics.values[i] ?? null)),
    extras: sorted.map(({ metrics }) => metrics.extra),
  };
}

export type NormalisedSlice = {
  readonly day: Day;
  /** Neither the rows nor the answer name a day, so `day` is that of the run. */
  readonly undated: boolean;
  readonly columns: Columns;
  readonly rowCount: number;
  /** Two slices with the same hash have the same groups and numbers. */
  readonly contentHash: string;
};

export function sliceOf(day: Day, undated: boolean, columns: Columns): NormalisedSlice {
  return { day, undated, columns, rowCount: columns.groups.length, contentHash: contentHash(columns) };
}

/** A day without usage. */
export function emptySlice(day: Day): NormalisedSlice {
  return sliceOf(day, false, columnsOf([]));
}

/** The hash is stored: with another text, every stored slice would look changed. */
function contentHash({ groups, metrics, extras }: Columns): string {
  const rows = groups.map(({ key }, row) => JSON.stringify([key, metrics.map((amounts) => amounts[row]), extras[row]]));
  return hash("sha256", rows.join(""));
}
