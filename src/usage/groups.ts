// What makes a group the same group in every answer. Pure.

import { badAnswer, kindOf } from "./json-value.ts";
import type { Dimension } from "./series.ts";

export type Group = {
  /** Canonical and never empty: the same set of values in any order, once or twice, is the same text. */
  readonly key: string;
  /** The value as the service sent it, as JSON; "absent" where it sent none. */
  readonly sent: string;
  /** What a person reads; null for "no value". */
  readonly display: string | null;
};

/** The one group of an answer that is not grouped. */
export const UNGROUPED: Group = { key: "all", sent: "absent", display: null };

/**
 * A service that has sent a text and an array of one text for the same dimension in turn means the same group by them, so
 * both are a set of one. Null, an empty set, an empty text and nothing at all are groups of their own.
 */
export function groupOf(dimension: Dimension, value: unknown, path: string): Group {
  if (value === undefined) return { key: "absent", sent: "absent", display: null };
  if (value === null) return { key: "null", sent: "null", display: null };
  const values = canonicalSet(Array.isArray(value) ? value : [value], path);
  const key = JSON.stringify(values);
  return { key, sent: JSON.stringify(value), display: dimension === "tags" ? key : displayOf(values, key) };
}

function canonicalSet(values: readonly unknown[], path: string): (string | null)[] {
  for (const value of values) {
    if (value !== null && typeof value !== "string") {
      throw badAnswer(`${path}: expected a text, an array of texts or null, got ${kindOf(value)}`);
    }
  }
  const texts = values.filter((value) => typeof value === "string");
  const sorted = [...new Set(texts)].sort();
  return values.includes(null) ? [...sorted, null] : sorted;
}

/** Postgres takes no NUL in a text, so it is shown as JSON would write it. */
function displayOf(values: readonly (string | null)[], key: string): string | null {
  return values.length > 1 ? key : (values[0]?.replaceAll("\0", "\\u0000") ?? null);
}
