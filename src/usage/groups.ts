// Decides which values of a dimension are the same group. Pure.

import { badAnswer, describeJson } from "./json-value.ts";
import type { Dimension } from "./series.ts";

export type Group = {
  /** The identity of the group; never empty. The order and the repetition of values make no difference. */
  readonly key: string;
  /** The value as the service sent it, as JSON; "absent" if it sent none. */
  readonly sent: string;
  /** The text for people; null for "no value". */
  readonly display: string | null;
};

/** The one group of an answer that is not grouped. */
export const UNGROUPED: Group = { key: "all", sent: "absent", display: null };

/**
 * A text and an array with that one text are the same group: the service has sent both for one dimension. Null, an empty set, an
 * empty text and an absent value are four different groups.
 */
export function groupOf(dimension: Dimension, value: unknown, path: string): Group {
  if (value === undefined) return { key: "absent", sent: "absent", display: null };
  if (value === null) return { key: "null", sent: "null", display: null };
  const values = canonicalSet(Array.isArray(value) ? value : [value], path);
  const key = JSON.stringify(values);
  // Tags are always shown as a JSON array, even a single one: the report parses it.
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

/** Postgres accepts no NUL in a text, so it is shown as JSON would write it. */
function displayOf(values: readonly (string | null)[], key: string): string | null {
  return values.length > 1 ? key : (values[0]?.replaceAll("\0", "\\u0000") ?? null);
}
