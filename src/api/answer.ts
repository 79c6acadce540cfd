// Decides whether a 2xx is what it says it is: JSON, in UTF-8, not compressed. Pure. Its shape is checked by who asked.

import { AppError } from "../errors.ts";
import type { CallWords, Failure, Reply } from "./failure.ts";
import { parseExact } from "./json.ts";
import type { Headers } from "./retry-after.ts";
import { type Hide, harmless, isHtml, requestIdOf } from "./words.ts";

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
export function isReadable(status: number, headers: Headers): boolean {
  return status >= 200 && status <= 299 && isIdentity(headers) && isJson(headers);
}

/** `bodiless` is for a call whose answer may be a 204. */
export function readAnswer(call: CallWords, reply: Reply, bodiless: boolean, hide: Hide): Outcome {
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

function bodyValue({ status, headers, body }: Reply, hide: Hide): unknown {
  // Nobody asked for a part, and a part that is valid JSON would pass for the whole.
  if (status === 206) throw new SyntaxError("it is only a part of one");
  if (!isIdentity(headers)) throw new SyntaxError(`it is compressed (${shown(headers, "content-encoding", hide)})`);
  if (!isJson(headers)) {
    // Not quoted: what should have been the answer to a create may hold the new key.
    const kind = isHtml(headers) ? "an HTML page" : `${body?.length ?? "too many"} bytes`;
    throw new SyntaxError(`its content type is ${shown(headers, "content-type", hide)} instead of JSON (${kind})`);
  }
  if (body === undefined || body.length === 0) throw new SyntaxError("it is empty");
  return parseExact(decode(body));
}

/** Strictly: a decoder that puts U+FFFD for what it cannot read makes one group of two. A byte order mark is not JSON. */
function decode(body: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    throw new SyntaxError("it is not valid UTF-8");
  }
}

function isIdentity(headers: Headers): boolean {
  return (headers["content-encoding"] ?? "identity") === "identity";
}

function isJson(headers: Headers): boolean {
  const mediaType = String(headers["content-type"]).split(";")[0]?.trim() ?? "";
  return /^application\/(?:[\w.+-]+\+)?json$/i.test(mediaType);
}

function shown(headers: Headers, name: string, hide: Hide): string {
  return harmless(String(headers[name] ?? "not given"), hide, HEADER_LENGTH_MAX) || "another";
}
