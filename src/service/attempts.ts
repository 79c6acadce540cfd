// The attempt loop around a call: waits for its turn, tries, decides, and tries again. Always the whole request: a
// resumed answer could be made of two different ones.

import type { Logger } from "pino";
import type { Sleep } from "../async.ts";
import { AppError } from "../errors.ts";
import type { Outcome, ServiceAnswer } from "./answer.ts";
import { type Pace, tooLong } from "./rate-limiter.ts";
import { ATTEMPTS_MAX, type FailureKind, retryDelayMs } from "./retry.ts";

/** One try; it answers a failure and throws only when the call is over. */
export type Attempt = () => Promise<Outcome>;

export type AttemptsDeps = {
  readonly pace: Pace;
  readonly waitMsMax: number;
  readonly random: () => number;
  readonly sleep: Sleep;
  readonly log: Logger;
};

export type Attempts = (attempt: Attempt, retry: boolean, signal: AbortSignal) => Promise<ServiceAnswer>;

/** After this many calls in a row without an answer the service is taken for down: five attempts each would only add load. */
const UNANSWERED_CALLS_MAX = 3;

export function openAttempts(deps: AttemptsDeps): Attempts {
  let unanswered = 0;

  async function once(attempt: Attempt, signal: AbortSignal): Promise<Outcome> {
    const leave = await deps.pace.enter(signal);
    try {
      const outcome = await attempt();
      // Before the place goes on, or whoever gets it would not know.
      if (!outcome.ok && outcome.failure.requestedWaitMs !== undefined) deps.pace.hold(outcome.failure.requestedWaitMs);
      return outcome;
    } finally {
      leave();
    }
  }

  async function tryAll(attempt: Attempt, attemptsMax: number, signal: AbortSignal): Promise<ServiceAnswer> {
    const kinds: FailureKind[] = [];
    for (;;) {
      const outcome = await once(attempt, signal);
      if (outcome.ok) return outcome.answer;
      const { kind, error, requestedWaitMs } = outcome.failure;
      kinds.push(kind);
      if (requestedWaitMs !== undefined && requestedWaitMs > deps.waitMsMax) {
        throw tooLong(`${error.message}; it`, requestedWaitMs, deps.waitMsMax, error.details);
      }
      const delayMs = retryDelayMs(kinds, attemptsMax, requestedWaitMs, deps.random());
      if (delayMs === undefined) throw withAttemptCount(error, kinds.length);
      deps.log.warn(
        { attempt: kinds.length, attempts: attemptsMax, delayMs, code: error.code, reason: error.message },
        "service call failed, trying again",
      );
      // The rate limiter waits out the pause that the service asked for, because a person can end that pause (`resume-calls`).
      if (delayMs !== requestedWaitMs) await deps.sleep(delayMs, signal);
    }
  }

  return async (attempt, retry, signal) => {
    const attemptsMax = retry && unanswered < UNANSWERED_CALLS_MAX ? ATTEMPTS_MAX : 1;
    try {
      const answer = await tryAll(attempt, attemptsMax, signal);
      unanswered = 0;
      return answer;
    } catch (error) {
      // Any other failure is an answer: the service is there.
      if (error instanceof AppError) unanswered = error.code === "unavailable" ? unanswered + 1 : 0;
      throw error;
    }
  };
}

function withAttemptCount(error: AppError, attempts: number): AppError {
  if (attempts === 1) return error;
  const { code, message, details, cause } = error;
  return new AppError(code, `${message} (${attempts} attempts)`, { details, cause });
}
