// The attempt loop around a call: waits for a permit, sends, reports, decides, and tries again. An attempt never resumes an answer that
// broke off: the result could be made of two different answers. Remembers which keys the service rejected, so that a rejected key is not
// sent again with every call of a run.

import { AppError, errorCode } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { Outcome } from "./answer.ts";
import { type FailureKind, isKeyRejected, tooLong } from "./errors.ts";
import { EVERY_KEY } from "./limiter.ts";
import type { AttemptReport, ServiceAnswer, ServiceDeps } from "./service.ts";

export const ATTEMPTS_MAX = 5;
const BAD_ANSWERS_MAX = 2;
const DELAY_MS_FIRST = 500;
const DELAY_MS_MAX = 30_000;

export type Attempt = {
  /** What the metrics call the call. */
  readonly operation: string;
  /** The name of its key. */
  readonly key: string;
  readonly project: string;
  /** Awaited before each attempt, after its permit is given. An error that it throws ends the call. */
  readonly prepare: () => Promise<void>;
  /** Returns an answer, or a failure of the service or the connection, whether or not it may be tried again. Throws if aborted. */
  readonly send: () => Promise<Outcome>;
};

export type AttemptsDeps = Required<Pick<ServiceDeps, "waitMsMax" | "now" | "random" | "sleep" | "log">> & {
  readonly rate: Pick<ServiceDeps["rate"], "acquire" | "pause">;
  readonly onAttempt?: ServiceDeps["onAttempt"];
};

/**
 * After this many calls in a row without an answer the service counts as down. Until a call is answered, each call is then tried only
 * once, to add no load.
 */
const UNANSWERED_CALLS_MAX = 3;

export function openAttempts(deps: AttemptsDeps) {
  let unanswered = 0;

  async function once(attempt: Attempt, number: number, signal: AbortSignal): Promise<Outcome> {
    const { key, project } = attempt;
    for (;;) {
      const permit = await deps.rate.acquire({ key, project, waitMsMax: deps.waitMsMax }, signal);
      try {
        await attempt.prepare();
        // During `prepare` the process may have been suspended, or the service may have asked another call for a pause.
        if (!permit.isValid()) continue;
        const outcome = await sendAndReport(deps, attempt, number, signal);
        // Before the slot is released, so that the next holder sees the pause.
        if ("error" in outcome && outcome.requestedWaitMs !== undefined) {
          // With another status than 429 the service says nothing about the key.
          deps.rate.pause(outcome.error.code === "rate_limited" ? key : EVERY_KEY, outcome.requestedWaitMs);
        }
        return outcome;
      } finally {
        permit.release();
      }
    }
  }

  /** The answer, or the last error of the service. Throws an error of another origin, such as a refusal that is known already: then nothing was sent. */
  async function tryAll(attempt: Attempt, attemptsMax: number, signal: AbortSignal): Promise<ServiceAnswer | AppError> {
    const kinds: FailureKind[] = [];
    for (;;) {
      const outcome = await once(attempt, kinds.length + 1, signal);
      if (!("error" in outcome)) return outcome;
      const { kind, error, requestedWaitMs } = outcome;
      kinds.push(kind);
      if (requestedWaitMs !== undefined && requestedWaitMs > deps.waitMsMax) {
        return tooLong(`${error.message}; it`, requestedWaitMs, deps.waitMsMax, error.details);
      }
      const delayMs = retryDelayMs(kinds, attemptsMax, requestedWaitMs, deps.random());
      if (delayMs === undefined) return withAttemptCount(error, kinds.length);
      deps.log.warn(
        { attempt: kinds.length, attempts: attemptsMax, delayMs, code: error.code, reason: error.message },
        "service call failed, trying again",
      );
      // The rate limiter waits out the pause that the service asked for.
      if (delayMs !== requestedWaitMs) await deps.sleep(delayMs, signal);
    }
  }

  return async (attempt: Attempt, retry: boolean, signal: AbortSignal): Promise<ServiceAnswer> => {
    const attemptsMax = retry && unanswered < UNANSWERED_CALLS_MAX ? ATTEMPTS_MAX : 1;
    // If this throws, the service was not asked: that shows neither that it is down nor that it is up, so the count stays.
    const result = await tryAll(attempt, attemptsMax, signal);
    // With any other code the service answered, so it is up.
    unanswered = result instanceof AppError && result.code === "unavailable" ? unanswered + 1 : 0;
    if (result instanceof AppError) throw result;
    return result;
  };
}

async function sendAndReport(
  deps: AttemptsDeps,
  { operation, send }: Attempt,
  number: number,
  signal: AbortSignal,
): Promise<Outcome> {
  const startedMs = deps.now();
  const report = (result: AttemptReport["result"]) =>
    deps.onAttempt?.({ operation, result, seconds: (deps.now() - startedMs) / 1000, number });
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

/** The parts of a call that decide whether an earlier refusal applies to it. */
type KeyUse = { readonly key: Secret; readonly operation: string };

export function openAuthFailures() {
  let refused: { readonly use: KeyUse; readonly error: AppError }[] = [];

  /**
   * If the service rejected the key itself, no call with it is made again; any other refusal is remembered for its operation only,
   * because the key may be allowed others.
   */
  function refusalOf({ key, operation }: KeyUse): AppError | undefined {
    return refused.find(
      ({ use, error }) => use.key.equals(key) && (use.operation === operation || isKeyRejected(error)),
    )?.error;
  }

  return {
    /** Throws if this use is known to be refused. */
    check(use: KeyUse): void {
      const known = refusalOf(use);
      if (known === undefined) return;
      const { code, message, details } = known;
      throw new AppError(code, `not called again after a refusal: ${message}`, { details });
    },
    /** Remembers the error if it is a refusal. */
    remember(use: KeyUse, error: unknown): void {
      if (error instanceof AppError && error.code === "unauthorized" && !refusalOf(use)) refused.push({ use, error });
    },
    /** Forgets the refusals of one key, or of all keys. */
    forget(key?: Secret): void {
      refused = refused.filter(({ use }) => key !== undefined && !use.key.equals(key));
    },
  };
}
