// The types of client.ts: the client of the service, its settings, calls and answers.

import type { Logger } from "pino";
import type { Sleep } from "../async.ts";
import type { ErrorCode } from "../errors.ts";
import type { HttpProxy } from "../proxy.ts";
import type { Secret } from "../secret.ts";
import type { Dialect } from "../usage/dimensions.ts";
import type { RateCaps, RateLimiter } from "./limiter.ts";
import type { Redact } from "./reply.ts";

/** The word before the key in the Authorization header; with "none" the header is the key alone. */
export const AUTH_SCHEMES = ["Token", "Bearer", "none"] as const;
export type AuthScheme = (typeof AUTH_SCHEMES)[number];

export type ServiceSettings = RateCaps & {
  readonly baseUrl: string;
  readonly authScheme: AuthScheme;
  /** With "auto" a probe finds the dialect: see jobs/dialects.ts. */
  readonly dialect: Dialect | "auto";
  /** The time limit of one attempt: connection, headers and the whole body. */
  readonly timeoutSeconds: number;
};

export type ServiceDeps = {
  readonly log: Logger;
  /** Replaces known secrets in texts that the service sent. The key of the call is replaced in any case. */
  readonly scrub: Redact;
  readonly proxy?: HttpProxy | undefined;
  /** Called once for each attempt, when it is over. */
  readonly onAttempt?: ((report: AttemptReport) => void) | undefined;
  readonly limiter: RateLimiter;
  /** If the service asks for a longer wait than this, calls fail at once. */
  readonly waitMsMax?: number;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
  readonly random?: () => number;
  readonly sleep?: Sleep;
};

export type ServiceCall = Pick<AttemptReport, "operation"> & {
  /** A POST makes a key. It has one attempt, and once it is sent, an abort does not interrupt it, as the key in its answer would be lost. */
  readonly method: "GET" | "POST" | "DELETE";
  /** The segments of the path. Only letters, digits, `_` and `-`, so that an id such as `..` can't lead to another path. */
  readonly path: readonly string[];
  readonly query?: URLSearchParams;
  readonly body?: unknown;
  /** Awaited before each attempt, once the rate limiter lets it through. An error that it throws ends the call. */
  readonly beforeAttempt?: (() => Promise<void>) | undefined;
  /** The key needs one of these scopes. The error message names them if the service does not name the missing one. */
  readonly scopes?: readonly string[] | undefined;
};

/** `value` is the parsed body; undefined for a 204 to a DELETE. */
export type ServiceAnswer = { readonly status: number; readonly value: unknown };

export type Service = Pick<ServiceSettings, "baseUrl" | "dialect"> & {
  /** Throws an AppError unless a readable 2xx came; its `details.sent` is "no" if certainly nothing was sent. An abort throws its reason. */
  readonly call: (call: ServiceCall, key: Secret, signal: AbortSignal) => Promise<ServiceAnswer>;
  /** Forgets the refusals of `key`, or of all keys, which may have become valid since. Until then, calls like a refused one throw unsent. */
  readonly forgetRefusals: (key?: Secret) => void;
  /** The Date of the newest answer plus the time since. Never ahead of the service's clock; behind it if this machine slept, as `now` stood still. */
  readonly serviceTime: () => Date | undefined;
  /** Ends calls in flight with an error. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

/** Goes into the metrics, so it has no path: a path holds ids. */
export type AttemptReport = {
  /** "breakdown", "create_key" and others. */
  readonly operation: string;
  /** "ok" if a readable answer came: what it says is checked later. Otherwise the code of the error. */
  readonly result: "ok" | ErrorCode | "internal";
  /** The time for the connection and the whole answer, without the wait for a permit. */
  readonly seconds: number;
};
