// Decides whether and after how long a failed call is tried again, and reads how long the service asks to wait. Pure.

import { DAY_MS, HOUR_MS } from "../usage/days.ts";

/**
 * - `transient`: no answer, or one that says "later"
 * - `bad_answer`: a success that can't be read; it may come from a gateway before the service
 * - `final`: another attempt would fail the same way
 */
export type FailureKind = "transient" | "bad_answer" | "final";

export const ATTEMPTS_MAX = 5;
const BAD_ANSWERS_MAX = 2;
const DELAY_MS_FIRST = 500;
const DELAY_MS_MAX = 30_000;

/** Gateways answer 499 when they think that the client went away: the service did not answer. */
export function isTransient(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status === 499 || status >= 500;
}

/**
 * Milliseconds to wait before the next attempt, or undefined to give up.
 *
 * `failures` are those of this call, the newest last. `requestedWaitMs` is what the service asked for; it is never shortened.
 * `random` is in [0, 1): the back-off is drawn from the whole range, so that callers that failed together do not try again
 * together.
 */
export function retryDelayMs(
  failures: readonly FailureKind[],
  attemptsMax: number,
  requestedWaitMs: number | undefined,
  random: number,
): number | undefined {
  if (failures.at(-1) === "final" || failures.length >= attemptsMax) return undefined;
  if (failures.filter((kind) => kind === "bad_answer").length >= BAD_ANSWERS_MAX) return undefined;
  const ceilingMs = Math.min(DELAY_MS_FIRST * 2 ** (failures.length - 1), DELAY_MS_MAX);
  return Math.max(requestedWaitMs ?? 0, Math.round(ceilingMs * random));
}

/** Header names in lower case; a header that came twice is a list. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The format of HTTP dates. Date.parse alone accepts "1" as a date. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
/** A larger reset is an instant in seconds since 1970, a smaller one a number of seconds. */
const INSTANT_SECONDS_MIN = 1_000_000_000;

/** Longest wait after one answer. A service that needs longer asks again in its next answer. */
const WAIT_MS_MAX = HOUR_MS;
/** A service that asks for more than a day made a mistake, such as a date of the wrong century or milliseconds for seconds. */
const PLAUSIBLE_WAIT_MS_MAX = DAY_MS;

export type RequestedWait = {
  readonly requestedMs: number;
  /** How long to wait before the next call; undefined if the requested wait can only be a mistake. */
  readonly waitMs: number | undefined;
};

/**
 * Reads the Retry-After header, else the X-RateLimit-Reset header of a 429 (other answers carry that header without asking for a
 * wait). Undefined if neither is readable. Dates are compared with the answer's own Date header, so a wrong local clock does not
 * shorten the wait; `nowMs` is used if the answer has no Date.
 */
export function requestedWait(status: number, headers: ResponseHeaders, nowMs: number): RequestedWait | undefined {
  const serviceNowMs = serviceTimeMs(headers) ?? nowMs;
  const fromNow = (instantMs: number | undefined) =>
    instantMs === undefined ? undefined : Math.max(0, instantMs - serviceNowMs);

  const retryAfter = headerValues(headers, "retry-after").map((value) => secondsMs(value) ?? fromNow(dateMs(value)));
  const resets = status === 429 ? headerValues(headers, "x-ratelimit-reset") : [];
  const reset = resets.map((value) => {
    const ms = secondsMs(value);
    return ms !== undefined && ms >= INSTANT_SECONDS_MIN * 1000 ? fromNow(ms) : ms;
  });
  const longestPlausible = (waits: readonly (number | undefined)[]) =>
    longestOf(waits.filter((ms) => (ms ?? 0) <= PLAUSIBLE_WAIT_MS_MAX));
  const waitMs = longestPlausible(retryAfter) ?? longestPlausible(reset);
  if (waitMs !== undefined) return { requestedMs: waitMs, waitMs: Math.min(waitMs, WAIT_MS_MAX) };
  const mistakenMs = longestOf([...retryAfter, ...reset]);
  return mistakenMs === undefined ? undefined : { requestedMs: mistakenMs, waitMs: undefined };
}

/** The service's time when it sent the answer, in whole seconds: its Date header. Undefined if that is missing or unreadable. */
export function serviceTimeMs(headers: ResponseHeaders): number | undefined {
  return headerValues(headers, "date").map(dateMs)[0];
}

function headerValues(headers: ResponseHeaders, name: string): readonly string[] {
  const value = headers[name];
  if (value === undefined) return [];
  return typeof value === "string" ? [value] : value;
}

function secondsMs(value: string): number | undefined {
  return /^\s*\d{1,12}\s*$/.test(value) ? Number(value) * 1000 : undefined;
}

function dateMs(value: string): number | undefined {
  const ms = HTTP_DATE.test(value.trim()) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

function longestOf(waits: readonly (number | undefined)[]): number | undefined {
  const known = waits.filter((wait) => wait !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
