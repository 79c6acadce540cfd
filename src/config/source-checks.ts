// Checks what only one of the two sources can be asked for: groupings, conditions and windows. Pure.

import { DIMENSIONS, DIMENSIONS_OF, type Source } from "../usage/dimensions.ts";
import { BILLING_GROUPINGS, GROUPINGS } from "../usage/series.ts";
import type { Path } from "./json.ts";
import { type LenientExport, LenientFilter } from "./lenient.ts";
import { type ConfigIssue, describeValue } from "./messages.ts";

const OTHER_SOURCE: Readonly<Record<Source, string>> = {
  usage: 'that only billing has: give it an export with "source": "billing"',
  billing: 'that only usage has: give it an export without "source": "billing"',
};

/** What neither source has is reported by the schema. */
export function sourceIssues({ source, window, groupings, filters = [] }: LenientExport, path: Path): ConfigIssue[] {
  const issues = [
    ...groupings.flatMap((grouping, i) => groupingIssues(source, grouping, [...path, "groupings", i])),
    ...filters.flatMap((filter, i) => conditionIssues(source, LenientFilter.parse(filter), [...path, "filters", i])),
  ];
  if (source === "usage" || window !== undefined) return issues;
  const message = 'missing; expected one beside "source": "billing", such as { "days": 7 }: amounts are by day';
  return [...issues, { path: [...path, "window"], message }];
}

function groupingIssues(source: Source, grouping: string | undefined, path: Path): ConfigIssue[] {
  const groupingsOf: Readonly<Record<Source, readonly string[]>> = { usage: GROUPINGS, billing: BILLING_GROUPINGS };
  const other = groupingsOf[source === "usage" ? "billing" : "usage"];
  if (grouping === undefined || groupingsOf[source].includes(grouping) || !other.includes(grouping)) return [];
  return [{ path, message: `${describeValue(grouping)} is a grouping ${OTHER_SOURCE[source]}` }];
}

function conditionIssues(source: Source, { dimensions, features }: LenientFilter, path: Path): ConfigIssue[] {
  const foreign = DIMENSIONS.filter((one) => Object.hasOwn(dimensions, one) && !DIMENSIONS_OF[source].includes(one));
  return [
    ...foreign.map((one) => ({
      path: [...path, "dimensions", one],
      message: `is a dimension ${OTHER_SOURCE[source]}`,
    })),
    ...(source === "billing" && Object.keys(features).length > 0
      ? [{ path: [...path, "features"], message: `is a condition ${OTHER_SOURCE[source]}` }]
      : []),
  ];
}
