// Reads the numbers of a row. Pure.

import { AppError } from "../errors.ts";
import { decimalText } from "./decimal.ts";
import type { ExactNumber } from "./exact-number.ts";
import { isNumber, type JsonObject, kindOf, numberSource } from "./json-value.ts";
import { DIMENSIONS } from "./series.ts";

/** The metrics with a column of their own, in the order of the columns. */
export const METRICS = [
  "hours",
  "total_hours",
  "agent_hours",
  "tokens_in",
  "tokens_out",
  "tts_characters",
  "requests",
] as const;

export type RowMetrics = {
  /** By METRICS: exact decimal text, null where the service sent none. Never negative. */
  readonly values: readonly (string | null)[];
  /** The numbers the program has no column for, as a JSON object with sorted names; null where there are none. */
  readonly extra: string | null;
};

const KNOWN = new Set<string>([...METRICS, ...DIMENSIONS, "models", "grouping", "start", "end"]);

/** The service adds metrics without notice: an unknown number is kept, anything else unknown is not a metric. */
export function readMetrics(row: JsonObject, place: string): RowMetrics {
  const values = METRICS.map((metric) => readMetric(row[metric], place, metric));
  const extra: string[] = [];
  for (const name of Object.keys(row)
    .filter((each) => !KNOWN.has(each))
    .sort()) {
    const value = row[name];
    if (isNumber(value)) extra.push(`${JSON.stringify(name)}:${finite(value, place, name)}`);
  }
  if (extra.length === 0 && values.every((value) => value === null)) {
    throw new AppError("bad_answer", `${place}: the row has none of the metrics ${METRICS.join(", ")}`);
  }
  return { values, extra: extra.length > 0 ? `{${extra.join(",")}}` : null };
}

function readMetric(value: unknown, place: string, metric: string): string | null {
  if (value === undefined || value === null) return null;
  if (!isNumber(value)) throw refused(place, metric, `expected a number, got ${kindOf(value)}`);
  const text = finite(value, place, metric);
  if (text.startsWith("-")) throw refused(place, metric, `expected 0 or more, got ${text.slice(0, 40)}`);
  return text;
}

function finite(value: number | ExactNumber, place: string, metric: string): string {
  const double = typeof value === "number" ? value : Number(value.source);
  const text = Number.isFinite(double) ? decimalText(value) : undefined;
  if (text !== undefined) return text;
  throw refused(place, metric, `expected a finite number, got ${numberSource(value).slice(0, 40)}`);
}

function refused(place: string, metric: string, reason: string): AppError {
  return new AppError("bad_answer", `${place}.${metric}: ${reason}`);
}
