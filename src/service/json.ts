// Parses the JSON of an answer: numbers keep all their digits, and text that can't be stored as it was sent is refused. Pure.

import { ExactNumber } from "../decimal.ts";

const DEPTH_MAX = 64;
/** The escape of a colon, or the beginning of any other escape. */
const ESCAPE = /\\(u003a|.)/gi;
/** A number of at most 15 digits keeps all of them when it is converted to a double and back, unless its exponent is large. */
const SHORT_NUMBER = /^-?[\d.]{1,15}(?:[eE][+-]?\d{1,2})?$/;
/** The part of the pattern before the number makes the search three times as fast. */
const LONG_NUMBER = /(?:^|[:,[])\s*(-?\d[\d.]{15,}(?:[eE][+-]?\d+)?)/g;
/** The end of a value must follow the exponent: otherwise a part of a UUID would match. */
const LARGE_EXPONENT = /[eE][+-]?\d{3,}\s*(?:[,}\]]|$)/;

/**
 * Numbers that a double can't hold come back as ExactNumber. Throws a SyntaxError if the text is not JSON, is nested too deeply, has half of
 * a surrogate pair (Postgres would replace it, and two groups could become one), or has an object with two members of one name.
 */
export function parseExact(text: string): unknown {
  const value = parse(text);
  // JSON.parse keeps one of two members of one name, so the text then has more colons than the value.
  // The text is valid UTF-8, so only an escape can write half of a surrogate pair. An escape can write a colon, too.
  const hasEscapes = text.includes("\\u");
  const unescaped = hasEscapes ? text.replace(ESCAPE, (_, code: string) => (code.length > 1 ? ":" : "")) : text;
  if (colonsIn(unescaped) !== colonsOf(value, 0, hasEscapes)) {
    throw new SyntaxError("it has an object with two members of one name");
  }
  // A reviver makes parsing seven times as long, and nearly every answer does without. A string that contains such
  // a number causes a slow parse and no mistake.
  const isExactText =
    !LARGE_EXPONENT.test(text) && text.matchAll(LONG_NUMBER).every(([, number = ""]) => isExact(number));
  return isExactText ? value : JSON.parse(text, reviveNumber);
}

/** The error of JSON.parse quotes the text, which may hold a secret. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError("it is not valid JSON");
  }
}

/** Whether a double holds the number. */
function isExact(source: string): boolean {
  return String(Number(source)) === source || SHORT_NUMBER.test(source);
}

function reviveNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number" || context?.source === undefined) return value;
  return isExact(context.source) ? value : new ExactNumber(context.source);
}

/** Counts the colons of the value's JSON: one for each member, and those in texts. Throws a SyntaxError for what can't be stored as it was sent. */
function colonsOf(value: unknown, depth: number, hasEscapes: boolean): number {
  if (typeof value === "string") return colonsOfText(value, hasEscapes);
  if (typeof value !== "object" || value === null) return 0;
  if (depth >= DEPTH_MAX) throw new SyntaxError(`it is nested more than ${DEPTH_MAX} levels deep`);
  let colons = 0;
  if (Array.isArray(value)) {
    for (const element of value) colons += colonsOf(element, depth + 1, hasEscapes);
    return colons;
  }
  // An object from JSON.parse inherits no enumerable member.
  for (const key in value) {
    if (key === "__proto__") throw new SyntaxError("it has a member named __proto__");
    colons += 1 + colonsOfText(key, hasEscapes) + colonsOf(value[key as keyof typeof value], depth + 1, hasEscapes);
  }
  return colons;
}

function colonsOfText(text: string, hasEscapes: boolean): number {
  if (hasEscapes && !text.isWellFormed()) throw new SyntaxError("it holds text with half of a surrogate pair");
  return colonsIn(text);
}

function colonsIn(text: string): number {
  let colons = 0;
  for (let at = text.indexOf(":"); at !== -1; at = text.indexOf(":", at + 1)) colons++;
  return colons;
}
