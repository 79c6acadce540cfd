// Reads the metrics of a row as exact decimal text. Pure.

import { DIMENSIONS_OF, dimension, type Source } from "./dimensions.ts";
import { badAnswer, describeJson, ExactNumber, isNumber, type JsonObject, numberSource } from "./json-value.ts";

import { METRICS_OF, type StoredMetric } from "./metrics.ts";

export type RowMetrics = {
  /** In the order of METRICS_OF its source: exact decimal text; null if the service sent none. Only dollars may be negative. */
  readonly values: readonly (string | null)[];
  /** The numbers without a column of their own, as a JSON object with sorted names; null if there are none. */
  readonly extra: string | null;
};

const KNOWN_NAMES: Readonly<Record<Source, ReadonlySet<string>>> = {
  usage: new Set([
    ...METRICS_OF.usage,
    ...DIMENSIONS_OF.usage.flatMap((one) => [one, dimension(one).in2026?.grouping ?? one]),
    "grouping",
    "start",
    "end",
  ]),
  billing: new Set(["dollars", ...DIMENSIONS_OF.billing, "grouping", "start", "end"]),
};

/** The service adds metrics without notice, so an unknown number is kept. An unknown value of another type is ignored. */
export function readMetrics(row: JsonObject, rowNo: number, source: Source = "usage"): RowMetrics {
  const metrics = METRICS_OF[source];
  const values = metrics.map((metric) => readMetric(row[metric], rowNo, metric));
  const extra: string[] = [];
  for (const name in row) if (!KNOWN_NAMES[source].has(name)) extra.push(name);
  const extraText = extra.length > 0 ? readExtra(row, extra, rowNo) : null;
  // A contract may have no amounts in dollars, which are not 0.
  if (extraText === null && source === "usage" && values.every((value) => value === null)) {
    throw badAnswer(`results[${rowNo}]: the row has none of the metrics ${metrics.join(", ")}`);
  }
  return { values, extra: extraText };
}

function readExtra(row: JsonObject, names: string[], rowNo: number): string | null {
  const members = names.sort().flatMap((name) => {
    const value = row[name];
    return isNumber(value) ? [`${JSON.stringify(name)}:${finiteText(value, rowNo, name)}`] : [];
  });
  return members.length > 0 ? `{${members.join(",")}}` : null;
}

function readMetric(value: unknown, rowNo: number, metric: StoredMetric): string | null {
  // JavaScript writes these without an exponent.
  if (typeof value === "number" && value >= 1e-6 && value < 1e21) return String(value);
  if (value === undefined || value === null) return null;
  if (value === 0) return "0";
  if (!isNumber(value)) throw badAnswer(`results[${rowNo}].${metric}: expected a number, got ${describeJson(value)}`);
  const text = finiteText(value, rowNo, metric);
  // A credit is a negative amount.
  if (text.startsWith("-") && metric !== "dollars") {
    throw badAnswer(`results[${rowNo}].${metric}: expected 0 or more, got ${text.slice(0, 40)}`);
  }
  return text;
}

function finiteText(value: number | ExactNumber, rowNo: number, metric: string): string {
  const double = typeof value === "number" ? value : Number(value.source);
  const text = Number.isFinite(double) ? decimalText(value) : undefined;
  if (text !== undefined) return text;
  throw badAnswer(`results[${rowNo}].${metric}: expected a finite number, got ${numberSource(value).slice(0, 40)}`);
}

/** The sum of both rows, exactly. What only one of them has stays as it is. */
export function addMetrics(a: RowMetrics, b: RowMetrics): RowMetrics {
  const [one, other] = [extraNumbers(a), extraNumbers(b)];
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].sort();
  const extra = names.map((name) => `${JSON.stringify(name)}:${addDecimals(one[name], other[name])}`);
  return {
    values: a.values.map((value, i) => addDecimals(value, b.values[i])),
    extra: extra.length > 0 ? `{${extra.join(",")}}` : null,
  };
}

function extraNumbers({ extra }: RowMetrics): Readonly<Record<string, string>> {
  return JSON.parse(extra ?? "{}", (_, value, context?: { source?: string }) => context?.source ?? value);
}

function addDecimals(a: string | null | undefined, b: string | null | undefined): string | null {
  if (a == null || b == null) return a ?? b ?? null;
  const places = Math.max(...[a, b].map((one) => one.split(".")[1]?.length ?? 0));
  const scaled = (text: string) => {
    const [whole = "", fraction = ""] = text.split(".");
    return BigInt(whole + fraction.padEnd(places, "0"));
  };
  const sum = decimalText(new ExactNumber(`${scaled(a) + scaled(b)}e-${places}`));
  if (sum === undefined) throw badAnswer(`the sum of two rows has more than ${DECIMAL_DIGITS_MAX} digits`);
  return sum;
}

// Decimal numbers as text, so that no digit is lost on the way to numeric columns.

/** More digits than any real amount has, and few enough for Postgres and for people to read. */
const DECIMAL_DIGITS_MAX = 400;

/** The number without exponent and superfluous zeros; "0" for every zero. Undefined if the text is too long, or not a number. */
export function decimalText(value: number | ExactNumber): string | undefined {
  const source = value instanceof ExactNumber ? value.source : String(value);
  // JavaScript writes a double in canonical form, unless it needs an exponent.
  if (typeof value === "number" && Number.isFinite(value) && !source.includes("e")) return source;
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source);
  if (!parts) return undefined;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = parts;
  const digits = whole + fraction;
  const point = whole.length + Number(exponent);
  if (Math.abs(point) > DECIMAL_DIGITS_MAX || digits.length > DECIMAL_DIGITS_MAX) return undefined;

  const padded = "0".repeat(Math.max(0, -point)) + digits + "0".repeat(Math.max(0, point - digits.length));
  const split = Math.max(0, point);
  const before = padded.slice(0, split).replace(/^0+/, "") || "0";
  const after = padded.slice(split).replace(/0+$/, "");
  const text = after === "" ? before : `${before}.${after}`;
  return text === "0" ? text : sign + text;
}
