// Numbers with all their digits: a double would lose some. Pure.

/** A number as it is written. A double would make 9007199254740992 of 9007199254740993, and Infinity of 1e999. */
export class ExactNumber {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

export function numberSource(value: number | ExactNumber): string {
  return value instanceof ExactNumber ? value.source : String(value);
}

/** More digits than any real amount has. A longer number is refused before it bloats a column or a page. */
const DIGITS_MAX = 400;

/** The number as decimal text, without an exponent or needless zeros. Undefined if it is too long or not finite. */
export function decimalText(value: number | ExactNumber): string | undefined {
  const source = numberSource(value);
  // JavaScript writes a double in canonical form, unless it needs an exponent.
  if (typeof value === "number" && Number.isFinite(value) && !source.includes("e")) return source;
  const found = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source);
  if (!found) return undefined;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = found;
  const digits = whole + fraction;
  // How many digits stand before the point. If the point lies outside the digits, zeros are added.
  const point = whole.length + Number(exponent);
  if (Math.abs(point) > DIGITS_MAX || digits.length > DIGITS_MAX) return undefined;
  const padded = "0".repeat(Math.max(0, -point)) + digits.padEnd(point, "0");
  const split = Math.max(0, point);
  return plainDecimal(`${sign}${padded.slice(0, split).replace(/^0+/, "") || "0"}.${padded.slice(split)}`);
}

/** Removes zeros at the end of the fraction, then a point without a fraction, and the sign of -0. */
export function plainDecimal(text: string): string {
  const trimmed = text.includes(".") ? text.replace(/\.?0*$/, "") : text;
  return trimmed === "-0" ? "0" : trimmed;
}

export function sumOf(...amounts: readonly string[]): string {
  const places = Math.max(0, ...amounts.map((amount) => amount.split(".")[1]?.length ?? 0));
  const sum = amounts.reduce((total, amount) => total + unscaled(amount, places), 0n);
  const digits = String(sum < 0n ? -sum : sum).padStart(places + 1, "0");
  const point = digits.length - places;
  return plainDecimal(`${sum < 0n ? "-" : ""}${digits.slice(0, point)}${places > 0 ? "." : ""}${digits.slice(point)}`);
}

export function difference(amount: string, subtracted: string): string {
  return sumOf(amount, subtracted.startsWith("-") ? subtracted.slice(1) : `-${subtracted}`);
}

/** The decimal times 10 to the power of `places`: "1.5" with 2 places is 150. */
function unscaled(amount: string, places: number): bigint {
  const [whole = "", fraction = ""] = amount.split(".");
  return BigInt(whole + fraction.padEnd(places, "0"));
}
