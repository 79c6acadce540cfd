// What went wrong with a call to the service: the error for a person, and whether another attempt makes sense. Pure.

import { AppError, type ErrorCode, systemCode } from "../errors.ts";
import { tunnelError } from "../proxy.ts";
import { DAY_MS, HOUR_MS } from "../usage/days.ts";
import { httpDateMs, type Redact, type Reply, type ResponseHeaders, readErrorBody, sanitizeLine } from "./reply.ts";

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

/** `what` is such as "GET /v1/projects/p1/keys". The key needs one of `scopes`. */
type FailedCall = { readonly what: string; readonly scopes?: readonly string[] | undefined };

/** The failure of an answer whose status is not 2xx. `nowMs` is the time of day, for an answer without a Date header. */
export function statusFailure(call: FailedCall, reply: Reply, redact: Redact, nowMs: number): Failure {
  const { status, headers } = reply;
  const { text, requestId, scope } = readErrorBody(reply, redact);
  // A relative address has no host.
  const redirectedTo = sanitizeLine(URL.parse(String(headers.location))?.host ?? "", redact);
  const reason =
    status < 400
      ? `, a redirect to ${redirectedTo || "another path"}, which is never followed; check service.baseUrl`
      : explanation(call, status, text, scope);
  const request = requestId === undefined ? "" : ` (request id ${requestId})`;
  const message = `${call.what}: the service answered ${status}${reason}${request}`;
  const code = errorCodeOf(status);
  const error = new AppError(code, message, { details: { status, ...(scope && { scope }) } });
  if (code === "unauthorized" || code === "rejected") return { kind: "final", error };
  return { kind: "transient", error, requestedWaitMs: requestedWaitMs(headers, nowMs) };
}

/** Whether the service refused the key itself. A 401 that names a scope is about that scope: 401 and 403 are not used consistently. */
export function isKeyRejected(error: AppError): boolean {
  return error.details.status === 401 && error.details.scope === undefined;
}

/** The error for a wait that is longer than `waitMsMax`. Waiting for a shorter time instead would break what the service asked for. */
export function waitTooLong(who: string, ms: number, waitMsMax: number, details: AppError["details"]): AppError {
  const message = `${who} asks to be called again in ${Math.ceil(ms / 1000)} s, and this program waits at most ${waitMsMax / 1000} s`;
  return new AppError("rate_limited", message, { details });
}

function errorCodeOf(status: number): ErrorCode {
  if (status === 401 || status === 403) return "unauthorized";
  if (status === 429) return "rate_limited";
  // Gateways answer 499 when they think that the client went away: the service did not answer.
  return status >= 500 || [408, 425, 499].includes(status) ? "unavailable" : "rejected";
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

/** No pause is longer: a service that needs more time asks again in its next answer. */
const WAIT_MS_MAX = HOUR_MS;
/** A longer wait is a mistake of the service, such as a date of the wrong century or milliseconds for seconds. */
const PLAUSIBLE_WAIT_MS_MAX = DAY_MS;

/** A date is compared with the answer's Date header, because the local clock may be wrong. */
export function requestedWaitMs(headers: ResponseHeaders, nowMs: number): number | undefined {
  const wait = String([headers["retry-after"]].flat()[0]).trim();
  const untilMs = httpDateMs(wait) ?? Number.NaN;
  const ms = /^\d+$/.test(wait) ? Number(wait) * 1000 : untilMs - (httpDateMs(headers.date) ?? nowMs);
  return ms <= PLAUSIBLE_WAIT_MS_MAX ? Math.min(Math.max(0, ms), WAIT_MS_MAX) : undefined;
}

// Failures of the connection.

const CERTIFICATE_CODE =
  /^(?:CERT_|ERR_TLS_CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_(?:CA|PURPOSE)|HOSTNAME_MISMATCH|PATH_LENGTH_)/;

/** An AppError, such as the one for the time limit, keeps its code and message. */
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

/** Whether the connection was certainly never made. A lost connection may have carried the request. */
function isBeforeSending(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isBeforeSending);
  if (!(error instanceof Error) || !("syscall" in error)) return systemCode(error) === "UND_ERR_CONNECT_TIMEOUT";
  return error.syscall === "connect" || error.syscall === "getaddrinfo";
}
