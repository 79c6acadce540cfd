// A model of what a series must show after each answer, and a comparison of the views with it. Pure, except that it updates the series.

import type { ProgramResult } from "../support/program.ts";
import type { Window } from "./answer-fixtures.ts";
import { METRICS, type StoredRow, type Verdict } from "./answer-verdict.ts";

/** What the views show of a series, by day. */
export type SeenSeries = {
  readonly rows: Map<string, StoredRow[]>;
  readonly status: Map<string, string>;
};

type DayState = { readonly rows: readonly StoredRow[]; readonly doubt: "empty" | "fall" | undefined };

export type Series = { readonly days: Map<string, DayState>; last: Served | undefined };
/** An answer as it was served. `verdict` has the rows that it must give, by day; undefined if it must be refused. */
export type Served = {
  readonly name: string;
  readonly body: Uint8Array;
  readonly verdict: Verdict;
  readonly window: Window | undefined;
};

/** Must be called before seriesFaults, which replaces the rows that an answer is compared with here. */
export function programFaults({ status, stderr }: ProgramResult, all: readonly Series[]): readonly string[] {
  const expected = all.some((one) => isFailure(one)) ? 1 : 0;
  const wrong = `the program ended with ${status} instead of ${expected}: ${stderr.slice(-500)}`;
  const broken = stderr.split("\n").filter((line) => line !== "" && !isObject(line));
  return [
    ...(status === expected ? [] : [wrong]),
    ...broken.map((line) => `a log line that is no JSON object: ${line.slice(0, 300)}`),
  ];
}

function isObject(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}

/** Whether the answer must be refused or puts a day in doubt. Called before the series is updated. */
function isFailure({ last, days }: Series): boolean {
  if (last === undefined) return false;
  return last.verdict === undefined || [...last.verdict].some(([day, rows]) => stateAfter(days.get(day), rows).doubt);
}

/** A day that loses all or most of its usage keeps its rows until a second run gets the same: each run makes doubts an hour older. */
function stateAfter(day: DayState | undefined, rows: readonly StoredRow[]): DayState {
  const doubt = day && doubtOf(day.rows, rows);
  return doubt !== undefined && doubt !== day?.doubt ? { rows: day?.rows ?? [], doubt } : { rows, doubt: undefined };
}

/** The first metric that both answers have is checked for a fall, if its sum was at least this. */
const GUARDED_FROM = {
  ...{ requests: 100, hours: 10, total_hours: 10, agent_hours: 10 },
  ...{ tokens_in: 10_000, tokens_out: 10_000, tts_characters: 10_000 },
};

function doubtOf(before: readonly StoredRow[], after: readonly StoredRow[]): DayState["doubt"] {
  if (before.length === 0) return undefined;
  if (after.length === 0) return "empty";
  const compared = Object.entries(GUARDED_FROM)
    .map(([metric, from]) => ({ from, was: sumOf(before, metric), is: sumOf(after, metric) }))
    .find(({ was, is }) => was !== undefined && is !== undefined);
  const { from = 0, was = 0, is = 0 } = compared ?? {};
  return was >= from && is * 10 < was ? "fall" : undefined;
}

function sumOf(rows: readonly StoredRow[], metric: string): number | undefined {
  const numbers = rows.flatMap((row) => row.numbers[METRICS.indexOf(metric)] ?? []);
  return numbers.length > 0 ? numbers.reduce((sum, number) => sum + Number(number), 0) : undefined;
}

/** Updates the series with its last answer, and returns where the views differ from it. */
export function seriesFaults(
  { last, days }: Series,
  seen: SeenSeries = { rows: new Map(), status: new Map() },
): readonly string[] {
  if (last === undefined) return ["the program did not request this series"];
  for (const [day, rows] of last.verdict ?? []) days.set(day, stateAfter(days.get(day), rows));
  const faults: string[] = [];
  for (const day of new Set([...days.keys(), ...seen.rows.keys()])) {
    const expected = textOf(days.get(day)?.rows ?? []);
    const found = textOf(seen.rows.get(day) ?? []);
    if (expected !== found)
      faults.push(`${last.name}: ${day} should be ${expected.slice(0, 600)} and is ${found.slice(0, 600)}`);
  }
  const checkedDays = last.verdict?.keys() ?? (last.window ? [last.window.start, last.window.end] : []);
  for (const day of checkedDays) {
    const expected = last.verdict === undefined ? "failed" : days.get(day)?.doubt ? "suspect" : "complete";
    const found = seen.status.get(day);
    if (found !== expected) faults.push(`${last.name}: ${day} should be ${expected} and is ${found}`);
  }
  return faults;
}

function textOf(rows: readonly StoredRow[]): string {
  return JSON.stringify(rows.map((row) => JSON.stringify([row.group, row.numbers, row.extra])).toSorted());
}
