// Values parsed from JSON: type checks, descriptions for error messages, and numbers that a double can't hold. Pure.

import { plainDecimal } from "../decimal.ts";
import { AppError } from "../errors.ts";

/** A number with all digits that were sent. As a double, 9007199254740993 would lose its last digit, and 1e999 would be Infinity. */
export class ExactNumber {
  /** The number as it stands in the JSON. */
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

export function isNumber(value: unknown): value is number | ExactNumber {
  return typeof value === "number" || value instanceof ExactNumber;
}

/** Describes a value in an error message: its type, and the beginning of a text or a number. */
export function describeJson(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (isNumber(value)) return `the number ${numberSource(value).slice(0, 40)}`;
  return typeof value === "object" ? "an object" : `the ${typeof value} ${JSON.stringify(value).slice(0, 40)}`;
}

export function numberSource(value: number | ExactNumber): string {
  return value instanceof ExactNumber ? value.source : String(value);
}

/** The error for an answer that can't be read, or must not be believed. */
export function badAnswer(reason: string): AppError {
  return new AppError("bad_answer", reason);
}

/** More digits than any real amount has, and few enough for Postgres and for people to read. */
const DECIMAL_DIGITS_MAX = 400;

/** The number as decimal text, without exponent and superfluous zeros. Undefined if it is too long, or not finite. */
export function decimalText(value: number | ExactNumber): string | undefined {
  const source = numberSource(value);
  // JavaScript writes a double in canonical form, unless it needs an exponent.
  if (typeof value === "number" && Number.isFinite(value) && !source.includes("e")) return source;
  const found = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source);
  if (!found) return undefined;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = found;
  const digits = whole + fraction;
  const point = whole.length + Number(exponent);
  if (Math.abs(point) > DECIMAL_DIGITS_MAX || digits.length > DECIMAL_DIGITS_MAX) return undefined;

  const padded = "0".repeat(Math.max(0, -point)) + digits.padEnd(point, "0");
  const split = Math.max(0, point);
  return plainDecimal(`${sign}${padded.slice(0, split).replace(/^0+/, "") || "0"}.${padded.slice(split)}0`);
}
