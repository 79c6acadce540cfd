// Turns an answer that is not a success into an error that says what to do, and into a decision whether to try again. Pure.

import { AppError, type ErrorCode } from "../errors.ts";
import { type FailureKind, isTransient } from "./retry.ts";
import { type AskedWait, askedWait, type Headers } from "./retry-after.ts";
import { type Hide, harmless, serviceWords, type Words } from "./words.ts";

export type Failure = {
  readonly kind: FailureKind;
  readonly error: AppError;
  /** For how long the service asked to be left alone, within reason. */
  readonly askedMs?: number | undefined;
};

/** An HTTP answer as it came. The body is undefined where it was cut, or longer than was read. */
export type Reply = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array | undefined;
};

/** What a message says about the call that failed. */
export type CallWords = {
  /** "GET /v1/projects/p1/keys" */
  readonly what: string;
  /** The scopes the key needs, any of them, for a service that does not name them. */
  readonly scopes: readonly string[];
};

const HOST_LENGTH_MAX = 100;

/** For every status but 2xx. `nowMs` is the time of day, for an answer that asks to wait and does not say its own. */
export function statusFailure(call: CallWords, reply: Reply, hide: Hide, nowMs: number): Failure {
  const { status, headers, body } = reply;
  const words = serviceWords(headers, body, hide);
  const request = words.requestId === undefined ? "" : ` (request id ${words.requestId})`;
  const asked = isTransient(status) ? askedWait(status, headers, nowMs) : undefined;
  const message = `${call.what}: the service answered ${status}${meaning(call, status, headers, words, hide)}${request}${unreasonable(asked)}`;
  const details = {
    status,
    ...(words.requestId !== undefined && { requestId: words.requestId }),
    ...(words.scope !== undefined && { scope: words.scope }),
  };
  return {
    kind: isTransient(status) ? "transient" : "final",
    error: new AppError(codeOf(status), message, { details }),
    askedMs: asked?.waitMs,
  };
}

/** Tells the caller if the wait is not as long as the service asked for. */
function unreasonable(asked: AskedWait | undefined): string {
  if (asked === undefined || asked.waitMs === asked.askedMs) return "";
  const seconds = Math.ceil(asked.askedMs / 1000);
  if (asked.waitMs === undefined) return `; it asks for a wait of ${seconds} s, which is taken for a mistake`;
  return `; it asks for a wait of ${seconds} s, of which ${asked.waitMs / 1000} s are waited`;
}

/**
 * Whether the service refused the key itself, whatever it is used for. A 401 that names a scope is about that scope: the
 * service does not keep 401 and 403 apart.
 */
export function refusesKey(error: AppError): boolean {
  return error.details.status === 401 && error.details.scope === undefined;
}

function codeOf(status: number): ErrorCode {
  if (status === 401 || status === 403) return "unauthorized";
  if (status === 429) return "rate_limited";
  return isTransient(status) ? "unavailable" : "rejected";
}

function meaning(call: CallWords, status: number, headers: Headers, words: Words, hide: Hide): string {
  if (status < 400) {
    const host = harmless(redirectHost(headers), hide, HOST_LENGTH_MAX) || "another address";
    return `, a redirect to ${host}, which is never followed; check service.baseUrl`;
  }
  if (status === 401 && words.scope === undefined) {
    return `, it does not accept the key: ${words.text}; check the key and service.authScheme`;
  }
  if (status === 401 || status === 403) {
    const scopes = words.scope ?? call.scopes.join(" or ");
    const mend = scopes === "" ? "access to this project" : `the scope ${scopes}, and access to this project`;
    return `, the key may not do this: ${words.text}; the key needs ${mend}`;
  }
  if (status === 404) return `: ${words.text}; check the project id, and that the key belongs to that project`;
  return `: ${words.text}`;
}

function redirectHost(headers: Headers): string {
  const target = headers.location;
  if (typeof target !== "string") return "no address";
  if (!/^(?:https?:)?\/\//i.test(target)) return "another path";
  return URL.parse(target, "https://localhost")?.host ?? "an unreadable address";
}
