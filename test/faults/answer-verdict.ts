// A second, independent implementation of the contract: which rows of which days an answer contains, or that it must be refused. Pure.

import { isUtf8 } from "node:buffer";
import { addDays, daysOf, isDay } from "../../src/emulator/days.ts";
import type { Fixture, Window } from "./answer-fixtures.ts";
import { isNullish, type JsonTree, memberOf, plainDecimal, readTree } from "./json-tree.ts";

export type Verdict = ReadonlyMap<string, readonly StoredRow[]> | undefined;

const DEPTH_MAX = 64;
const DAYS_MAX = 3_660;

/** The rows of every day that the answer covers; undefined if the answer must be refused. */
export function verdictOf(body: Uint8Array, fixture: Fixture, window: Window | undefined, today: string): Verdict {
  try {
    return rowsByDay(body, fixture, window, today);
  } catch (error) {
    if (error instanceof Refused) return undefined;
    throw error;
  }
}

function rowsByDay(body: Uint8Array, fixture: Fixture, window: Window | undefined, today: string): Verdict {
  require(isUtf8(body));
  const answer = readTree(Buffer.from(body).toString("utf8"));
  require(answer !== undefined && answer.kind === "object" && isStorable(answer, 0));
  const results = memberOf(answer, "results");
  require(results?.kind === "array" && isDaily(memberOf(answer, "resolution")));
  const { items } = results;
  require(items.every((row) => row.kind === "object"));
  require(items.length === 0 || fixture.grouping === "none" || items.some((row) => namesDimension(row, fixture)));

  const period = periodOf(answer, window);
  const rows = items.map((row) => ({ ...dayOf(row, period, today), row: readRow(row, fixture.grouping) }));
  // Beside rows with a day, a row without one could be of any day.
  require(new Set(rows.map(({ isDated }) => isDated)).size <= 1);
  const rowDays = rows.map(({ day }) => day).sort();
  const days = coveredDays(window, period, rowDays, today);
  return new Map(days.map((day) => [day, mergedRows(rows.filter((one) => one.day === day).map(({ row }) => row))]));
}

/** Whether the answer can be stored and given back unchanged. */
function isStorable(tree: JsonTree, depth: number): boolean {
  if (tree.kind === "text") return tree.text.isWellFormed();
  if (tree.kind === "number" || tree.kind === "word") return true;
  if (depth >= DEPTH_MAX) return false;
  if (tree.kind === "array") return tree.items.every((item) => isStorable(item, depth + 1));
  if (new Set(tree.members.map(([name]) => name)).size < tree.members.length) return false;
  return tree.members.every(([name]) => {
    const value = memberOf(tree, name);
    return name !== "__proto__" && name.isWellFormed() && value !== undefined && isStorable(value, depth + 1);
  });
}

function isDaily(resolution: JsonTree | undefined): boolean {
  if (resolution === undefined || isNullish(resolution)) return true;
  const [units, amount] = ["units", "amount"].map((name) => memberOf(resolution, name));
  if (units?.kind !== "text" || amount?.kind !== "number") return false;
  return /^days?$/.test(units.text) && plainDecimal(amount.digits) === "1";
}

type MaybeWindow = Window | undefined;

/** The days that the answer itself names; undefined if it names none. */
function periodOf(answer: JsonTree, window: MaybeWindow): MaybeWindow {
  const start = dayIn(memberOf(answer, "start"));
  const end = dayIn(memberOf(answer, "end"));
  require(window === undefined || (start === window.start && end === window.end));
  if (start === undefined || end === undefined) return undefined;
  require(start <= end);
  return { start, end };
}

function dayIn(value: JsonTree | undefined): string | undefined {
  if (value === undefined || isNullish(value)) return undefined;
  require(value.kind === "text");
  const day = /^(\d{4}-\d\d-\d\d)(?:T00:00(?::00(?:\.0+)?)?(?:Z|\+00:00)?)?$/.exec(value.text)?.[1];
  // Postgres has no year 0.
  require(day !== undefined && day > "0001" && isDay(day));
  return day;
}

function dayOf(row: JsonTree, period: Window | undefined, today: string): { day: string; isDated: boolean } {
  const grouping = memberOf(row, "grouping");
  const hasGroupingDay =
    grouping?.kind === "object" && !(isNullish(memberOf(grouping, "start")) && isNullish(memberOf(grouping, "end")));
  const holder = hasGroupingDay ? grouping : row;
  const start = dayIn(memberOf(holder, "start"));
  const end = dayIn(memberOf(holder, "end"));
  const day = start ?? end ?? period?.start ?? today;
  const last = end ?? start ?? period?.end ?? today;
  require(day === last && (period === undefined || (day >= period.start && day <= period.end)));
  return { day, isDated: start !== undefined || end !== undefined || period !== undefined };
}

