// Decides whether, and after how long, a failed call is tried again. Pure, so every rule has a test without a timer.

/**
 * - `transient`: no answer, or one that says "later"
 * - `bad_answer`: a success that cannot be read; a gateway between us and the service may have made it
 * - `final`: trying again would bring the same
 */
export type FailureKind = "transient" | "bad_answer" | "final";

export const ATTEMPTS_MAX = 5;
const BAD_ANSWERS_MAX = 2;
const DELAY_MS_FIRST = 500;
const DELAY_MS_MAX = 30_000;

/** 499 is what gateways say when a client went away, which to the client means: not answered. */
export function isTransient(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status === 499 || status >= 500;
}

/**
 * Milliseconds to wait before the next attempt, or undefined to give up.
 *
 * `failures` are those of this call, the newest last. `askedMs` is what the service asked for; it is never shortened.
 * `random` is in [0, 1): the back-off is drawn from the whole range, so that callers that failed together do not come
 * back together.
 */
export function retryDelayMs(
  failures: readonly FailureKind[],
  attemptsMax: number,
  askedMs: number | undefined,
  random: number,
): number | undefined {
  if (failures.at(-1) === "final" || failures.length >= attemptsMax) return undefined;
  if (failures.filter((kind) => kind === "bad_answer").length >= BAD_ANSWERS_MAX) return undefined;
  const ceilingMs = Math.min(DELAY_MS_FIRST * 2 ** (failures.length - 1), DELAY_MS_MAX);
  return Math.max(askedMs ?? 0, Math.round(ceilingMs * random));
}
