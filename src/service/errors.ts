// What went wrong with a call to the service: the error for a person, and whether another attempt makes sense. Pure.

import { AppError, type ErrorCode, systemCode } from "../errors.ts";
import { tunnelError } from "../proxy.ts";
import { isFreeOfSecret, Scrubber, type Secret } from "../secret.ts";
import { toPrintableLine } from "../text.ts";
import { DAY_MS, HOUR_MS } from "../usage/days.ts";

/**
 * - `transient`: no answer, or one that says "later"
 * - `bad_answer`: a success that can't be read; it may come from a gateway before the service
 * - `final`: another attempt would fail the same way
 */
export type FailureKind = "transient" | "bad_answer" | "final";

export type Failure = {
  readonly kind: FailureKind;
  readonly error: AppError;
  /** The pause that the service asked for, an hour at most. */
  readonly requestedWaitMs?: number | undefined;
};

/** An HTTP answer. The body is undefined if it was cut, or too long to be read. */
export type Reply = {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Uint8Array | undefined;
};

/** What a message says about the call that failed: `what` is such as "GET /v1/projects/p1/keys". */
type FailedCall = { readonly what: string; readonly scopes?: readonly string[] | undefined };

/** The failure of an answer whose status is not 2xx. `nowMs` is the time of day, for an answer without a Date header. */
export function statusFailure(call: FailedCall, reply: Reply, redact: Redact, nowMs: number): Failure {
  const { status, headers } = reply;
  const { text, requestId, scope } = readErrorBody(reply, redact);
  // A relative address has no host.
  const redirectedTo = sanitizeLine(URL.parse(String(headers.location))?.host ?? "", redact, HOST_LENGTH_MAX);
  const reason =
    status < 400
      ? `, a redirect to ${redirectedTo || "another path"}, which is never followed; check service.baseUrl`
      : explanation(call, status, text, scope);
  const request = requestId === undefined ? "" : ` (request id ${requestId})`;
  const message = `${call.what}: the service answered ${status}${reason}${request}`;
  const error = new AppError(errorCodeOf(status), message, { details: { status, ...(scope && { scope }) } });
  if (!isTransient(status)) return { kind: "final", error };
  return { kind: "transient", error, requestedWaitMs: requestedWaitMs(headers, nowMs) };
}

/** Whether the service refused the key itself. A 401 that names a scope is about that scope: 401 and 403 are not used consistently. */
export function isKeyRejected(error: AppError): boolean {
  return error.details.status === 401 && error.details.scope === undefined;
}

/** The error for a wait that is longer than `waitMsMax`. Waiting for a shorter time instead would break what the service asked for. */
export function waitTooLong(
  who: string,
  requestedMs: number,
  waitMsMax: number,
  details: AppError["details"],
): AppError {
  const message = `${who} asks to be called again in ${Math.ceil(requestedMs / 1000)} s, and this program waits at most ${waitMsMax / 1000} s`;
  return new AppError("rate_limited", message, { details });
}

function errorCodeOf(status: number): ErrorCode {
  if (status === 401 || status === 403) return "unauthorized";
  if (status === 429) return "rate_limited";
  return isTransient(status) ? "unavailable" : "rejected";
}

function explanation({ scopes: needed = [] }: FailedCall, status: number, text: string, scope?: string): string {
  if (status === 401 && scope === undefined) {
    return `, it does not accept the key: ${text}; check the key and service.authScheme`;
  }
  if (status === 401 || status === 403) {
    const scopes = scope ?? needed.join(" or ");
    const missing = scopes === "" ? "access to this project" : `the scope ${scopes}, and access to this project`;
    return `, the key may not do this: ${text}; the key needs ${missing}`;
  }
  return `: ${text}${status === 404 ? "; check the project id, and that the key belongs to that project" : ""}`;
}

/** Gateways answer 499 when they think that the client went away: the service did not answer. */
function isTransient(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status === 499 || status >= 500;
}

/** Header names in lower case; a header that came twice is a list. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** No pause is longer: a service that needs more time asks again in its next answer. */
const WAIT_MS_MAX = HOUR_MS;
/** A longer wait is a mistake of the service, such as a date of the wrong century or milliseconds for seconds. */
const PLAUSIBLE_WAIT_MS_MAX = DAY_MS;

/** The longest plausible one of several waits counts. A date is compared with the answer's Date header: the local clock may be wrong. */
export function requestedWaitMs(headers: ResponseHeaders, nowMs: number): number | undefined {
  const serviceNowMs = httpDateMs(headers.date) ?? nowMs;
  const waits = [headers["retry-after"] ?? []].flat().map((value) => {
    const untilMs = httpDateMs(value.trim()) ?? Number.NaN;
    return /^\d{1,12}$/.test(value.trim()) ? Number(value) * 1000 : untilMs - serviceNowMs;
  });
  const plausible = waits.filter((ms) => ms <= PLAUSIBLE_WAIT_MS_MAX);
  return plausible.length > 0 ? Math.min(Math.max(0, ...plausible), WAIT_MS_MAX) : undefined;
}

/** Date.parse alone accepts "1" as a date. */
export function httpDateMs(date: ResponseHeaders[string]): number | undefined {
  return HTTP_DATE.test(String(date)) ? Date.parse(String(date)) : undefined;
}

