// Repeats failed calls, and remembers refusals, after which further calls are useless. If an answer broke off, the whole call is repeated.

import { AppError, type ErrorCode, errorCode } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { Outcome } from "./answer.ts";
import type { AttemptReport, ServiceAnswer, ServiceCall, ServiceDeps } from "./client-types.ts";
import { callName, isKeyRejected } from "./errors.ts";
import { EVERY_KEY, longWaitError } from "./limiter.ts";

export const ATTEMPTS_MAX = 5;
const BAD_ANSWERS_MAX = 2;
const DELAY_MS_FIRST = 500;
const DELAY_MS_MAX = 30_000;

/** After this many consecutive calls without an answer the service counts as down: until one is answered, each call is tried only once. */
const UNANSWERED_CALLS_MAX = 3;

type CallerDeps = ServiceDeps & Required<Pick<ServiceDeps, "waitMsMax" | "now" | "random" | "sleep">>;

/** Calls `mayBegin` once the connection is made; if that returns false, sends nothing and returns undefined. Throws if aborted. */
type Send = (mayBegin: () => boolean) => Promise<Outcome | undefined>;

export class Caller {
  readonly #deps: CallerDeps;
  #unanswered = 0;
  #refusals: { readonly key: Secret; readonly call: string; readonly error: AppError }[] = [];

  constructor(deps: CallerDeps) {
    this.#deps = deps;
  }

  /** Repeats the call until it is answered, or until another attempt would not help. Never repeats a POST. */
  async withRetries(call: ServiceCall, key: Secret, signal: AbortSignal, send: Send): Promise<ServiceAnswer> {
    const { waitMsMax, random, sleep, log } = this.#deps;
    // Checked here too, so that a refused key does not wait for a permit.
    this.#requireNotRefused(call, key);
    const attemptsMax = call.method !== "POST" && this.#unanswered < UNANSWERED_CALLS_MAX ? ATTEMPTS_MAX : 1;
    const codes: ErrorCode[] = [];
    for (;;) {
      // If this throws, nothing was sent, or the call was aborted: the count of unanswered calls stays.
      const outcome = await this.#attempt(call, key, signal, send);
      if (!("error" in outcome)) {
        this.#unanswered = 0;
        return outcome;
      }
      const { error, requestedWaitMs = 0 } = outcome;
      const { code, message, details, cause } = error;
      codes.push(code);
      if (requestedWaitMs > waitMsMax) {
        this.#unanswered = 0;
        throw longWaitError(`${message}; it`, requestedWaitMs, waitMsMax, details);
      }
      const delayMs = retryDelayMs(codes, attemptsMax, requestedWaitMs, random());
      if (delayMs === undefined) {
        // With any other code the service answered, so it is up.
        this.#unanswered = code === "unavailable" ? this.#unanswered + 1 : 0;
        if (code === "unauthorized") this.#refusals.push({ key, call: callName(call), error });
        if (codes.length === 1) throw error;
        throw new AppError(code, `${message} (${codes.length} attempts)`, { details, cause });
      }
      const facts = { attempt: codes.length, attempts: attemptsMax, delayMs, code, reason: message };
      log.warn(facts, "service call failed, trying again");
      await sleep(delayMs, signal);
    }
  }

  async #attempt(call: ServiceCall, key: Secret, signal: AbortSignal, send: Send): Promise<Outcome> {
    const { limiter, waitMsMax } = this.#deps;
    // The rate limiter tells projects apart by v1/projects/ID, the beginning of the path. Any other path counts as a project of its own.
    const project = call.path.slice(0, 3).join("/");
    for (;;) {
      const permit = await limiter.acquire({ key: key.name, project, waitMsMax }, signal);
      try {
        await call.beforeAttempt?.();
        this.#requireNotRefused(call, key);
        // Meanwhile the process may have been suspended, or the service may have asked another call for a pause.
        if (!permit.isValid()) continue;
        const outcome = await this.#sendAndReport(call, signal, () => send(permit.isValid));
        if (!outcome) continue;
        // The pause is set before the permit is released, so that the next call waits for it.
        if ("error" in outcome && outcome.requestedWaitMs !== undefined) {
          // Only a 429 is about the key. Any other pause is for all keys.
          limiter.pause(outcome.error.code === "rate_limited" ? key.name : EVERY_KEY, outcome.requestedWaitMs);
        }
        return outcome;
      } finally {
        permit.release();
      }
    }
  }

  async #sendAndReport({ operation }: ServiceCall, signal: AbortSignal, send: () => ReturnType<Send>) {
    const { now, onAttempt } = this.#deps;
    const startedMs = now();
    const report = (result: AttemptReport["result"]) =>
      onAttempt?.({ operation, result, seconds: (now() - startedMs) / 1000 });
    try {
      const outcome = await send();
      if (outcome) report("error" in outcome ? outcome.error.code : "ok");
      return outcome;
    } catch (error) {
      report(signal.aborted ? "stopped" : errorCode(error));
      throw error;
    }
  }

  forgetRefusals(key?: Secret): void {
    this.#refusals = this.#refusals.filter((refusal) => key !== undefined && !refusal.key.equals(key));
  }

  /** After the service rejected the key, no call is made with it. After any other refusal only the same call is not made. */
  #requireNotRefused(call: ServiceCall, key: Secret): void {
    const ofKey = this.#refusals.filter((refusal) => refusal.key.equals(key));
    const found = ofKey.find((refusal) => refusal.call === callName(call) || isKeyRejected(refusal.error));
    if (!found) return;
    const { code, message, details } = found.error;
    throw new AppError(code, `not called again after a refusal: ${message}`, { details });
  }
}

/** Undefined to give up. The newest failure is the last. `random` in [0, 1) spreads the retries of callers that failed together. */
export function retryDelayMs(
  failures: readonly ErrorCode[],
  attemptsMax: number,
  requestedWaitMs: number,
  random: number,
): number | undefined {
  const newest = failures.at(-1);
  // A bad answer may come from a gateway in front of the service. After any other code another attempt would fail in the same way.
  const isTransient = newest === "unavailable" || newest === "rate_limited" || newest === "bad_answer";
  if (!isTransient || failures.length >= attemptsMax) return undefined;
  if (failures.filter((code) => code === "bad_answer").length >= BAD_ANSWERS_MAX) return undefined;
  const ceilingMs = Math.min(DELAY_MS_FIRST * 2 ** (failures.length - 1), DELAY_MS_MAX);
  return Math.max(requestedWaitMs, Math.round(ceilingMs * random));
}
