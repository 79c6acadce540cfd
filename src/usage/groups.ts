// Decides which values of a dimension are the same group. Pure.

import { badAnswer, describeJson } from "./json-value.ts";
import { remembered } from "./remembered.ts";
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
 * The group of a row that is grouped by several dimensions at once, of its groups by each of them. It is shown as a JSON object with the
 * value of each dimension: null for "no value", the tags as an array, and any other value as the text that it has as a group of its own.
 */
export function combinedGroup(dimensions: readonly Dimension[], groups: readonly Group[]): Group {
  const member = (dimension: Dimension, i: number) =>
    `"${dimension}":${memberText(dimension, groups[i]?.display ?? null)}`;
  return {
    key: JSON.stringify(groups.map(({ key }) => key)),
    sent: `[${groups.map(({ sent }) => sent).join(",")}]`,
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
 * A text and an array with that one text are the same group: the service has sent both for one dimension. Null, an empty set, an
 * empty text and an absent value are four different groups.
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

const ABSENT: Group = { key: "absent", sent: "absent", display: null };
const NULL: Group = { key: "null", sent: "null", display: null };

// The same groups are in every answer of a series, so they are remembered.
// Tags are always shown as a JSON array, even a single one: the report parses it.
const TAGS = rememberedGroups((_, key) => key);
const OTHERS = rememberedGroups(displayOf);

function rememberedGroups(display: (values: readonly (string | null)[], key: string) => string | null) {
  const groupFrom = (sent: string, value: readonly (string | null)[]): Group => {
    const values = canonicalSet(value);
    const key = JSON.stringify(values);
    return { key, sent, display: display(values, key) };
  };
  return {
    ofText: remembered((text) => groupFrom(JSON.stringify(text), [text])),
    ofArray: remembered((sent) => groupFrom(sent, JSON.parse(sent))),
  };
}

function canonicalSet(values: readonly (string | null)[]): (string | null)[] {
  const texts = values.filter((value) => typeof value === "string");
  const sorted = [...new Set(texts)].sort();
  return values.includes(null) ? [...sorted, null] : sorted;
}

function displayOf(values: readonly (string | null)[], key: string): string | null {
  const [value = null] = values;
  return values.length > 1 ? key : value && withoutNul(value);
}

/** Postgres accepts no NUL in a text, so it is shown as JSON would write it. */
function withoutNul(text: string): string {
  return text.replaceAll("\0", "\\u0000");
}