// Classifies the failures of a connection: which are worth another attempt, and which happened before anything was sent.

/** The codes of errors of the service's certificate. They are final: another attempt would fail too. */
const CERTIFICATE_CODE =
  /^(?:CERT_|ERR_TLS_CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_(?:CA|PURPOSE)|HOSTNAME_MISMATCH|PATH_LENGTH_)/;

/** An AppError, such as that of the time limit, keeps its code and message. */
export function connectionFailure(what: string, thrown: unknown): Failure {
  const error = tunnelError(thrown) ?? thrown;
  if (error instanceof AppError) {
    const { code, message, details } = error;
    const kind = code === "unavailable" ? "transient" : "final";
    return { kind, error: new AppError(code, `${what}: ${message}`, { details }) };
  }
  const code = systemCode(error) || (error instanceof Error ? error.name : "unknown");
  if (CERTIFICATE_CODE.test(code)) {
    const message = `${what}: the certificate of the service is not trusted (${code}); check service.baseUrl, and if your proxy intercepts TLS, add its certificate authority with NODE_EXTRA_CA_CERTS`;
    return { kind: "final", error: new AppError("rejected", message, { cause: error, details: { sent: "no" } }) };
  }
  const details = isBeforeSending(error) ? { sent: "no" } : {};
  const message = `${what}: no answer, the connection failed (${code})`;
  return { kind: "transient", error: new AppError("unavailable", message, { cause: error, details }) };
}

/** True only if it is certain that nothing was sent: the connection was never made. A lost connection may have carried the request. */
function isBeforeSending(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isBeforeSending);
  if (!(error instanceof Error) || !("syscall" in error)) return systemCode(error) === "UND_ERR_CONNECT_TIMEOUT";
  return error.syscall === "connect" || error.syscall === "getaddrinfo";
}

// Reads the body of an error answer, as text for a log line or an error message. Pure.

/** Replaces secrets in a text. */
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

/** Hides a whole answer: anywhere in it there may be a secret that the scrubber does not know yet. */
export const REDACT_ALL: Redact = () => "";

const HOST_LENGTH_MAX = 100;
const TEXT_LENGTH_MAX = 300;
const SEARCHED_TEXT_LENGTH_MAX = 2_000;
const REQUEST_ID_LENGTH_MAX = 100;

/** `scope` is the missing one, where the service quotes one: `Check that your account has the 'keys:write' scope`. */
export function readErrorBody({ headers, body }: Reply, redact: Redact) {
  const read = textOfBody(headers, body);
  const hidden = "(its words are not shown, as they may hold a new key)";
  const text = sanitizeLine(read.text, redact, TEXT_LENGTH_MAX) || hidden;
  const id = String(headers["dg-request-id"] ?? read.requestId ?? "");
  const requestId = sanitizeLine(id, redact, REQUEST_ID_LENGTH_MAX) || undefined;
  return { text, requestId, scope: /'([\w-]+(?::[\w-]+)+)'/.exec(text)?.[1] };
}

/** One line without control or direction characters, without secrets, and not longer than `lengthMax`. */
export function sanitizeLine(text: string, redact: Redact, lengthMax: number): string {
  // Redaction is slow on a long text, so the text is shortened first; but it is cut to its final length only after redaction, because
  // half a key might not be recognised.
  const characters = [...redact(toPrintableLine(text.slice(0, SEARCHED_TEXT_LENGTH_MAX)))];
  return characters.length <= lengthMax ? characters.join("") : `${characters.slice(0, lengthMax).join("")}…`;
}

/** A body that was cut or too long is not quoted: it could end with half a key, which no search recognises. */
function textOfBody(headers: ResponseHeaders, body?: Uint8Array): { text: string; requestId?: string | undefined } {
  if (body === undefined) return { text: "(a body that was cut or too long)" };
  if (!isUncompressed(headers)) return { text: "(a compressed body)" };
  if (body.length === 0) return { text: "(no body)" };
  const text = new TextDecoder().decode(body);
  if (isHtml(headers) || /^\s*<(?:!doctype|html|head|body|\?xml)/i.test(text)) return { text: "(an HTML page)" };
  if (!/^\s*[{[]/.test(text)) return { text };

  const fields = membersOf(text);
  const textIn = (...names: readonly string[]) =>
    names.map((name) => fields[name]).find((value): value is string => typeof value === "string" && value !== "");
  const code = textIn("err_code", "error_code", "category");
  const sentence = [textIn("message", "err_msg", "error"), textIn("details")].filter(Boolean).join(" ");
  const message = [code, sentence].filter(Boolean).join(": ");
  // JSON of another shape is not quoted: it may hold a secret.
  return { text: message || "(a body without a message)", requestId: textIn("request_id") };
}

function membersOf(text: string): Readonly<Record<string, unknown>> {
  try {
    return { ...JSON.parse(text) };
  } catch {
    return {};
  }
}

export function isUncompressed(headers: ResponseHeaders): boolean {
  return (headers["content-encoding"] ?? "identity") === "identity";
}

export function isHtml(headers: ResponseHeaders): boolean {
  return /\bhtml\b/i.test(String(headers["content-type"]));
}
