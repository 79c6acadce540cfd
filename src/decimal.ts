// Exact arithmetic with decimals as text: a double would lose digits. Pure.

/** Removes zeros at the end of the fraction. */
export function plainDecimal(text: string): string {
  const trimmed = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  return trimmed === "-0" ? "0" : trimmed;
}

export function sumOf(...amounts: readonly string[]): string {
  const places = Math.max(0, ...amounts.map((amount) => amount.split(".")[1]?.length ?? 0));
  const digits = amounts.reduce((sum, amount) => sum + unscaled(amount, places), 0n);
  const text = String(digits < 0n ? -digits : digits).padStart(places + 1, "0");
  const [whole, fraction] = [text.slice(0, text.length - places), text.slice(text.length - places)];
  return plainDecimal(`${digits < 0n ? "-" : ""}${whole}${fraction === "" ? "" : `.${fraction}`}`);
}

export function difference(amount: string, less: string): string {
  return sumOf(amount, less.startsWith("-") ? less.slice(1) : `-${less}`);
}

/** The decimal times 10 to the power of `places`: "1.5" with 2 places is 150. */
function unscaled(amount: string, places: number): bigint {
  const [whole = "", fraction = ""] = amount.split(".");
  return BigInt(whole + fraction.padEnd(places, "0"));
}
