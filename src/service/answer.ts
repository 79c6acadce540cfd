// Reads a 2xx answer: it must be JSON, in UTF-8, not compressed, and no number loses a digit. parseAnswer checks its shape. Pure.

import { z } from "zod";
import { ExactNumber } from "../decimal.ts";
import { AppError } from "../errors.ts";
import type { ServiceAnswer, ServiceCall } from "./client-types.ts";
import { callName, type Failure } from "./errors.ts";
import { isHtml, isUncompressed, type Redact, type Reply, type ResponseHeaders, sanitizeLine } from "./reply.ts";

export type Outcome = ServiceAnswer | Failure;

/** Whether the body is read as an answer. Any other body only serves an error message, and only if it is short. */
export function isReadable(status: number, headers: ResponseHeaders): boolean {
  return status >= 200 && status <= 299 && isUncompressed(headers) && isJson(headers);
}

/** A 204 to a DELETE is an answer without a value. */
export function readBody(call: ServiceCall, reply: Reply, redact: Redact): Outcome {
  const { status } = reply;
  if (status === 204 && call.method === "DELETE") return { status, value: undefined };
  try {
    return { status, value: bodyValue(reply, redact) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const message = `${callName(call)}: the service answered ${status} with a body that is no answer: ${error.message}`;
    return { error: new AppError("bad_answer", message, { details: { status } }) };
  }
}

function bodyValue({ status, headers, body }: Reply, redact: Redact): unknown {
  // A 206 has only a part of an answer. If that is valid JSON, it would be taken for the whole.
  if (status === 206) throw new SyntaxError("it is only a part of one");
  if (!isUncompressed(headers)) {
    throw new SyntaxError(`it is compressed (${headerForMessage(headers, "content-encoding", redact)})`);
  }
  if (!isJson(headers)) {
    // The body is not quoted: it may be the answer to a create, and hold the new key. It is undefined if it was cut or too long.
    const kind = isHtml(headers) ? "an HTML page" : body ? `${body.length} bytes` : "cut or too long";
    const type = headerForMessage(headers, "content-type", redact);
    throw new SyntaxError(`its content type is ${type} instead of JSON (${kind})`);
  }
  if (!body?.length) throw new SyntaxError("it is empty");
  return parseExact(decodeUtf8(body));
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Throws if a byte is invalid: with U+FFFD in its place, two groups could become one. The JSON parser refuses a byte order mark. */
function decodeUtf8(body: Uint8Array): string {
  try {
    return UTF8.decode(body);
  } catch {
    throw new SyntaxError("it is not valid UTF-8");
  }
}

function isJson(headers: ResponseHeaders): boolean {
  const mediaType = String(headers["content-type"]).split(";")[0]?.trim() ?? "";
  return /^application\/(?:[\w.+-]+\+)?json$/i.test(mediaType);
}

function headerForMessage(headers: ResponseHeaders, name: string, redact: Redact): string {
  return sanitizeLine(String(headers[name] ?? "not given"), redact) || "not shown";
}

export function isIdentifier(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,128}$/.test(text);
}

/** An id from the service. It becomes part of a request path, so it is checked as soon as it is read. */
export const Id = z.string().refine(isIdentifier, "not an id");

const ISSUES_SHOWN = 3;

/** Throws `bad_answer` with the paths of the wrong values, never the values themselves. */
export function parseAnswer<T extends z.ZodType>(schema: T, answer: ServiceAnswer, what: string): z.output<T> {
  const parsed = schema.safeParse(answer.value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues
    .slice(0, ISSUES_SHOWN)
    .map(({ path, message }) => `${path.join(".") || "the answer"}: ${message}`);
  const message = `${what}: the answer has another shape than expected (${issues.join("; ")})`;
  throw new AppError("bad_answer", message, { details: { status: answer.status } });
}

export function hasStatus(error: unknown, ...statuses: readonly number[]): boolean {
  return error instanceof AppError && statuses.some((status) => error.details.status === status);
}

/** A handler for `catch`: the call returns undefined if the service answered with one of the statuses. */
export function undefinedFor(...statuses: readonly number[]): (error: unknown) => undefined {
  return (error) => {
    if (!hasStatus(error, ...statuses)) throw error;
    return undefined;
  };
}

// JSON: numbers keep all their digits, and text that can't be stored as it was sent is refused.

const DEPTH_MAX = 64;
/** Matches an escaped colon whole, of any other escape the first two characters. `\\u003a` is an escaped backslash, then text without a colon. */
const ESCAPE = /\\(?:u003a|.)/gi;
/** A number of at most 15 digits keeps all of them when it is converted to a double and back, unless its exponent is large. */
const SHORT_NUMBER = /^-?[\d.]{1,15}(?:[eE][+-]?\d{1,2})?$/;
/** A number that a double possibly can't hold. The pattern includes what precedes the number, which makes the search three times as fast. */
const LONG_NUMBER = /(?:^|[:,[])\s*(-?\d[\d.]{15,}(?:[eE][+-]?\d+)?)/g;
/** The end of a value must follow the exponent: otherwise a part of a UUID would match. */
const LARGE_EXPONENT = /[eE][+-]?\d{3,}\s*(?:[,}\]]|$)/;

/**
 * Parses JSON. A number that a double can't hold becomes an ExactNumber. Throws a SyntaxError for invalid JSON, too many levels, two members of one
 * name, a member `__proto__`, and half of a surrogate pair. Postgres would replace such a half, and two groups could become one.
 */
export function parseExact(text: string): unknown {
  const value = parse(text);
  // JSON.parse keeps only one of two members with the same name. The text then has more colons than the value.
  // Only an escape can write half of a surrogate pair, as the text is valid UTF-8. An escape can also write a colon.
  const hasEscapes = text.includes("\\u");
  const unescaped = hasEscapes ? text.replace(ESCAPE, (found) => (found.length > 2 ? ":" : "")) : text;
  if (countColons(unescaped) !== colonsOf(value, 0, hasEscapes)) {
    throw new SyntaxError("it has an object with two members of one name");
  }
  // A reviver makes parsing seven times as long, and few answers need one. A match within a string does no harm.
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
  return countColons(text);
}

function countColons(text: string): number {
  let colons = 0;
  for (let at = text.indexOf(":"); at !== -1; at = text.indexOf(":", at + 1)) colons++;
  return colons;
}
