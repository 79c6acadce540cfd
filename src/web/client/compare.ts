// The order of the cells of a table. Decimals are compared by their digits: as doubles, different amounts could be equal. Pure.

import { difference } from "../../decimal.ts";

/** `-1,234.50` and `1234.5`; undefined for any other text. */
export function decimalOf(text: string): string | undefined {
  const plain = text
    .trim()
    .replaceAll(/(?<=\d),(?=\d{3})/g, "")
    .replace(/^[+]/, "")
    .replace(/^\u2212/, "-");
  return /^-?\d+(\.\d+)?$/.test(plain) ? plain : undefined;
}

/** Negative if `a` is less. */
export function compareDecimals(a: string, b: string): number {
  const more = difference(a, b);
  return more === "0" ? 0 : more.startsWith("-") ? -1 : 1;
}

/** Decimals come before other texts. */
export function compareCells(a: string, b: string): number {
  const [one, other] = [decimalOf(a), decimalOf(b)];
  if (one !== undefined && other !== undefined) return compareDecimals(one, other);
  if (one !== undefined || other !== undefined) return one === undefined ? 1 : -1;
  return a.localeCompare(b, "en", { numeric: true });
}
