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

/** What a chart can draw; sums of it stay finite. */
const DRAWN_MAX = 1e300;

/** 1,621.74 hours are "1,622", 1.2345 are "1.23", 373381 requests are "373,381". */
export function rounded(amount: string): string {
  return isNumeric(amount) ? ROUNDED.format(amount) : amount;
}

/** For a headline: rounded, and above ten digits "12.35B". */
export function headline(amount: string): string {
  return isNumeric(amount) && wholeDigits(amount) > 10 ? SHORT.format(amount) : rounded(amount);
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
