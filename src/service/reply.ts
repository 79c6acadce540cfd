// An HTTP answer of the service: its headers, and the text of an error body for a log line or an error message. Pure.

import { isFreeOfSecret, Scrubber, type Secret } from "../secret.ts";
import { toPrintableLine, truncate } from "../text.ts";

/** The body is undefined if it was cut, or too long to be read. */
export type Reply = {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Uint8Array | undefined;
};

/** Header names in lower case; a header that came twice is a list. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

export function isUncompressed(headers: ResponseHeaders): boolean {
  return (headers["content-encoding"] ?? "identity") === "identity";
}

export function isHtml(headers: ResponseHeaders): boolean {
  return /\bhtml\b/i.test(String(headers["content-type"]));
}

export function httpDateMs(date: ResponseHeaders[string]): number | undefined {
  const text = String(date);
  // Date.parse alone accepts "1" as a date.
  return /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text) ? Date.parse(text) : undefined;
}

export type Redact = (text: string) => string;

/** Replaces the key of a call, which the service may repeat in any encoding, and everything that `scrub` replaces. */
export function redactorFor(key: Secret, scrub: Redact): Redact {
  return (text) => {
    const scrubber = new Scrubber();
    scrubber.add(key);
    const hidden = scrub(scrubber.scrub(text));
    return isFreeOfSecret(hidden, key.reveal()) ? hidden : "(not shown, as it may hold the key)";
  };
}

/** For an answer that may hold a secret that the scrubber does not know yet. */
export const REDACT_ALL: Redact = () => "";

const LINE_LENGTH_MAX = 100;
const SEARCHED_TEXT_LENGTH_MAX = 2_000;

/** One line without control or direction characters, without secrets, cut after `lengthMax` characters. */
export function sanitizeLine(text: string, redact: Redact, lengthMax = LINE_LENGTH_MAX): string {
  // Redaction is slow, so the text is cut before, and to its final length only after: half a key might not be recognised. "…" is not counted.
  return truncate(redact(toPrintableLine(text.slice(0, SEARCHED_TEXT_LENGTH_MAX))), lengthMax + 1);
}

const ERROR_TEXT_LENGTH_MAX = 300;

/** `scope` is the missing scope if the text quotes one, such as `Check that your account has the 'keys:write' scope`. */
export function readErrorBody({ headers, body }: Reply, redact: Redact) {
  const read = textOfBody(headers, body);
  const shown = sanitizeLine(read.text, redact, ERROR_TEXT_LENGTH_MAX);
  const text = shown || "(its words are not shown, as they may hold a new key)";
  const requestId = sanitizeLine(String(headers["dg-request-id"] ?? read.requestId ?? ""), redact) || undefined;
  return { text, requestId, scope: /'([\w-]+(?::[\w-]+)+)'/.exec(text)?.[1] };
}

/** A body that was cut or too long is not quoted: it could end with half a key, which no search recognises. */
function textOfBody(headers: ResponseHeaders, body: Reply["body"]): { text: string; requestId?: string | undefined } {
  if (body === undefined) return { text: "(a body that was cut or too long)" };
  if (!isUncompressed(headers)) return { text: "(a compressed body)" };
  if (body.length === 0) return { text: "(no body)" };
  const text = new TextDecoder().decode(body);
  if (isHtml(headers) || /^\s*<(?:!doctype|html|head|body|\?xml)/i.test(text)) return { text: "(an HTML page)" };
  if (!/^\s*[{[]/.test(text)) return { text };

  const fields = jsonFields(text);
  const textIn = (...names: readonly string[]) =>
    names.map((name) => fields[name]).find((value): value is string => typeof value === "string" && value !== "");
  const sentence = [textIn("message", "err_msg", "error"), textIn("details")].filter(Boolean).join(" ");
  const message = [textIn("err_code", "error_code", "category"), sentence].filter(Boolean).join(": ");
  // JSON of another shape is not quoted: it may hold a secret.
  return { text: message || "(a body without a message)", requestId: textIn("request_id") };
}

function jsonFields(text: string): Readonly<Record<string, unknown>> {
  try {
    return { ...JSON.parse(text) };
  } catch {
    return {};
  }
}
