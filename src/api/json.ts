// Reads JSON without losing anything: numbers keep their value, and text that could not be stored as sent is refused.

import { ExactNumber } from "../usage/exact-number.ts";

const DEPTH_MAX = 64;
/** Every number of at most 15 digits comes back from a double as it was. */
const SAFE_LENGTH = 15;

/**
 * Numbers that a double cannot hold come back as ExactNumber, all others as numbers. A key named `__proto__` is left
 * out. Throws on what is not JSON, is nested too deeply, or holds half of a surrogate pair: two different halves would
 * become the same replacement character, and two groups of usage one.
 *
 * Of a key that stands twice in one object only the last value is seen: JSON.parse does not tell.
 */
export function parseExact(text: string): unknown {
  // Before the second pass, which recurses: a deep answer would end it with a stack overflow.
  check(parse(text), 0);
  return JSON.parse(text, revive);
}

/** The error of JSON.parse quotes the text, which is not ours to repeat. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError("it is not valid JSON");
  }
}

function check(value: unknown, depth: number): void {
  if (typeof value === "string") checkText(value);
  if (typeof value !== "object" || value === null) return;
  if (depth >= DEPTH_MAX) throw new SyntaxError(`it is nested more than ${DEPTH_MAX} levels deep`);
  if (Array.isArray(value)) {
    for (const element of value) check(element, depth + 1);
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    checkText(key);
    check(member, depth + 1);
  }
}

function checkText(text: string): void {
  if (!text.isWellFormed()) throw new SyntaxError("it holds text with half of a surrogate pair");
}

function revive(key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value === "number") return exact(value, context?.source ?? String(value));
  return key === "__proto__" ? undefined : value;
}

function exact(value: number, source: string): number | ExactNumber {
  if (source.length <= SAFE_LENGTH && !/e/i.test(source)) return value;
  const text = String(value);
  return source === text || (Number.isFinite(value) && canonical(source) === canonical(text))
    ? value
    : new ExactNumber(source);
}

/** One text for all ways to write a number: its digits without zeros at either end, and the exponent that goes with them. */
function canonical(source: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(source) ?? [];
  const digits = whole + fraction;
  let first = 0;
  while (digits[first] === "0") first++;
  if (first === digits.length) return "0";
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  return `${sign}${digits.slice(first, end)}e${Number(exponent) - fraction.length + digits.length - end}`;
}
