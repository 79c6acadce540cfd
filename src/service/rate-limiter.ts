// Limits how fast this process calls the service: slots (calls in flight), permits (calls a second) and the pause a service asks for.
// Slots and permits are those of the process's share of the cap. rate-lease.ts renews the share; without a lease it is the whole cap.

import type { Sleep } from "../async.ts";
import { AppError } from "../errors.ts";

export type RateLimitSettings = {
  readonly requestsPerSecond: number;
  /** The cap of slots, of all processes together. */
  readonly maxConcurrent: number;
  /** The longest pause that calls wait out. If the service asks for a longer one, they fail instead. */
  readonly waitMsMax: number;
  /** False: a call that started late because its timer was late makes no later call start earlier. Left out, it does. */
  readonly makesUpForLateTimers?: boolean;
};

export type RateLimiter = {
  /** Resolves when a call may start. */
  readonly acquire: (signal: AbortSignal) => Promise<Permit>;
  /** The service asked for no call in the next `ms`. A shorter pause does not end a longer one. */
  readonly pause: (ms: number) => void;
  /** Resolves when other processes can use the share of this one. */
  readonly close: () => Promise<void>;
};

/** The right to make one call. It takes up a slot until it is released. */
export type Permit = {
  /**
   * False if the process's share expired before it was renewed, because another process may have the slot by now. False also during
   * a pause. While it is false, nothing may be sent.
   */
  readonly isValid: () => boolean;
  readonly release: () => void;
};

/**
 * How many of the cap's slots this process may use, until the clock `now` shows `untilMs`. The process may use the same fraction of
 * `requestsPerSecond`.
 */
export type Share = { readonly slots: number; readonly untilMs: number };

/**
 * Called once for a long wait, and once when it is over. `seconds`: how long a pause still lasts, for how long this process has waited
 * for slots, or how long a wait was that is over.
 */
export type OnLongWait = (wait: "pause" | "slots" | "over", seconds: number) => void;

/** A longer pause is reported, so that nobody has to guess why nothing happens. */
const LONG_PAUSE_MS = 5_000;
/**
 * A longer wait for a share is reported. Ordinary waits are shorter: for the end of a killed process's lease, or for the only slot
 * while another process has it.
 */
const LONG_SLOT_WAIT_MS = 15_000;
/** If a timer fires late by up to this time, the next call is planned from when it should have fired, so that the rate is kept. */
const LATE_MS_MAX = 100;

/** Why no call can start now. Without `ms` its end is not known: it ends when a slot is released or the share changes. */
type Obstacle =
  | { readonly kind: "pause" | "permit"; readonly ms: number }
  | { readonly kind: "share" | "slot"; readonly ms?: undefined };

type Waiter = { readonly resolve: (permit: Permit) => void; readonly reject: (reason: unknown) => void };

/**
 * First come, first served. In any second at most `requestsPerSecond` plus `maxConcurrent` calls start, of all processes that
 * share the cap. `now` is in milliseconds and never goes back, unlike the time of day.
 */
export class LocalRateLimiter implements RateLimiter {
  readonly #settings: RateLimitSettings;
  readonly #now: () => number;
  readonly #sleep: Sleep;
  readonly #onLongWait: OnLongWait | undefined;
  readonly #waiting = new Set<Waiter>();
  #share: Share;
  /** Rises when a share expired before it was renewed. Permits that were given before that are no longer valid. */
  #shareNumber = 0;
  #inFlight = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  #lastStartMs = Number.NEGATIVE_INFINITY;
  #isServing = false;
  /** The last wait was for a permit. If the next call is late, its timer was late, and later calls make up for that. */
  #waitedForPermit = false;
  #sleeping: { readonly kind: Obstacle["kind"]; readonly wake: () => void } | undefined;
  #longWait: { readonly sinceMs: number; readonly isReported: boolean } | undefined;

  constructor(settings: RateLimitSettings, now: () => number, sleep: Sleep, onLongWait?: OnLongWait) {
    this.#settings = settings;
    this.#now = now;
    this.#sleep = sleep;
    this.#onLongWait = onLongWait;
    this.#share = { slots: settings.maxConcurrent, untilMs: Number.POSITIVE_INFINITY };
  }

  async acquire(signal: AbortSignal): Promise<Permit> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Permit>();
    const waiter = { resolve, reject };
    const leave = () => {
      this.#waiting.delete(waiter);
      reject(signal.reason);
      if (this.#waiting.size === 0) this.#wake();
    };
    this.#waiting.add(waiter);
    signal.addEventListener("abort", leave, { once: true });
    void this.#serve();
    return await promise.finally(() => signal.removeEventListener("abort", leave));
  }

