// Reads a 2xx answer: it must be JSON, in UTF-8, not compressed, and no number loses a digit. Then checks it against a schema. Pure.

import { z } from "zod";
import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { ExactNumber } from "../usage/json-value.ts";
import {
  type CallDescription,
  type Failure,
  isHtml,
  isUncompressed,
  type Redact,
  type Reply,
  type ResponseHeaders,
  sanitizeLine,
} from "./errors.ts";
import type { Service, ServiceAnswer, ServiceCall } from "./service.ts";

const HEADER_LENGTH_MAX = 100;

export type Outcome = ServiceAnswer | Failure;

/** Whether the body is read as an answer. Any other body is read only for an error message, and only if it is short. */
export function isReadable(status: number, headers: ResponseHeaders): boolean {
  return status >= 200 && status <= 299 && isUncompressed(headers) && isJson(headers);
}

/** A 204 to a DELETE is an answer without a value. */
export function readAnswer(
  { what }: CallDescription,
  reply: Reply,
  method: ServiceCall["method"],
  redact: Redact,
): Outcome {
  const { status } = reply;
  if (status === 204 && method === "DELETE") return { status, value: undefined };
  try {
    return { status, value: bodyValue(reply, redact) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const message = `${what}: the service answered ${status} with a body that is no answer: ${error.message}`;
    return { kind: "bad_answer", error: new AppError("bad_answer", message, { details: { status } }) };
  }
}

function bodyValue({ status, headers, body }: Reply, redact: Redact): unknown {
  // A 206 holds only a part of an answer. If that part is valid JSON, it would be taken for the whole.
  if (status === 206) throw new SyntaxError("it is only a part of one");
  if (!isUncompressed(headers))
    throw new SyntaxError(`it is compressed (${headerForMessage(headers, "content-encoding", redact)})`);
  if (!isJson(headers)) {
    // The body is not quoted: it may be the answer to a create, and hold the new key.
    const kind = isHtml(headers) ? "an HTML page" : `${body?.length ?? "too many"} bytes`;
    throw new SyntaxError(
      `its content type is ${headerForMessage(headers, "content-type", redact)} instead of JSON (${kind})`,
    );
  }
  if (body === undefined || body.length === 0) throw new SyntaxError("it is empty");
  return parseExact(decodeUtf8(body));
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Throws if a byte is invalid: with U+FFFD in its place, two groups could become one. Keeps a byte order mark, so that the JSON parser
 * refuses it.
 */
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
  return sanitizeLine(String(headers[name] ?? "not given"), redact, HEADER_LENGTH_MAX) || "another";
}

const ID = /^[A-Za-z0-9_-]{1,128}$/;

export function isIdentifier(text: string): boolean {
  return ID.test(text);
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

/** Whether the service answered with one of these statuses. */
export function hasStatus(error: unknown, statuses: readonly number[]): boolean {
  return error instanceof AppError && statuses.some((status) => error.details.status === status);
}

/** Returns undefined if the service answered with one of `statuses`, which this call expects. */
export async function callAllowingStatuses(
  service: Service,
  statuses: readonly number[],
  call: ServiceCall,
  key: Secret,
  signal: AbortSignal,
): Promise<ServiceAnswer | undefined> {
  try {
    return await service.call(call, key, signal);
  } catch (error) {
    if (hasStatus(error, statuses)) return undefined;
    throw error;
  }
}

// Parses JSON: numbers keep their value, and text that could not be stored as it was sent is refused.

const JSON_DEPTH_MAX = 64;
const JSON_TEXT = /"(?:[^"\\]|\\.)*"/g;
/** A number of at most 15 digits keeps all of them when it is converted to a double and back, unless its exponent is large. */
const EXACT_DIGITS_MAX = 15;
const SHORT_NUMBER = /^-?[\d.]{1,15}(?:[eE][+-]?\d{1,2})?$/;
const LARGE_EXPONENT = /[eE][+-]?\d{3,}\s*(?:[,}\]]|$)/;
const EXPONENT = /[eE][+-]?\d+/y;

