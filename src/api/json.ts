// Reads JSON without losing anything: numbers keep their value, and text that could not be stored as sent is refused.

import { ExactNumber } from "../usage/exact-number.ts";

const DEPTH_MAX = 64;
/** Twenty for each of a hundred thousand rows. A value can be two bytes long, and take more than a hundred of memory. */
const VALUES_MAX = 2_000_000;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;
/** Every number of at most 15 digits comes back from a double as it was. */
const SAFE_LENGTH = 15;
/**
 * What may be a longer number, or one with an exponent, after what stands before a value. Some of it stands in text, which
 * costs time and nothing else.
 */
const DOUBTFUL = /(?:^|[:[,])\s*-?(\d(?:[\d.]{15,}(?:[eE][+-]?\d+)?|[\d.]*[eE][+-]?\d+))/g;

/**
 * Numbers that a double cannot hold come back as ExactNumber, all others as numbers. Throws a SyntaxError on what is not
 * JSON, is nested too deeply, has too many values, or has a name or a text that could not be kept: half of a surrogate pair becomes a
 * replacement character when it is stored, and two groups of usage one.
 *
 * Of a name that stands twice in one object only the last value is seen: JSON.parse does not tell.
 */
export function parseExact(text: string): unknown {
  requireFewValues(text);
  const value = parse(text);
  check(value, 0);
  // A reviver makes parsing seven times as long, and nearly every answer does without.
  const isInexact = text
    .matchAll(DOUBTFUL)
    .some(([, source = ""]) => exact(Number(source), source) instanceof ExactNumber);
  return isInexact ? JSON.parse(text, revive) : value;
}

/** Counted before parsing, by what stands before every value but the first. What looks like it inside a text counts as well. */
function requireFewValues(text: string): void {
  if (text.length <= VALUES_MAX) return;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code === BRACKET || code === BRACE) values++;
  }
  if (values > VALUES_MAX) throw new SyntaxError(`it has more than ${VALUES_MAX} values`);
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
  // Parsed from JSON: all it has is its own.
  for (const key in value) {
    checkText(key);
    if (key === "__proto__") throw new SyntaxError("it has a member named __proto__");
    check(value[key as keyof typeof value], depth + 1);
  }
}

function checkText(text: string): void {
  if (!text.isWellFormed()) throw new SyntaxError("it holds text with half of a surrogate pair");
}

function revive(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" ? exact(value, context?.source ?? String(value)) : value;
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
