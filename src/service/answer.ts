// Reads a 2xx answer: it must be JSON, in UTF-8, not compressed, and no number loses a digit. Then checks it against a schema. Pure.

import { z } from "zod";
import { AppError } from "../errors.ts";
import { callName, type Failure } from "./errors.ts";
import { parseExact } from "./json.ts";
import { isHtml, isUncompressed, type Redact, type Reply, type ResponseHeaders, sanitizeLine } from "./reply.ts";
import type { ServiceAnswer, ServiceCall } from "./service.ts";

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
  // A 206 has a part of an answer, which would be taken for the whole if it is valid JSON.
  if (status === 206) throw new SyntaxError("it is only a part of one");
  if (!isUncompressed(headers)) {
    throw new SyntaxError(`it is compressed (${headerForMessage(headers, "content-encoding", redact)})`);
  }
  if (!isJson(headers)) {
    // The body is not quoted: it may be the answer to a create, and hold the new key.
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

/** For `catch`: the value of a call is undefined if the service answers with one of the statuses. */
export function undefinedFor(...statuses: readonly number[]): (error: unknown) => undefined {
  return (error) => {
    if (!hasStatus(error, ...statuses)) throw error;
    return undefined;
  };
}
