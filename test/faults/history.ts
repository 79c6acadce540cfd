// Records what the service answered in a fault case, for check.ts. Each breakdown gets a version, which its rows contain.

import { z } from "zod";
import { daysOf } from "../../src/emulator/days.ts";
import { METRICS } from "./answer-verdict.ts";
import type { Answer, ServiceFrontOptions } from "./service-front.ts";

/** A row as text, so that it can be compared with a stored one: the group and every number. */
export type RowText = string;

export type Exchange = {
  /** The program that asked. */
  readonly who: string;
  readonly path: string;
  /** The series and window of a breakdown; undefined for other requests. */
  readonly asked: Asked | undefined;
  readonly arrivedAt: number;
  /** When the last byte was sent; undefined if the program did not get the whole answer. */
  answeredAt?: number;
  /** When the service had finished the request, whether or not its answer was sent. */
  endedAt?: number;
  status?: number;
  version?: number;
  /** The rows by day; a day without usage is left out. */
  days?: ReadonlyMap<string, readonly RowText[]>;
};

type Asked = { readonly series: string; readonly days: readonly string[] };

export type History = { readonly exchanges: Exchange[]; newestVersion: number };

/** A history that continues another one. */
export function historyAfter(before: History = { exchanges: [], newestVersion: 0 }): History {
  return { exchanges: [...before.exchanges], newestVersion: before.newestVersion };
}

/** Watches a front, the proxy of service-front.ts: records each exchange, and puts a version into each breakdown. */
export function recorderFor(history: History): ServiceFrontOptions["watch"] {
  return ({ who, url }) => {
    const seen: Exchange = { who, path: url, asked: askedFor(url), arrivedAt: performance.now() };
    history.exchanges.push(seen);
    return {
      answered: (answer) => recordAnswer(answer, seen, history),
      answerSent: () => {
        seen.answeredAt = performance.now();
      },
      ended: () => {
        seen.endedAt = performance.now();
      },
    };
  };
}

function recordAnswer(answer: Answer, seen: Exchange, history: History): Answer {
  seen.status = answer.status;
  if (!seen.asked || answer.status !== 200) return answer;
  const version = ++history.newestVersion;
  const breakdown = stamped(Breakdown.parse(JSON.parse(answer.body.toString())), version);
  seen.version = version;
  seen.days = rowsByDay(breakdown, seen.asked.series.split(" / ")[0] ?? "");
  return { ...answer, body: Buffer.from(JSON.stringify(breakdown)) };
}

const Row = z.looseObject({ grouping: z.looseObject({ start: z.string() }), requests: z.number() });
const Breakdown = z.looseObject({ results: z.array(Row) });
type Breakdown = z.infer<typeof Breakdown>;

/** A day with at least this many groups lacks one of them, another one than in the version before. */
const GROUPS_TO_OMIT_ONE = 3;
/** Greater than every version of a case. */
const VERSION_STEP = 1_000;

/** The answer with its version in each row's `requests`, and without one group of each larger day: stored rows then tell their answer. */
function stamped(breakdown: Breakdown, version: number): Breakdown {
  const days = Map.groupBy(breakdown.results, (row) => row.grouping.start);
  const results = [...days.values()].flatMap((rows) =>
    rows
      .filter((_, index) => rows.length < GROUPS_TO_OMIT_ONE || index !== version % rows.length)
      .map((row) => ({ ...row, requests: row.requests * VERSION_STEP + version })),
  );
  return { ...breakdown, results };
}

/** The rows of each day as text. */
function rowsByDay(breakdown: Breakdown, grouping: string): ReadonlyMap<string, readonly RowText[]> {
  const days = Map.groupBy(breakdown.results, (row) => row.grouping.start);
  return new Map(
    [...days].map(([day, rows]) => [
      day,
      rows.map((row) => rowText(grouping === "none" ? null : shownGroup(grouping, row.grouping[grouping]), row)).sort(),
    ]),
  );
}

export function rowText(group: string | null, row: Readonly<Record<string, unknown>>): RowText {
  return JSON.stringify([group, ...METRICS.map((metric) => String(row[metric] ?? null))]);
}

/** How the views show a dimension's value: several values and tags as sorted JSON, one value as it is. */
function shownGroup(grouping: string, value: unknown): string | null {
  if (value === null || value === undefined) return null;
  const values = Array.isArray(value) ? value.toSorted() : [value];
  if (grouping === "tags" || values.length > 1) return JSON.stringify(values);
  return values.length === 0 ? null : String(values[0]);
}

/** The series and days that a breakdown is requested for. The series is named by its grouping and the conditions of its filter. */
function askedFor(url: string): Asked | undefined {
  const { pathname, searchParams } = new URL(url, "http://front.test");
  if (!pathname.endsWith("/usage/breakdown")) return undefined;
  const start = searchParams.get("start");
  const end = searchParams.get("end");
  if (start === null || end === null) throw new Error(`a breakdown without a window: ${url}`);
  const grouping = searchParams.get("grouping") ?? "none";
  const conditions = [...searchParams].filter(([name]) => !["start", "end", "grouping"].includes(name));
  const filter = new URLSearchParams(conditions.toSorted()).toString();
  return { series: `${grouping} / ${filter}`, days: daysOf({ start, end }) };
}
