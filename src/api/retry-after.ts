// Reads how long the service asks to be left alone. Pure.

/** Header names in lower case; a header that came twice is a list. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** An HTTP date as it is sent today; Date.parse alone takes "1" for a date. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
/** A reset that is larger than this is an instant in seconds since 1970, a smaller one a number of seconds. */
const INSTANT_SECONDS_MIN = 1_000_000_000;

/** Longest wait after one answer. A service that needs longer asks again in its next answer. */
const WAIT_MS_MAX = 60 * 60_000;
/** A service that asks for more than a day made a mistake, such as a date of the wrong century or milliseconds for seconds. */
const MEANT_MS_MAX = 24 * 60 * 60_000;

export type AskedWait = {
  readonly askedMs: number;
  /** How long to wait before the next call; undefined if the requested wait can only be a mistake. */
  readonly waitMs: number | undefined;
};

/**
 * Reads the Retry-After header, else the X-RateLimit-Reset header of a 429 (other answers carry that header without asking for a
 * wait). Undefined if neither is readable. Dates are compared with the answer's own Date header, so a wrong local clock does not
 * shorten the wait; `nowMs` is used if the answer has no Date.
 */
export function askedWait(status: number, headers: Headers, nowMs: number): AskedWait | undefined {
  const serviceNowMs = serviceTimeMs(headers) ?? nowMs;
  const fromNow = (instantMs: number | undefined) =>
    instantMs === undefined ? undefined : Math.max(0, instantMs - serviceNowMs);

  const asked = headerValues(headers, "retry-after").map((value) => secondsMs(value) ?? fromNow(dateMs(value)));
  const resets = status === 429 ? headerValues(headers, "x-ratelimit-reset") : [];
  const reset = resets.map((value) => {
    const ms = secondsMs(value);
    return ms !== undefined && ms >= INSTANT_SECONDS_MIN * 1000 ? fromNow(ms) : ms;
  });
  const meant = (waits: readonly (number | undefined)[]) => longest(waits.filter((ms) => (ms ?? 0) <= MEANT_MS_MAX));
  const waitMs = meant(asked) ?? meant(reset);
  if (waitMs !== undefined) return { askedMs: waitMs, waitMs: Math.min(waitMs, WAIT_MS_MAX) };
  const mistakenMs = longest([...asked, ...reset]);
  return mistakenMs === undefined ? undefined : { askedMs: mistakenMs, waitMs: undefined };
}

/** The service's time when it sent the answer, in whole seconds: its Date header. Undefined if that is missing or unreadable. */
export function serviceTimeMs(headers: Headers): number | undefined {
  return headerValues(headers, "date").map(dateMs)[0];
}

function headerValues(headers: Headers, name: string): readonly string[] {
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

function longest(waits: readonly (number | undefined)[]): number | undefined {
  const known = waits.filter((wait) => wait !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
