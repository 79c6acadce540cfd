// Decimal numbers as text, so that no digit is lost on the way to numeric columns. Pure.

import { ExactNumber } from "./exact-number.ts";

/** More digits than any real amount has, and few enough for Postgres and for a person to look at. */
const DIGITS_MAX = 400;

/**
 * The number in its one canonical form: no exponent, no zeros at the ends, "0" for every zero. Undefined where it is
 * no number, or too long to be an amount.
 */
export function decimalText(value: number | ExactNumber): string | undefined {
  const source = value instanceof ExactNumber ? value.source : String(value);
  // What a double is written as is canonical already, unless it has an exponent.
  if (typeof value === "number" && Number.isFinite(value) && !source.includes("e")) return source;
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source);
  if (!parts) return undefined;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = parts;
  const digits = whole + fraction;
  const point = whole.length + Number(exponent);
  if (Math.abs(point) > DIGITS_MAX || digits.length > DIGITS_MAX) return undefined;

  const padded = "0".repeat(Math.max(0, -point)) + digits + "0".repeat(Math.max(0, point - digits.length));
  const split = Math.max(0, point);
  const before = padded.slice(0, split).replace(/^0+/, "") || "0";
  const after = padded.slice(split).replace(/0+$/, "");
  const text = after === "" ? before : `${before}.${after}`;
  return text === "0" ? text : sign + text;
}
