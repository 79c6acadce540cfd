// The order of the cells of a table. Pure.

import { difference } from "../../decimal.ts";

/** Decimals come before other texts, and are compared by their digits: as doubles, different amounts could be equal. */
export function compareCells(a: string, b: string): number {
  const [one, other] = [decimalOf(a), decimalOf(b)];
  if (one === undefined && other === undefined) return a.localeCompare(b, "en", { numeric: true });
  if (one === undefined || other === undefined) return one === undefined ? 1 : -1;
  return Math.sign(Number(difference(one, other)));
}

/** `-1,234.50` and `1234.5`; undefined for any other text. */
function decimalOf(text: string): string | undefined {
  const plain = text.replaceAll(/(?<=\d),(?=\d{3})|^\+/g, "").replace(/^\u2212/, "-");
  return /^-?\d+(\.\d+)?$/.test(plain) ? plain : undefined;
}
