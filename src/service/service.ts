// How the other folders call the service: the types of what client.ts opens.

import type { Logger } from "pino";
import type { Sleep } from "../async.ts";
import type { ErrorCode } from "../errors.ts";
import type { HttpProxy } from "../proxy.ts";
import type { Secret } from "../secret.ts";
import type { Dialect } from "../usage/dimensions.ts";
import type { Redact } from "./errors.ts";
import type { Rate } from "./limiter.ts";

/** The word before the key in the Authorization header; with "none" the header is the key alone. `init` tries them in this order. */
export const AUTH_SCHEMES = ["Token", "Bearer", "none"] as const;
type AuthScheme = (typeof AUTH_SCHEMES)[number];

/** "auto": a probe finds the dialect, see jobs/dialects.ts. */
type DialectSetting = Dialect | "auto";

export type ServiceSettings = {
  readonly baseUrl: string;
  readonly authScheme: AuthScheme;
  /** Which names the service uses where two versions of its interface differ. */
  readonly dialect: DialectSetting;
  readonly requestsPerSecond: number;
  readonly maxConcurrent: number;
  /** For one attempt: connection, headers and the whole body. */
  readonly timeoutSeconds: number;
};

export type ServiceDeps = {
  readonly log: Logger;
  /** Replaces known secrets in texts that the service sent. The key of the call is replaced in any case. */
  readonly scrub: Redact;
  /** The proxy for services that are not on this machine. */
  readonly proxy?: HttpProxy | undefined;
  /** Called once for each attempt, when it is over. */
  readonly onAttempt?: ((report: AttemptReport) => void) | undefined;
  /** The rate that all calls of the process share. */
  readonly rate: Rate;
  /** If the service asks for a longer wait than this, calls fail at once. */
  readonly waitMsMax?: number;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
  readonly random?: () => number;
  readonly sleep?: Sleep;
};

export type ServiceCall = {
  /** What the metrics call it. */
  readonly operation?: string;
  readonly method: "GET" | "POST" | "DELETE";
  /** The parts of the path; letters, digits, `_` and `-` only, so that no identifier can lead elsewhere. */
  readonly path: readonly string[];
  readonly query?: URLSearchParams;
  readonly body?: unknown;
  /**
   * Whether it may be sent again. False means one attempt, whatever happens, and an abort does not interrupt that attempt once it is
   * sent: its effect could not be undone, and its answer would be lost.
   */
  readonly retry: boolean;
  /** Awaited before each attempt, after its permit is given. An error that it throws ends the call. */
  readonly beforeAttempt?: (() => Promise<void>) | undefined;
  /** The answer may contain a secret that the scrubber does not know yet, so no part of the answer is quoted. */
  readonly secretAnswer?: boolean;
  /** The key needs one of these scopes. The error message names them if the service does not name the missing one. */
  readonly scopes?: readonly string[];
};

export type ServiceAnswer = {
  readonly status: number;
  /** The parsed body; undefined for a 204 to a DELETE. */
  readonly value: unknown;
};

export type Service = {
  readonly baseUrl: string;
  readonly dialect: DialectSetting;
  /**
   * Returns the parsed answer of a 2xx. Throws an AppError otherwise: its details have the status, if there was one, and
   * `sent: "no"` if the request was certainly not sent. Throws the reason of an aborted signal as it is.
   */
  readonly call: (call: ServiceCall, key: Secret, signal: AbortSignal) => Promise<ServiceAnswer>;
  /**
   * Forgets the refusals of one key, or of all keys. Called at the start of a run, because somebody may have given a key the missing
   * scope, and for a new key, because some servers of the service may not know it yet.
   */
  readonly forgetAuthFailures: (key?: Secret) => void;
  /**
   * The service's current time, to a second or two: the Date header of its newest answer, success or not, plus the time since
   * then by a monotonic clock. Undefined until an answer carried a Date. The monotonic clock may stop while this machine sleeps, so the
   * result may be behind the service's time, but never ahead of it.
   */
  readonly serviceTime: () => Date | undefined;
  /** Ends calls in flight with an error. */
  readonly close: () => Promise<void>;
};

/** For the metrics. It never has the path, which holds ids. */
export type AttemptReport = {
  readonly operation: string;
  /** "ok" if a readable answer came, whose content is checked later; otherwise the code of the error. */
  readonly result: "ok" | ErrorCode | "internal";
  /** The time for the connection and the whole answer, without the wait for a permit. */
  readonly seconds: number;
  /** The number of the attempt within its call, from 1. */
  readonly number: number;
};
