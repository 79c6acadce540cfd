// The attempt loop around a call: waits for a permit, sends, decides, and tries again. An attempt never resumes an answer that broke
// off: the result could be made of two different answers. Reports each attempt.

import type { Logger } from "pino";
import type { Sleep } from "../async.ts";
import { AppError, errorCode } from "../errors.ts";
import type { Outcome } from "./answer.ts";
import { type FailureKind, tooLong } from "./errors.ts";
import { EVERY_KEY, type Rate } from "./limiter.ts";
import type { AttemptReport, OnAttempt, ServiceAnswer, ServiceCall } from "./service.ts";

export const ATTEMPTS_MAX = 5;
const BAD_ANSWERS_MAX = 2;
const DELAY_MS_FIRST = 500;
const DELAY_MS_MAX = 30_000;

export type Attempt = {
  /** The name of its key. */
  readonly key: string;
  readonly project: string;
  /** Awaited before each attempt, after its permit is given. An error that it throws ends the call. */
  readonly prepare: () => Promise<void>;
  /** Returns an answer, or a failure of the service or the connection, whether or not it may be tried again. Throws if aborted. */
  readonly send: () => Promise<Outcome>;
};

export type AttemptsDeps = {
  readonly rate: Pick<Rate, "acquire" | "pause">;
  readonly waitMsMax: number;
  readonly random: () => number;
  readonly sleep: Sleep;
  readonly log: Logger;
};

type Answered = Extract<Outcome, { ok: true }>;
type Failed = { readonly ok: false; readonly error: AppError };

export type Attempts = (attempt: Attempt, retry: boolean, signal: AbortSignal) => Promise<ServiceAnswer>;

/**
 * After this many calls in a row without an answer the service counts as down. Until a call is answered, each call is then tried only
 * once, to add no load.
 */
const UNANSWERED_CALLS_MAX = 3;

export function openAttempts(deps: AttemptsDeps): Attempts {
  let unanswered = 0;

  async function once(attempt: Attempt, signal: AbortSignal): Promise<Outcome> {
    const { key, project } = attempt;
    for (;;) {
      const permit = await deps.rate.acquire({ key, project, waitMsMax: deps.waitMsMax }, signal);
      try {
        await attempt.prepare();
        // During `prepare` the process may have been suspended, or the service may have asked another call for a pause.
        if (!permit.isValid()) continue;
        const outcome = await attempt.send();
        // Before the slot is released, so that the next holder sees the pause.
        reportOutcome(key, outcome);
        return outcome;
      } finally {
        permit.release();
      }
    }
  }

  function reportOutcome(key: string, outcome: Outcome): void {
    if (outcome.ok || outcome.failure.requestedWaitMs === undefined) return;
    // With another status than 429 the service says nothing about the key.
    const isAboutKey = outcome.failure.error.code === "rate_limited";
    deps.rate.pause(isAboutKey ? key : EVERY_KEY, outcome.failure.requestedWaitMs);
  }

  /** The last outcome of the service. Throws an error of another origin, such as a refusal that is known already: then nothing was sent. */
  async function tryAll(attempt: Attempt, attemptsMax: number, signal: AbortSignal): Promise<Answered | Failed> {
    const kinds: FailureKind[] = [];
    for (;;) {
      const outcome = await once(attempt, signal);
      if (outcome.ok) return outcome;
      const { kind, error, requestedWaitMs } = outcome.failure;
      kinds.push(kind);
      if (requestedWaitMs !== undefined && requestedWaitMs > deps.waitMsMax) {
        return { ok: false, error: tooLong(`${error.message}; it`, requestedWaitMs, deps.waitMsMax, error.details) };
      }
      const delayMs = retryDelayMs(kinds, attemptsMax, requestedWaitMs, deps.random());
      if (delayMs === undefined) return { ok: false, error: withAttemptCount(error, kinds.length) };
      deps.log.warn(
        { attempt: kinds.length, attempts: attemptsMax, delayMs, code: error.code, reason: error.message },
        "service call failed, trying again",
      );
      // The rate limiter waits out the pause that the service asked for.
      if (delayMs !== requestedWaitMs) await deps.sleep(delayMs, signal);
    }
  }

  return async (attempt, retry, signal) => {
    const attemptsMax = retry && unanswered < UNANSWERED_CALLS_MAX ? ATTEMPTS_MAX : 1;
    // If this throws, the service was not asked: that shows neither that it is down nor that it is up, so the count stays.
    const outcome = await tryAll(attempt, attemptsMax, signal);
    // With any other code the service answered, so it is up.
    unanswered = !outcome.ok && outcome.error.code === "unavailable" ? unanswered + 1 : 0;
    if (!outcome.ok) throw outcome.error;
    return outcome.answer;
  };
}

function withAttemptCount(error: AppError, attempts: number): AppError {
  if (attempts === 1) return error;
  const { code, message, details, cause } = error;
  return new AppError(code, `${message} (${attempts} attempts)`, { details, cause });
}

/** Wraps `send`, and reports the result and the duration of each attempt. */
export function withReport(
  send: Attempt["send"],
  { operation = "other" }: ServiceCall,
  signal: AbortSignal,
  now: () => number,
  report: OnAttempt,
): Attempt["send"] {
  let number = 0;
  return async () => {
    number++;
    const startedMs = now();
    const end = (result: AttemptReport["result"]) =>
      report({ operation, result, seconds: (now() - startedMs) / 1000, number });
    let outcome: Outcome;
    try {
      outcome = await send();
    } catch (error) {
      end(signal.aborted ? "stopped" : errorCode(error));
      throw error;
    }
    // An expected status says no as well.
    if (outcome.ok) end(outcome.answer.status < 300 ? "ok" : "rejected");
    else end(outcome.failure.error.code);
    return outcome;
  };
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
