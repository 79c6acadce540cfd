// Writes exact decimal texts for people. Always in English, whatever the machine speaks. Pure.

/** To the unit, and small amounts to three digits. */
const ROUNDED = new Intl.NumberFormat("en-US", {
  maximumFractionDigits: 0,
  maximumSignificantDigits: 3,
  roundingPriority: "morePrecision",
});
const SHORT = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 4, useGrouping: true });
const PERCENT = new Intl.NumberFormat("en-US", {
  style: "percent",
  maximumFractionDigits: 1,
  signDisplay: "exceptZero",
});

const HEADLINE_DIGITS_MAX = 5;
/** Above this, a compact number would grow with the amount: Intl has no name for more than trillions. */
const NAMED_DIGITS_MAX = 18;

/** What a chart can draw; sums of it stay finite. */
const DRAWN_MAX = 1e300;

/** 1,621.74 hours are "1,622", 1.2345 are "1.23", 373381 requests are "373,381". */
export function rounded(amount: string): string {
  return isNumeric(amount) ? ROUNDED.format(amount) : amount;
}

/** For a headline, whose width must not grow with the amount: above five digits "373.4K", above eighteen "1.23E18". */
export function headline(amount: string): string {
  if (!isNumeric(amount) || wholeDigits(amount) <= HEADLINE_DIGITS_MAX) return rounded(amount);
  return wholeDigits(amount) <= NAMED_DIGITS_MAX ? SHORT.format(amount) : powerOfTen(amount);
}

/** Intl keeps no more digits than a double holds, so the power is computed from the text. */
function powerOfTen(amount: string): string {
  const [, sign = "", digits = ""] = /^(-?)(\d+)/.exec(amount) ?? [];
  const hundredths = Math.round(Number(digits.slice(0, 4)) / 10);
  const [mantissa, exponent] = hundredths === 1000 ? [1, digits.length] : [hundredths / 100, digits.length - 1];
  return `${sign}${mantissa}E${exponent}`;
}

/** Every digit, with separators. */
export function exact(amount: string): string {
  const [whole = "", fraction] = amount.split(".");
  const separated = whole.replaceAll(/\B(?=(\d{3})+$)/g, ",");
  const digits = fraction?.replace(/0+$/, "") ?? "";
  return digits === "" ? separated : `${separated}.${digits}`;
}

/** A whole number and its noun. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${ROUNDED.format(count)} ${count === 1 ? one : many}`;
}

/** For an axis. */
export function short(value: number): string {
  return SHORT.format(value);
}

/** For lengths in a chart, never for a figure. */
export function drawn(amount: string): number {
  return Math.min(Number(amount), DRAWN_MAX);
}

export function isZero(amount: string): boolean {
  return /^-?[0.]+$/.test(amount);
}

/** In percent of what was before; in words where that says nothing. */
export function change(amount: string, before: string | null): string {
  if (before === null) return "not known before";
  if (exact(amount) === exact(before)) return "unchanged";
  if (isZero(before)) return "new";
  const ratio = (Number(amount) - Number(before)) / Math.abs(Number(before));
  if (!Number.isFinite(ratio)) return "not comparable";
  return Math.abs(ratio) < 0.0005 ? "about the same" : PERCENT.format(ratio);
}

function wholeDigits(amount: string): number {
  return amount.replace(/^-/, "").split(".")[0]?.length ?? 0;
}

/** Intl takes a decimal text digit by digit; as a number it would lose some. */
function isNumeric(text: string): text is `${number}` {
  return /^-?\d+(\.\d+)?$/.test(text);
}
