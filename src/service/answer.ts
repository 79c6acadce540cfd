// Reads a 2xx answer: it must be JSON, in UTF-8, not compressed, and no number loses a digit. Pure. The caller checks its schema.

import { AppError } from "../errors.ts";
import { ExactNumber } from "../usage/json-value.ts";
import {
  type CallDescription,
  type Failure,
  isHtml,
  type Redact,
  type Reply,
  requestIdOf,
  sanitizeLine,
} from "./errors.ts";
import type { ResponseHeaders } from "./retry.ts";

export type ServiceAnswer = {
  readonly status: number;
  /** The parsed body; undefined where an answer without a body is right. */
  readonly value: unknown;
  readonly requestId?: string | undefined;
};

const HEADER_LENGTH_MAX = 100;

export type Outcome =
  | { readonly ok: true; readonly answer: ServiceAnswer }
  | { readonly ok: false; readonly failure: Failure };

/** Whether a whole body is worth reading; of anything else only the first words are. */
export function isReadable(status: number, headers: ResponseHeaders): boolean {
  return status >= 200 && status <= 299 && isUncompressed(headers) && isJson(headers);
}

/** `bodiless` is for a call whose answer may be a 204. */
export function readAnswer(call: CallDescription, reply: Reply, bodiless: boolean, hide: Redact): Outcome {
  const requestId = requestIdOf(reply.headers, hide);
  if (bodiless && reply.status === 204) return { ok: true, answer: { status: 204, value: undefined, requestId } };
  try {
    return { ok: true, answer: { status: reply.status, value: bodyValue(reply, hide), requestId } };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const details = { status: reply.status, ...(requestId !== undefined && { requestId }) };
    const message = `${call.what}: the service answered ${reply.status} with a body that is no answer: ${error.message}`;
    return { ok: false, failure: { kind: "bad_answer", error: new AppError("bad_answer", message, { details }) } };
  }
}

function bodyValue({ status, headers, body }: Reply, hide: Redact): unknown {
  // Nobody asked for a part, and a part that is valid JSON would pass for the whole.
  if (status === 206) throw new SyntaxError("it is only a part of one");
  if (!isUncompressed(headers))
    throw new SyntaxError(`it is compressed (${headerForMessage(headers, "content-encoding", hide)})`);
  if (!isJson(headers)) {
    // Not quoted: what should have been the answer to a create may hold the new key.
    const kind = isHtml(headers) ? "an HTML page" : `${body?.length ?? "too many"} bytes`;
    throw new SyntaxError(
      `its content type is ${headerForMessage(headers, "content-type", hide)} instead of JSON (${kind})`,
    );
  }
  if (body === undefined || body.length === 0) throw new SyntaxError("it is empty");
  return parseExact(decodeUtf8(body));
}

/** Strictly: a decoder that puts U+FFFD for what it cannot read makes one group of two. A byte order mark is not JSON. */
function decodeUtf8(body: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    throw new SyntaxError("it is not valid UTF-8");
  }
}

function isUncompressed(headers: ResponseHeaders): boolean {
  return (headers["content-encoding"] ?? "identity") === "identity";
}

function isJson(headers: ResponseHeaders): boolean {
  const mediaType = String(headers["content-type"]).split(";")[0]?.trim() ?? "";
  return /^application\/(?:[\w.+-]+\+)?json$/i.test(mediaType);
}

function headerForMessage(headers: ResponseHeaders, name: string, hide: Redact): string {
  return sanitizeLine(String(headers[name] ?? "not given"), hide, HEADER_LENGTH_MAX) || "another";
}

// Reads JSON without losing anything: numbers keep their value, and text that could not be stored as sent is refused.

const JSON_DEPTH_MAX = 64;
/** Twenty for each of a hundred thousand rows. A value can be two bytes long, and take more than a hundred of memory. */
const JSON_VALUES_MAX = 2_000_000;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;
/** Every number of at most 15 digits comes back from a double as it was. */
const EXACT_DIGITS_MAX = 15;
/**
 * What may be a longer number, or one with an exponent, after what stands before a value. Some of it stands in text, which
 * costs time and nothing else.
 */
const POSSIBLY_INEXACT_NUMBER = /(?:^|[:[,])\s*-?(\d(?:[\d.]{15,}(?:[eE][+-]?\d+)?|[\d.]*[eE][+-]?\d+))/g;

/**
 * Numbers that a double cannot hold come back as ExactNumber, all others as numbers. Throws a SyntaxError on what is not
 * JSON, is nested too deeply, has too many values, or has a name or a text that could not be kept: half of a surrogate pair becomes a
 * replacement character when it is stored, and two groups of usage one.
 *
 * Of a name that stands twice in one object only the last value is seen: JSON.parse does not tell.
 */
export function parseExact(text: string): unknown {
  requireFewValues(text);
  const value = parseJson(text);
  checkValue(value, 0);
  // A reviver makes parsing seven times as long, and nearly every answer does without.
  const isInexact = text
    .matchAll(POSSIBLY_INEXACT_NUMBER)
    .some(([, source = ""]) => numberFrom(Number(source), source) instanceof ExactNumber);
  return isInexact ? JSON.parse(text, reviveNumber) : value;
}

/** Counted before parsing, by what stands before every value but the first. What looks like it inside a text counts as well. */
function requireFewValues(text: string): void {
  if (text.length <= JSON_VALUES_MAX) return;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code === BRACKET || code === BRACE) values++;
  }
  if (values > JSON_VALUES_MAX) throw new SyntaxError(`it has more than ${JSON_VALUES_MAX} values`);
}

/** The error of JSON.parse quotes the text, which is not ours to repeat. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError("it is not valid JSON");
  }
}

function checkValue(value: unknown, depth: number): void {
  if (typeof value === "string") checkText(value);
  if (typeof value !== "object" || value === null) return;
  if (depth >= JSON_DEPTH_MAX) throw new SyntaxError(`it is nested more than ${JSON_DEPTH_MAX} levels deep`);
  if (Array.isArray(value)) {
    for (const element of value) checkValue(element, depth + 1);
    return;
  }
  // Parsed from JSON: all it has is its own.
  for (const key in value) {
    checkText(key);
    if (key === "__proto__") throw new SyntaxError("it has a member named __proto__");
    checkValue(value[key as keyof typeof value], depth + 1);
  }
}

function checkText(text: string): void {
  if (!text.isWellFormed()) throw new SyntaxError("it holds text with half of a surrogate pair");
}

function reviveNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" ? numberFrom(value, context?.source ?? String(value)) : value;
}

function numberFrom(value: number, source: string): number | ExactNumber {
  if (source.length <= EXACT_DIGITS_MAX && !/e/i.test(source)) return value;
  const text = String(value);
  return source === text || (Number.isFinite(value) && canonicalNumber(source) === canonicalNumber(text))
    ? value
    : new ExactNumber(source);
}

/** One text for all ways to write a number: its digits without zeros at either end, and the exponent that goes with them. */
function canonicalNumber(source: string): string {
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
