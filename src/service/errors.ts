// What went wrong with a call to the service: the error for a person, and the pause that the service asked for. Pure.

import { AppError, type ErrorCode, systemCode } from "../errors.ts";
import { tunnelError } from "../proxy.ts";
import { DAY_MS, HOUR_MS } from "../usage/days.ts";
import type { ServiceCall } from "./client-types.ts";
import { httpDateMs, type Redact, type Reply, type ResponseHeaders, readErrorBody, sanitizeLine } from "./reply.ts";

export type Failure = {
  readonly error: AppError;
  /** The pause that the service asked for, an hour at most. Left out for a refusal: the call is not repeated. */
  readonly requestedWaitMs?: number | undefined;
};

/** The name of a call in messages: "GET /v1/projects/p1/keys". */
export function callName({ method, path }: ServiceCall): string {
  return `${method} /${path.join("/")}`;
}

/** The failure of an answer whose status is not 2xx. `nowMs` is the Unix time, used if the answer has no Date header. */
export function statusFailure(call: ServiceCall, reply: Reply, redact: Redact, nowMs: number): Failure {
  const { status, headers } = reply;
  const { text, requestId, scope } = readErrorBody(reply, redact);
  // A relative address has no host.
  const redirectedTo = sanitizeLine(URL.parse(String(headers.location))?.host ?? "", redact);
  const reason =
    status < 400
      ? `, a redirect to ${redirectedTo || "another path"}, which is never followed; check service.baseUrl`
      : explanation(call, status, text, scope);
  const request = requestId === undefined ? "" : ` (request id ${requestId})`;
  const message = `${callName(call)}: the service answered ${status}${reason}${request}`;
  const code = errorCodeOf(status);
  const error = new AppError(code, message, { details: { status, ...(scope && { scope }) } });
  const isRefusal = code === "unauthorized" || code === "rejected";
  return { error, requestedWaitMs: isRefusal ? undefined : requestedWaitMs(headers, nowMs) };
}

/** Whether the service refused the key itself. A 401 that names a scope is about that scope: the service does not use 401 and 403 consistently. */
export function isKeyRejected(error: AppError): boolean {
  return error.details.status === 401 && error.details.scope === undefined;
}

function errorCodeOf(status: number): ErrorCode {
  if (status === 401 || status === 403) return "unauthorized";
  if (status === 429) return "rate_limited";
  // Gateways answer 499 when they think that the client went away: the service did not answer.
  return status >= 500 || [408, 425, 499].includes(status) ? "unavailable" : "rejected";
}

function explanation({ scopes: needed = [] }: ServiceCall, status: number, text: string, scope?: string): string {
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

/** Reads Retry-After; undefined without a plausible one. A date is compared with the answer's Date header, as the local clock may be wrong. */
export function requestedWaitMs(headers: ResponseHeaders, nowMs: number): number | undefined {
  const wait = String([headers["retry-after"]].flat()[0]).trim();
  const untilMs = httpDateMs(wait) ?? Number.NaN;
  const ms = /^\d+$/.test(wait) ? Number(wait) * 1000 : untilMs - (httpDateMs(headers.date) ?? nowMs);
  return ms <= PLAUSIBLE_WAIT_MS_MAX ? Math.min(Math.max(0, ms), WAIT_MS_MAX) : undefined;
}

const CERTIFICATE_CODE =
  /^(?:CERT_|ERR_TLS_CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_(?:CA|PURPOSE)|HOSTNAME_MISMATCH|PATH_LENGTH_)/;

/** An AppError, such as the one for the time limit, keeps its code and details; the name of the call is put before its message. */
export function connectionError(call: ServiceCall, thrown: unknown): AppError {
  const error = tunnelError(thrown) ?? thrown;
  const what = callName(call);
  if (error instanceof AppError)
    return new AppError(error.code, `${what}: ${error.message}`, { details: error.details });
  const code = systemCode(error) || (error instanceof Error ? error.name : "unknown");
  if (CERTIFICATE_CODE.test(code)) {
    const message = `${what}: the certificate of the service is not trusted (${code}); check service.baseUrl, and if your proxy intercepts TLS, add its certificate authority with NODE_EXTRA_CA_CERTS`;
    return new AppError("rejected", message, { cause: error, details: { sent: "no" } });
  }
  const details = isBeforeSending(error) ? { sent: "no" } : {};
  return new AppError("unavailable", `${what}: no answer, the connection failed (${code})`, { cause: error, details });
}

/** Whether the connection was certainly never made. A lost connection may have carried the request. */
function isBeforeSending(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isBeforeSending);
  if (!(error instanceof Error) || !("syscall" in error)) return systemCode(error) === "UND_ERR_CONNECT_TIMEOUT";
  return error.syscall === "connect" || error.syscall === "getaddrinfo";
}
