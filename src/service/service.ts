// The types of a service that is called, and the report of each attempt. Everything outside this folder knows the service by these.

import type { Logger } from "pino";
import type { Sleep } from "../async.ts";
import { type ErrorCode, errorCode } from "../errors.ts";
import type { HttpProxy } from "../proxy.ts";
import type { Secret } from "../secret.ts";
import type { Dialect } from "../usage/series.ts";
import type { Outcome, ServiceAnswer } from "./answer.ts";
import type { Redact } from "./errors.ts";
import type { RateLease } from "./rate-lease.ts";

/** "auto": a probe finds the dialect, see jobs/dialects.ts. */
type DialectSetting = Dialect | "auto";

export type ServiceSettings = {
  readonly baseUrl: string;
  readonly authScheme: "Token" | "Bearer" | "none";
  /** Which names the service uses where two versions of its interface differ. */
  readonly dialect: DialectSetting;
  readonly requestsPerSecond: number;
  readonly maxConcurrent: number;
  /** For one attempt: connection, headers and the whole body. */
  readonly timeoutSeconds: number;
};

export type ServiceDeps = {
  readonly log: Logger;
  /** Hides the secrets in use from the service's own words; the key of the call is hidden in any case. */
  readonly scrub?: Redact;
  /** The proxy for services that are not on this machine. */
  readonly proxy?: HttpProxy | undefined;
  /** Called once for each attempt, when it is over. */
  readonly onAttempt?: OnAttempt;
  /** Shares the rate limit with the other processes that call the service. Without it, this process has all of it. */
  readonly lease?: RateLease;
  /** The longest wait the service may ask for before calls are given up instead. */
  readonly waitMsMax?: number;
  /** Milliseconds that never go back. */
  readonly now?: () => number;
  readonly random?: () => number;
  readonly sleep?: Sleep;
};

export type ServiceCall = {
  readonly method: "GET" | "POST" | "DELETE";
  /** The parts of the path; letters, digits, `_` and `-` only, so that no identifier can lead elsewhere. */
  readonly path: readonly string[];
  readonly query?: URLSearchParams;
  readonly body?: unknown;
  /**
   * Whether it may be sent again. False is exactly one attempt, whatever happens, which an abort does not cut once it is
   * under way: its effect could not be taken back, and its answer would be lost.
   */
  readonly retry: boolean;
  /** Awaited before each attempt, once a permit is given; what it throws ends the call. */
  readonly beforeAttempt?: () => Promise<void>;
  /** The answer may contain a secret that the scrubber does not know yet, so no part of the answer is quoted. */
  readonly secretAnswer?: boolean;
  /** The scopes of which the key needs one, for the message of a service that does not name what is missing. */
  readonly scopes?: readonly string[];
};

export type Service = {
  readonly baseUrl: string;
  readonly dialect: DialectSetting;
  /**
   * The parsed answer of a 2xx; everything else is an AppError, with the status in its details where there was one and
   * `sent: "no"` where the request surely never left. An aborted signal is thrown as it is.
   */
  readonly call: (call: ServiceCall, key: Secret, signal: AbortSignal) => Promise<ServiceAnswer>;
  /**
   * Lets a refused key be tried again, or all of them: at the start of a run, as somebody may have given them what they
   * lacked, and for a new key, which the service may not know everywhere at once.
   */
  readonly forgetAuthFailures: (key?: Secret) => void;
  /**
   * The service's current time, to a second or two: the Date header of its newest answer, success or not, plus the time since
   * then by a monotonic clock. Undefined until an answer carried a Date. The monotonic clock may stop while this machine sleeps,
   * so the result is never ahead of the service.
   */
  readonly serviceTime: () => Date | undefined;
  /** The service's current time, asked for without a key; undefined if no answer carries it within some seconds. */
  readonly fetchTime: (signal: AbortSignal) => Promise<Date | undefined>;
  /** Calls that are under way fail. */
  readonly close: () => Promise<void>;
};

// Tells of each attempt how it went and how long it took, for whoever counts them. Never the path: it holds ids.

export type AttemptReport = {
  readonly operation: string;
  /** How the answer ended, or its absence. Whether it is what was asked for is seen later, by who reads it. */
  readonly result: "ok" | ErrorCode | "internal";
  /** The connection and the whole answer, without the wait for a turn. */
  readonly seconds: number;
  /** Of this call, from 1: a higher one is a retry. */
  readonly number: number;
};

export type OnAttempt = (report: AttemptReport) => void;

/** By what follows the version and the project in the path. */
const OPERATIONS: Readonly<Record<string, string>> = {
  "GET projects": "projects",
  "GET auth/token": "token",
  "GET usage/breakdown": "breakdown",
  "GET usage/fields": "fields",
  "GET keys": "list_keys",
  "POST keys": "create_key",
  "GET keys/{id}": "read_key",
  "DELETE keys/{id}": "delete_key",
};

export function operationOf({ method, path }: Pick<ServiceCall, "method" | "path">): string {
  const [, projects, , ...inProject] = path;
  const [kind, id] = projects === "projects" && inProject.length > 0 ? inProject : path.slice(1);
  const named = kind === "keys" && id !== undefined ? "{id}" : id;
  return OPERATIONS[`${method} ${[kind, named].filter((part) => part !== undefined).join("/")}`] ?? "other";
}

/** The same attempt, told about. */
export function withReport(
  attempt: () => Promise<Outcome>,
  call: ServiceCall,
  signal: AbortSignal,
  now: () => number,
  tell: OnAttempt,
): () => Promise<Outcome> {
  const operation = operationOf(call);
  let number = 0;
  return async () => {
    number++;
    const startedMs = now();
    const end = (result: AttemptReport["result"]) =>
      tell({ operation, result, seconds: (now() - startedMs) / 1000, number });
    let outcome: Outcome;
    try {
      outcome = await attempt();
    } catch (error) {
      end(signal.aborted ? "stopped" : errorCode(error));
      throw error;
    }
    end(outcome.ok ? "ok" : outcome.failure.error.code);
    return outcome;
  };
}
