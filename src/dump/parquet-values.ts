// Values as Parquet stores them. Pure.

import type { ColumnKind } from "./view.ts";

/**
 * One type for every number, in every file: a program that reads the files of several months together takes the type of the
 * first, and would round what comes in the others without a word. An hour is 3,600 seconds, so hours have digits without
 * end, and the service sends 17 of them: 24 behind the point hold the hours of a millisecond. No format has more than 38.
 */
export const DECIMAL_PRECISION = 38;
export const DECIMAL_SCALE = 24;

const DAY_MS = 86_400_000;

/** The value of a column, which is not null; undefined where it can't be held. */
export function parquetValue(kind: ColumnKind, text: string): string | number | bigint | undefined {
  switch (kind) {
    case "integer":
      return BigInt(text);
    case "number":
      return unscaled(text);
    case "day":
      return Date.parse(`${text}T00:00:00Z`) / DAY_MS;
    case "instant":
      return microseconds(text);
    case "text":
    case "json":
      return text;
  }
}

/** The number times ten to the power of the scale: 1.5 is 15 and 23 zeros. */
function unscaled(text: string): bigint | undefined {
  const [whole = "", fraction = ""] = text.split(".");
  const digits = fraction.length > DECIMAL_SCALE ? fraction.replace(/0+$/, "") : fraction;
  if (digits.length > DECIMAL_SCALE) return undefined;
  if (whole.replace("-", "").length > DECIMAL_PRECISION - DECIMAL_SCALE) return undefined;
  return BigInt(whole + digits.padEnd(DECIMAL_SCALE, "0"));
}

/** Since 1970. A JavaScript date has three digits of a second, and the text has six. */
function microseconds(text: string): bigint {
  const digits = "2026-03-17T02:15:00.123".length;
  return BigInt(Date.parse(`${text.slice(0, digits)}Z`)) * 1000n + BigInt(text.slice(digits, digits + 3));
}
