// Decides which values of a dimension are the same group. Pure.

import type { Dimension } from "./dimensions.ts";
import { badAnswer, describeJson } from "./json-value.ts";
import { remembered } from "./remembered.ts";

export type Group = {
  /** The identity of the group; never empty. The order and the repetition of values make no difference. */
  readonly key: string;
  /** What the service keeps apart: as `key`, but of "no value" each shape is another one. */
  readonly keyOfService: string;
  /** The text for people; null for "no value". */
  readonly display: string | null;
};

/** The one group of an answer that is not grouped. */
export const UNGROUPED: Group = { key: "all", keyOfService: "all", display: null };

/**
 * The group of a row that is grouped by several dimensions at once, of its groups by each of them. It is shown as a JSON object with the
 * value of each dimension: null for "no value", the tags as an array, and any other value as the text that it has as a group of its own.
 */
export function combinedGroup(dimensions: readonly Dimension[], groups: readonly Group[]): Group {
  const member = (dimension: Dimension, i: number) =>
    `"${dimension}":${memberText(dimension, groups[i]?.display ?? null)}`;
  return {
    key: JSON.stringify(groups.map(({ key }) => key)),
    keyOfService: JSON.stringify(groups.map(({ keyOfService }) => keyOfService)),
    display: `{${dimensions.map(member).join(",")}}`,
  };
}

/** Postgres takes no text out of JSON that has an escaped NUL anywhere. */
function memberText(dimension: Dimension, display: string | null): string {
  if (dimension !== "tags" || display === null) return JSON.stringify(display);
  if (!display.includes("\\u0000")) return display;
  const tags: unknown[] = JSON.parse(display);
  return JSON.stringify(tags.map((tag) => (typeof tag === "string" ? withoutNul(tag) : tag)));
}

/**
 * A text and an array with that one text are the same group: the service has sent both for one dimension. Null, an absent value, an
 * empty text, an empty array and an array of nothing but null or empty texts are all the one group "no value".
 */
export function groupOf(dimension: Dimension, value: unknown, row: number): Group {
  if (value === undefined) return ABSENT;
  if (value === null) return NULL;
  const known = dimension === "tags" ? TAGS : OTHERS;
  if (typeof value === "string") return known.ofText(value);
  const values = Array.isArray(value) ? value : [value];
  for (const one of values) {
    if (one !== null && typeof one !== "string") {
      throw badAnswer(
        `results[${row}].${dimension}: expected a text, an array of texts or null, got ${describeJson(one)}`,
      );
    }
  }
  return known.ofArray(JSON.stringify(value));
}

/** Whether this is any value of a dimension but "no value". */
export function isValue(value: unknown): boolean {
  return Array.isArray(value) ? value.some(isValue) : value !== undefined && value !== null && value !== "";
}

const noValue = (shape: string): Group => ({ key: "null", keyOfService: shape, display: null });
const ABSENT = noValue("absent");
const NULL = noValue("null");

// The same groups are in every answer of a series, so they are remembered.
// Tags are always shown as a JSON array, even a single one: the report parses it.
const TAGS = rememberedGroups((_, key) => key);
const OTHERS = rememberedGroups(displayOf);

function rememberedGroups(display: (values: readonly (string | null)[], key: string) => string | null) {
  const groupFrom = (shape: string, value: readonly (string | null)[]): Group => {
    if (!isValue(value)) return noValue(shape);
    const values = canonicalSet(value);
    const key = JSON.stringify(values);
    return { key, keyOfService: key, display: display(values, key) };
  };
  return {
    ofText: remembered((text) => groupFrom(JSON.stringify(text), [text])),
    ofArray: remembered((array) => groupFrom(array, JSON.parse(array))),
  };
}

/** A member without a value is null, as the service has sent it among models. */
function canonicalSet(values: readonly (string | null)[]): (string | null)[] {
  const texts = values.filter((value) => value !== null && value !== "");
  const sorted = [...new Set(texts)].sort();
  return texts.length < values.length ? [...sorted, null] : sorted;
}

function displayOf(values: readonly (string | null)[], key: string): string | null {
  const [value = null] = values;
  return values.length > 1 ? key : value && withoutNul(value);
}

/** Postgres accepts no NUL in a text, so it is shown as JSON would write it. */
function withoutNul(text: string): string {
  return text.replaceAll("\0", "\\u0000");
}
