// The part of answer-verdict.ts that reads one row of an answer as the contract demands. Pure.

import type { Fixture } from "./answer-fixtures.ts";
import { isNull, type JsonTree, memberOf, plainDecimal } from "./json-tree.ts";

/** What a reader of the views sees: the group as it is shown, seven numbers, and the numbers that have no column. */
export type StoredRow = {
  readonly group: string | null;
  readonly numbers: readonly (string | null)[];
  readonly extra: string;
};

const METRICS = ["hours", "total_hours", "agent_hours", "tokens_in", "tokens_out", "tts_characters", "requests"];
const DIMENSIONS = ["accessor", "deployment", "endpoint", "feature_set", "model", "models", "method", "tags"];
const NOT_METRICS = new Set([...METRICS, ...DIMENSIONS, "grouping", "start", "end"]);

export class Refused extends Error {}

export function require(holds: boolean): asserts holds {
  if (!holds) throw new Refused();
}

/** The requested dimension, from the row's `grouping` or from the row itself. */
function dimensionOf(row: JsonTree, grouping: string): { readonly name: string; readonly value: JsonTree } | undefined {
  const nested = memberOf(row, "grouping");
  for (const name of grouping === "model" ? ["model", "models"] : [grouping]) {
    const value = (nested && memberOf(nested, name)) ?? memberOf(row, name);
    if (value !== undefined) return { name, value };
  }
  return undefined;
}

export function namesDimension(row: JsonTree, { grouping, askedAs }: Fixture): boolean {
  const found = dimensionOf(row, grouping);
  return found !== undefined && (found.name === askedAs || hasValue(found.value));
}

export type Row = StoredRow & { readonly key: string; readonly keyOfService: string };

export function readRow(row: JsonTree, grouping: Fixture["grouping"]): Row {
  require(row.kind === "object");
  const numbers = METRICS.map((metric) => {
    const value = memberOf(row, metric);
    if (value === undefined || isNull(value)) return null;
    const text = amount(value);
    require(!text.startsWith("-"));
    return text;
  });
  const extras = new Map(row.members.flatMap(([name]) => extraOf(row, name)));
  require(extras.size > 0 || numbers.some((number) => number !== null));
  const extra = JSON.stringify([...extras].toSorted());
  return { ...groupOf(grouping, dimensionOf(row, grouping)?.value), numbers, extra };
}

/** A number without a column of its own. Postgres can't store NUL in its name. */
function extraOf(row: JsonTree, name: string): readonly (readonly [string, string])[] {
  const value = memberOf(row, name);
  if (NOT_METRICS.has(name) || value?.kind !== "number") return [];
  require(!name.includes("\0"));
  return [[name, amount(value)]];
}

function amount(value: JsonTree): string {
  const text = value.kind === "number" ? plainDecimal(value.digits) : undefined;
  require(text !== undefined);
  return text;
}

/** `keyOfService` keeps the shapes of no value apart. */
function groupOf(
  grouping: string,
  value: JsonTree | undefined,
): { readonly key: string; readonly keyOfService: string; readonly group: string | null } {
  if (grouping === "none") return { key: "", keyOfService: "", group: null };
  const items = value?.kind === "array" ? value.items : value ? [value] : [];
  const texts = items.map((item) => (item.kind === "text" ? item.text : ""));
  require(items.every((item) => item.kind === "text" || isNull(item)));
  const named = [...new Set(texts.filter((text) => text !== ""))].sort();
  if (named.length === 0) return { key: "no value", keyOfService: `no value ${JSON.stringify(value)}`, group: null };
  const set = texts.includes("") ? [...named, null] : named;
  const key = JSON.stringify(set);
  const shown = grouping === "tags" || set.length > 1 ? key : (named[0]?.replaceAll("\0", "\\u0000") ?? null);
  return { key, keyOfService: key, group: shown };
}

function hasValue(value: JsonTree): boolean {
  return value.kind === "array"
    ? value.items.some(hasValue)
    : !isNull(value) && !(value.kind === "text" && value.text === "");
}