/**
 * Numbers that a double cannot hold come back as ExactNumber, all others as numbers. Throws a SyntaxError if the text is not JSON, is
 * nested too deeply, or has a name or a text with half of a surrogate pair: Postgres would store a replacement character, and two
 * groups of usage could become one.
 *
 * Throws as well if an object has two members of one name: JSON.parse keeps only the last, and nobody knows which is right.
 */
export function parseExact(text: string): unknown {
  const value = parseJson(text);
  // The text is valid UTF-8, so that only an escape can write half of a surrogate pair.
  const hasEscapes = text.includes("\\u");
  const found = { hasEscapes, members: 0, colons: 0 };
  checkValue(value, 0, found);
  // Each member has a colon, and nearly all others are in texts. With a colon in a name, or an escape, the texts are taken out.
  const isCounted = !hasEscapes && colonsIn(text) === found.members + found.colons;
  if (!isCounted && colonsIn(text.replaceAll(JSON_TEXT, "")) !== found.members)
    throw new SyntaxError("it has an object with two members of one name");
  // A reviver makes parsing seven times as long, and nearly every answer does without.
  return mayHaveInexactNumber(text) ? JSON.parse(text, reviveNumber) : value;
}

/** What looks like such a number within a text counts, too, and only costs time. */
function mayHaveInexactNumber(text: string): boolean {
  if (LARGE_EXPONENT.test(text)) return true;
  // Only every 16th character is looked at: 16 digits in a row have one of them. A search by a regular expression takes half as long as parsing.
  for (let at = EXACT_DIGITS_MAX; at < text.length; at += EXACT_DIGITS_MAX + 1) {
    if (!isDigitOrPoint(text.charCodeAt(at))) continue;
    let start = at;
    while (isDigitOrPoint(text.charCodeAt(start - 1))) start--;
    while (isDigitOrPoint(text.charCodeAt(at))) at++;
    if (at - start <= EXACT_DIGITS_MAX) continue;
    EXPONENT.lastIndex = at;
    if (!isExact(text.slice(start, at) + (EXPONENT.exec(text)?.[0] ?? ""))) return true;
  }
  return false;
}

function isDigitOrPoint(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || code === 0x2e;
}

/** Whether the number is the same as a double. */
function isExact(source: string): boolean {
  return String(Number(source)) === source || SHORT_NUMBER.test(source);
}

function reviveNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number" || context?.source === undefined) return value;
  return isExact(context.source) ? value : new ExactNumber(context.source);
}

/** The error of JSON.parse quotes the text, which may hold a secret. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError("it is not valid JSON");
  }
}

type Found = { readonly hasEscapes: boolean; members: number; colons: number };

/** Counts the members of all objects, and the colons in all values that are texts. */
function checkValue(value: unknown, depth: number, found: Found): void {
  if (typeof value === "string") {
    if (found.hasEscapes) checkText(value);
    found.colons += colonsIn(value);
    return;
  }
  if (typeof value !== "object" || value === null) return;
  if (depth >= JSON_DEPTH_MAX) throw new SyntaxError(`it is nested more than ${JSON_DEPTH_MAX} levels deep`);
  if (Array.isArray(value)) {
    for (const element of value) checkValue(element, depth + 1, found);
    return;
  }
  // An object from JSON.parse inherits no enumerable member.
  for (const key in value) {
    if (found.hasEscapes) checkText(key);
    if (key === "__proto__") throw new SyntaxError("it has a member named __proto__");
    found.members++;
    const member: unknown = value[key as keyof typeof value];
    if (typeof member !== "number") checkValue(member, depth + 1, found);
  }
}

function colonsIn(text: string): number {
  let colons = 0;
  for (let at = text.indexOf(":"); at !== -1; at = text.indexOf(":", at + 1)) colons++;
  return colons;
}

function checkText(text: string): void {
  if (!text.isWellFormed()) throw new SyntaxError("it holds text with half of a surrogate pair");
}
