// The attempts of a call, and the refusals that make further calls useless. An attempt never resumes an answer that broke off: the result could
// be made of two different answers.

import { AppError, errorCode } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { Outcome } from "./answer.ts";
import { type FailureKind, isKeyRejected, waitTooLong } from "./errors.ts";
import { EVERY_KEY, type Rate } from "./limiter.ts";
import type { AttemptReport, ServiceAnswer, ServiceDeps } from "./service.ts";

export const ATTEMPTS_MAX = 5;
const BAD_ANSWERS_MAX = 2;
const DELAY_MS_FIRST = 500;
const DELAY_MS_MAX = 30_000;

type Attempt = Pick<AttemptReport, "operation"> & {
  readonly key: string;
  readonly project: string;
  /** Awaited before `send`, after the permit is given. An error that it throws ends the call. */
  readonly prepare: () => Promise<void>;
  /** Throws if aborted. */
  readonly send: () => Promise<Outcome>;
};

type AttemptsDeps = Required<Pick<ServiceDeps, "waitMsMax" | "now" | "random" | "sleep" | "log">> &
  Pick<ServiceDeps, "onAttempt"> & { readonly rate: Pick<Rate, "acquire" | "pause"> };

/** After this many consecutive calls without an answer the service counts as down: until one is answered, each call is tried only once. */
const UNANSWERED_CALLS_MAX = 3;

/** Returns a function that makes a call: several attempts if `retry`, until one is answered or another would not help. */
export function openAttempts(deps: AttemptsDeps) {
  const { waitMsMax, random, sleep, log } = deps;
  let unanswered = 0;
  return async (attempt: Attempt, retry: boolean, signal: AbortSignal): Promise<ServiceAnswer> => {
    const attemptsMax = retry && unanswered < UNANSWERED_CALLS_MAX ? ATTEMPTS_MAX : 1;
    const kinds: FailureKind[] = [];
    for (;;) {
      // If this throws, nothing was sent, so the count of unanswered calls stays.
      const outcome = await attemptOnce(deps, attempt, kinds.length + 1, signal);
      if (!("error" in outcome)) {
        unanswered = 0;
        return outcome;
      }
      const { kind, error, requestedWaitMs = 0 } = outcome;
      kinds.push(kind);
      if (requestedWaitMs > waitMsMax) {
        unanswered = 0;
        throw waitTooLong(`${error.message}; it`, requestedWaitMs, waitMsMax, error.details);
      }
      const delayMs = retryDelayMs(kinds, attemptsMax, requestedWaitMs, random());
      if (delayMs === undefined) {
        // With any other code the service answered, so it is up.
        unanswered = error.code === "unavailable" ? unanswered + 1 : 0;
        throw withAttemptCount(error, kinds.length);
      }
      log.warn(
        { attempt: kinds.length, attempts: attemptsMax, delayMs, code: error.code, reason: error.message },
        "service call failed, trying again",
      );
      await sleep(delayMs, signal);
    }
  };
}

async function attemptOnce(deps: AttemptsDeps, attempt: Attempt, number: number, signal: AbortSignal) {
  const { rate, waitMsMax } = deps;
  const { key, project } = attempt;
  for (;;) {
    const permit = await rate.acquire({ key, project, waitMsMax }, signal);
    try {
      await attempt.prepare();
      // During `prepare` the process may have been suspended, or the service may have asked another call for a pause.
      if (!permit.isValid()) continue;
      const outcome = await sendAndReport(deps, attempt, number, signal);
      // Paused before the slot is released, so that the next holder sees the pause.
      if ("error" in outcome && outcome.requestedWaitMs !== undefined) {
        // Only a 429 says something about the key.
        rate.pause(outcome.error.code === "rate_limited" ? key : EVERY_KEY, outcome.requestedWaitMs);
      }
      return outcome;
    } finally {
      permit.release();
    }
  }
}

async function sendAndReport(
  { now, onAttempt }: AttemptsDeps,
  { operation, send }: Attempt,
  number: number,
  signal: AbortSignal,
): Promise<Outcome> {
  const startedMs = now();
  const report = (result: AttemptReport["result"]) =>
    onAttempt?.({ operation, result, seconds: (now() - startedMs) / 1000, number });
  try {
    const outcome = await send();
    report("error" in outcome ? outcome.error.code : "ok");
    return outcome;
  } catch (error) {
    report(signal.aborted ? "stopped" : errorCode(error));
    throw error;
  }
}

function withAttemptCount(error: AppError, attempts: number): AppError {
  if (attempts === 1) return error;
  const { code, message, details, cause } = error;
  return new AppError(code, `${message} (${attempts} attempts)`, { details, cause });
}

/**
 * Milliseconds to wait before the next attempt, or undefined to give up. `failures` are the failures of this call, the newest last. `random` is
 * in [0, 1): callers that failed together do not try again together.
 */
export function retryDelayMs(
  failures: readonly FailureKind[],
  attemptsMax: number,
  requestedWaitMs: number,
  random: number,
): number | undefined {
  if (failures.at(-1) === "final" || failures.length >= attemptsMax) return undefined;
  if (failures.filter((kind) => kind === "bad_answer").length >= BAD_ANSWERS_MAX) return undefined;
  const ceilingMs = Math.min(DELAY_MS_FIRST * 2 ** (failures.length - 1), DELAY_MS_MAX);
  return Math.max(requestedWaitMs, Math.round(ceilingMs * random));
}

/**
 * Remembers refusals, so that a refused key is not sent again with every call of a run. If the service refused the key itself, the key is not
 * used for any call. Another refusal concerns one call only, because the key may be allowed others.
 */
export class Refusals {
  #known: { readonly key: Secret; readonly what: string; readonly error: AppError }[] = [];

  /** Throws if a call with this key is known to be refused. `what` is the method and the path of the call. */
  check(key: Secret, what: string): void {
    const error = this.#find(key, what);
    if (!error) return;
    const { code, message, details } = error;
    throw new AppError(code, `not called again after a refusal: ${message}`, { details });
  }

  remember(key: Secret, what: string, error: unknown): void {
    const isNew = error instanceof AppError && error.code === "unauthorized" && !this.#find(key, what);
    if (isNew) this.#known.push({ key, what, error });
  }

  forget(key?: Secret): void {
    this.#known = this.#known.filter((refusal) => key !== undefined && !refusal.key.equals(key));
  }

  #find(key: Secret, what: string): AppError | undefined {
    const refusals = this.#known.filter((refusal) => refusal.key.equals(key));
    return refusals.find((refusal) => refusal.what === what || isKeyRejected(refusal.error))?.error;
  }
}