/** Without a window: from the first row's day to the last row's, or to the period's end (today, if it is not over) if that is later. */
function coveredDays(window: MaybeWindow, period: MaybeWindow, rowDays: readonly string[], today: string) {
  const [first, last] = [rowDays[0], rowDays.at(-1)];
  const isNotOver = period && period.start <= today && period.end > today;
  const periodEnd = isNotOver ? today : period?.end;
  const isPeriodLonger = periodEnd && last && periodEnd > last && periodEnd <= today;
  const end = isPeriodLonger ? periodEnd : (last ?? periodEnd);
  const named = end === undefined ? undefined : { start: first ?? end, end };
  const covered = window ?? named ?? { start: today, end: today };
  const days = daysOf(covered);
  require(window !== undefined || (covered.end <= addDays(today, 1) && days.length <= DAYS_MAX));
  return days;
}

/** A repeated row counts once. Two different rows of one group are refused, but rows of no value, as null, "" or [], are added up. */
function mergedRows(rows: readonly Row[]): readonly StoredRow[] {
  const distinct = new Map<string, Row>();
  for (const row of rows) {
    const twin = distinct.get(row.unmergedKey);
    require(twin === undefined || JSON.stringify(twin) === JSON.stringify(row));
    distinct.set(row.unmergedKey, row);
  }
  return [...Map.groupBy(distinct.values(), ({ key }) => key).values()].map((same) => ({
    group: same[0]?.group ?? null,
    numbers: (same[0]?.numbers ?? []).map((_, i) => sumOf(same.map(({ numbers }) => numbers[i] ?? null))),
    extra: extraSum(same.map(({ extra }) => extra)),
  }));
}

/** A sum may have more digits than one amount. */
const SUM_LENGTH_MAX = 1_000;

function sumOf(amounts: readonly (string | null)[]): string | null {
  const known = amounts.filter((amount) => amount !== null);
  if (known.length <= 1) return known[0] ?? null;
  const decimals = Math.max(...known.map((amount) => amount.split(".")[1]?.length ?? 0));
  const scaled = known.map((amount) => {
    const [whole = "", fraction = ""] = amount.split(".");
    return BigInt(whole + fraction.padEnd(decimals, "0"));
  });
  const sum = plainDecimal(`${scaled.reduce((a, b) => a + b)}e-${decimals}`, SUM_LENGTH_MAX);
  require(sum !== undefined);
  return sum;
}

function extraSum(extras: readonly string[]): string {
  const members: readonly (readonly [string, string])[] = extras.flatMap((extra) => JSON.parse(extra));
  const byName = Map.groupBy(members, ([name]) => name);
  return JSON.stringify([...byName].map(([name, same]) => [name, sumOf(same.map(([, amount]) => amount))]).toSorted());
}

// Rows.

/** What a reader of the views sees: the group as it is shown, the numbers by METRICS, and as JSON the numbers that have no column. */
export type StoredRow = {
  readonly group: string | null;
  readonly numbers: readonly (string | null)[];
  readonly extra: string;
};

export const METRICS = ["hours", "total_hours", "agent_hours", "tokens_in", "tokens_out", "tts_characters", "requests"];
const DIMENSIONS = ["accessor", "deployment", "endpoint", "feature_set", "model", "models", "method", "tags"];
const NOT_METRICS = new Set([...METRICS, ...DIMENSIONS, "grouping", "start", "end"]);

class Refused extends Error {}

function require(holds: boolean): asserts holds {
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

function namesDimension(row: JsonTree, { grouping, askedAs }: Fixture): boolean {
  const found = dimensionOf(row, grouping);
  return found !== undefined && (found.name === askedAs || hasValue(found.value));
}

type Row = StoredRow & { readonly key: string; readonly unmergedKey: string };

function readRow(row: JsonTree, grouping: Fixture["grouping"]): Row {
  require(row.kind === "object");
  const numbers = METRICS.map((metric) => {
    const value = memberOf(row, metric);
    if (value === undefined || isNullish(value)) return null;
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

/** `unmergedKey` keeps null, "" and [], which all mean no value, apart. */
function groupOf(grouping: string, value: JsonTree | undefined): Pick<Row, "key" | "unmergedKey" | "group"> {
  if (grouping === "none") return { key: "", unmergedKey: "", group: null };
  const items = value?.kind === "array" ? value.items : value ? [value] : [];
  const texts = items.map((item) => (item.kind === "text" ? item.text : ""));
  require(items.every((item) => item.kind === "text" || isNullish(item)));
  const named = [...new Set(texts.filter((text) => text !== ""))].sort();
  if (named.length === 0) return { key: "no value", unmergedKey: `no value ${JSON.stringify(value)}`, group: null };
  const set = texts.includes("") ? [...named, null] : named;
  const key = JSON.stringify(set);
  const shown = grouping === "tags" || set.length > 1 ? key : (named[0]?.replaceAll("\0", "\\u0000") ?? null);
  return { key, unmergedKey: key, group: shown };
}

function hasValue(value: JsonTree): boolean {
  return value.kind === "array"
    ? value.items.some(hasValue)
    : !isNullish(value) && !(value.kind === "text" && value.text === "");
}