  pause(ms: number): void {
    this.setPause(Math.max(ms, this.#pausedUntilMs - this.#now()));
  }

  async close(): Promise<void> {}

  /** Unlike `pause`, this can also shorten or end a pause. */
  setPause(ms: number): void {
    this.#pausedUntilMs = this.#now() + ms;
    this.#wake();
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get share(): Share {
    return this.#share;
  }

  setShare(share: Share): void {
    if (this.#share.untilMs <= this.#now()) this.#shareNumber++;
    this.#share = share;
    this.#wake();
  }

  /** Milliseconds until the next call may start by the rate of this share; 0 without a share, which has no rate. */
  get nextStartMs(): number {
    return this.#share.slots === 0 ? 0 : Math.max(this.#lastStartMs + this.#intervalMs() - this.#now(), 0);
  }

  /** No call starts in the next `ms`, because of calls that other processes made. */
  delayStart(ms: number): void {
    this.#lastStartMs = Math.max(this.#lastStartMs, this.#now() + ms - this.#intervalMs());
  }

  rejectWaiting(error: unknown): void {
    for (const { reject } of this.#waiting) reject(error);
    this.#waiting.clear();
    this.#wake();
  }

  /** Starts the waiting calls, each as soon as it may start. */
  async #serve(): Promise<void> {
    if (this.#isServing) return;
    this.#isServing = true;
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      const obstacle = this.#obstacle();
      if (obstacle === undefined) {
        this.#waiting.delete(first);
        first.resolve(this.#start());
        continue;
      }
      this.#waitedForPermit = obstacle.kind === "permit";
      this.#reportLongWait(obstacle);
      if (obstacle.kind === "pause" && obstacle.ms > this.#settings.waitMsMax) {
        this.rejectWaiting(tooLong("the service", obstacle.ms, this.#settings.waitMsMax, { sent: "no" }));
      } else {
        await this.#sleepUntilChange(obstacle);
      }
    }
    this.#waitedForPermit = false;
    // All callers gave up before the wait was reported: the next caller's wait is counted from its own start. A reported wait stays,
    // so that its end is reported too.
    if (this.#longWait?.isReported === false) this.#longWait = undefined;
    this.#isServing = false;
  }

  #obstacle(): Obstacle | undefined {
    const nowMs = this.#now();
    const { slots, untilMs } = this.#share;
    if (this.#pausedUntilMs > nowMs) return { kind: "pause", ms: this.#pausedUntilMs - nowMs };
    if (slots === 0 || untilMs <= nowMs) return { kind: "share" };
    if (this.#inFlight >= slots) return { kind: "slot" };
    const ms = this.nextStartMs;
    return ms > 0 ? { kind: "permit", ms } : undefined;
  }

  async #sleepUntilChange({ kind, ms }: Obstacle): Promise<void> {
    const limitMs = kind === "share" ? LONG_SLOT_WAIT_MS : ms;
    if (limitMs === undefined) {
      // Most waits are for a slot, and the events of an AbortSignal would take longer than the rest of the wait.
      const { promise, resolve: wake } = Promise.withResolvers<void>();
      this.#sleeping = { kind, wake };
      await promise;
    } else {
      const end = new AbortController();
      // With a reason, because abort() without one creates an Error with a stack, which nobody reads.
      this.#sleeping = { kind, wake: () => end.abort("changed") };
      await this.#sleep(limitMs, end.signal).catch(() => {});
    }
    this.#sleeping = undefined;
  }

  #wake(): void {
    this.#sleeping?.wake();
  }

  #start(): Permit {
    const nowMs = this.#now();
    if (this.#longWait?.isReported) this.#onLongWait?.("over", Math.round((nowMs - this.#longWait.sinceMs) / 1000));
    this.#longWait = undefined;
    // After a late timer, at most `slots - 1` more calls start at once to make up for it, so that the bursts of all processes together
    // stay below the cap.
    const makesUp = this.#waitedForPermit && this.#settings.makesUpForLateTimers !== false;
    const lateMsMax = makesUp ? Math.min(LATE_MS_MAX, (this.#share.slots - 1) * this.#intervalMs()) : 0;
    this.#lastStartMs = Math.max(this.#lastStartMs + this.#intervalMs(), nowMs - lateMsMax);
    this.#inFlight++;
    const shareNumber = this.#shareNumber;
    let isReleased = false;
    return {
      isValid: () =>
        shareNumber === this.#shareNumber && this.#now() < this.#share.untilMs && this.#pausedUntilMs <= this.#now(),
      release: () => {
        if (isReleased) return;
        isReleased = true;
        this.#inFlight--;
        if (this.#sleeping?.kind === "slot") this.#wake();
      },
    };
  }

  #intervalMs(): number {
    const { requestsPerSecond, maxConcurrent } = this.#settings;
    return (1000 * maxConcurrent) / (requestsPerSecond * this.#share.slots);
  }

  #reportLongWait({ kind, ms }: Obstacle): void {
    if (kind !== "pause" && kind !== "share") return;
    const nowMs = this.#now();
    this.#longWait ??= { sinceMs: nowMs, isReported: false };
    const waitedMs = nowMs - this.#longWait.sinceMs;
    if (this.#longWait.isReported || ((ms ?? 0) <= LONG_PAUSE_MS && waitedMs < LONG_SLOT_WAIT_MS)) return;
    this.#longWait = { ...this.#longWait, isReported: true };
    this.#onLongWait?.(ms === undefined ? "slots" : "pause", Math.ceil((ms ?? waitedMs) / 1000));
  }
}

/** The error for a wait that is longer than `waitMsMax`. Waiting for a shorter time instead would break what the service asked for. */
export function tooLong(who: string, requestedMs: number, waitMsMax: number, details: AppError["details"]): AppError {
  const askedSeconds = Math.ceil(requestedMs / 1000);
  const message = `${who} asks to be called again in ${askedSeconds} s, and this program waits at most ${waitMsMax / 1000} s`;
  return new AppError("rate_limited", message, { details: { ...details, askedSeconds } });
}
