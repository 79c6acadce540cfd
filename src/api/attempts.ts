// The attempt loop around a call: waits for its turn, tries, decides, and tries again. Always the whole request: a
// resumed answer could be made of two different ones.

import type { Logger } from "pino";
import { AppError } from "../errors.ts";
import type { Outcome, ServiceAnswer } from "./answer.ts";
import { type Pace, tooLong } from "./pace.ts";
import { ATTEMPTS_MAX, type FailureKind, retryDelayMs } from "./retry.ts";
import type { Sleep } from "./wait.ts";

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
const UNANSWERED_MAX = 3;

export function openAttempts(deps: AttemptsDeps): Attempts {
  let unanswered = 0;

  async function once(attempt: Attempt, signal: AbortSignal): Promise<Outcome> {
    const leave = await deps.pace.enter(signal);
    try {
      const outcome = await attempt();
      // Before the place goes on, or whoever gets it would not know.
      if (!outcome.ok && outcome.failure.askedMs !== undefined) deps.pace.hold(outcome.failure.askedMs);
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
      const { kind, error, askedMs } = outcome.failure;
      kinds.push(kind);
      if (askedMs !== undefined && askedMs > deps.waitMsMax) {
        throw tooLong(`${error.message}; it`, askedMs, deps.waitMsMax, error.details);
      }
      const delayMs = retryDelayMs(kinds, attemptsMax, askedMs, deps.random());
      if (delayMs === undefined) throw afterAttempts(error, kinds.length);
      deps.log.warn(
        { attempt: kinds.length, attempts: attemptsMax, delayMs, code: error.code, reason: error.message },
        "service call failed, trying again",
      );
      // The rate limiter waits out the pause that the service asked for, because a person can end that pause (`resume-calls`).
      if (delayMs !== askedMs) await deps.sleep(delayMs, signal);
    }
  }

  return async (attempt, retry, signal) => {
    const attemptsMax = retry && unanswered < UNANSWERED_MAX ? ATTEMPTS_MAX : 1;
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

function afterAttempts(error: AppError, attempts: number): AppError {
  if (attempts === 1) return error;
  const { code, message, details, cause } = error;
  return new AppError(code, `${message} (${attempts} attempts)`, { details, cause });
}
