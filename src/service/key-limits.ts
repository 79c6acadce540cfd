// Limits for each key, in front of the rate limiter that all calls share: the rate and the cap that are configured for a key, and the pause
// that the service asks for when it answers a call of one key with 429. Calls with other keys go on meanwhile.

import type { Sleep } from "../async.ts";
import type { KeyLimit } from "../rate-share.ts";
import { openLeasedRateLimiter, type PausedKeys, type RateLease } from "./rate-lease.ts";
import {
  LocalRateLimiter,
  type OnLongWait,
  type Permit,
  type RateLimiter,
  type RateLimitSettings,
} from "./rate-limiter.ts";

export type KeyLimits = {
  /** Resolves when a call with this key may start. Without a key only the limits of all calls count. */
  readonly acquire: (key: KeyLimit | undefined, signal: AbortSignal) => Promise<Permit>;
  /** The service asked for no call with this key in the next `ms`; without a key for no call at all. */
  readonly pause: (key: KeyLimit | undefined, ms: number) => void;
  readonly isPaused: (key: KeyLimit) => boolean;
  readonly close: () => Promise<void>;
} & PausedKeys;

export type KeyLimitDeps = {
  /** Shares the limits and pauses of a key with the other processes. Without it this process has them for itself. */
  readonly leaseOf?: ((key: KeyLimit) => RateLease) | undefined;
  readonly onLongWait?: ((key: KeyLimit) => OnLongWait) | undefined;
  readonly now: () => number;
  readonly sleep: Sleep;
};

type Pause = {
  readonly limiter: LocalRateLimiter;
  untilMs: number;
  /** Since when the stored pauses contain this one; undefined while that is not certain. */
  storedMs: number | undefined;
};

export function openKeyLimits(shared: RateLimiter, settings: RateLimitSettings, deps: KeyLimitDeps): KeyLimits {
  const { leaseOf, onLongWait, now, sleep } = deps;
  /** By the name of the key. */
  const limiters = new Map<string, RateLimiter>();
  const pauses = new Map<string, Pause>();
  let reports: Promise<void> = Promise.resolve();

  /** Undefined for a key without limits of its own. */
  function limiterOf(key: KeyLimit): RateLimiter | undefined {
    const { name, requestsPerSecond = settings.requestsPerSecond, maxConcurrent = settings.maxConcurrent } = key;
    if (key.requestsPerSecond === undefined && key.maxConcurrent === undefined) return undefined;
    const known = limiters.get(name);
    if (known) return known;
    // Permits of the key wait for the shared rate limiter, and may then start together. If late timers were made up for, too, more calls
    // than `maxConcurrent` could start beyond the rate.
    const limits = { ...settings, requestsPerSecond, maxConcurrent, makesUpForLateTimers: false };
    const opened = leaseOf
      ? openLeasedRateLimiter(limits, leaseOf(key), now, sleep, onLongWait?.(key))
      : new LocalRateLimiter(limits, now, sleep, onLongWait?.(key));
    limiters.set(name, opened);
    return opened;
  }

  function setPause(name: string, ms: number, storedMs?: number): Pause {
    const pause = pauses.get(name) ?? {
      limiter: new LocalRateLimiter(settings, now, sleep, onLongWait?.({ name })),
      untilMs: 0,
      storedMs,
    };
    pause.untilMs = now() + ms;
    pause.storedMs = storedMs;
    pause.limiter.setPause(ms);
    pauses.set(name, pause);
    return pause;
  }

  /** If it can't be stored, it lasts in this process alone. */
  async function storePause(key: KeyLimit, pause: Pause, ms: number): Promise<void> {
    try {
      await leaseOf?.(key).reportPause(ms);
      pause.storedMs = now();
    } catch {
      pause.storedMs = undefined;
    }
  }

  function isPaused({ name }: KeyLimit): boolean {
    return (pauses.get(name)?.untilMs ?? 0) > now();
  }

  async function waitForKey(key: KeyLimit, signal: AbortSignal): Promise<Permit | undefined> {
    if (isPaused(key)) (await pauses.get(key.name)?.limiter.acquire(signal))?.release();
    return limiterOf(key)?.acquire(signal);
  }

  return {
    async acquire(key, signal) {
      if (!key) return shared.acquire(signal);
      for (;;) {
        const own = await waitForKey(key, signal);
        const permit = await shared.acquire(signal).catch((error) => {
          own?.release();
          throw error;
        });
        const both = {
          isValid: () => !isPaused(key) && permit.isValid() && (own?.isValid() ?? true),
          release() {
            own?.release();
            permit.release();
          },
        };
        // The key may have been paused while the call waited for the shared rate limiter.
        if (!isPaused(key)) return both;
        both.release();
      }
    },
    pause(key, ms) {
      if (!key) return shared.pause(ms);
      // Pauses of several keys never become a pause of all calls: they don't show that the service limits other keys as well, and such a
      // pause would stop every process. A service that limits all keys together answers each of them with one 429.
      if ((pauses.get(key.name)?.untilMs ?? 0) > now() + ms) return;
      const pause = setPause(key.name, ms);
      // The results are dropped: with them each pause would be kept as long as the process runs.
      reports = Promise.all([reports, storePause(key, pause, ms)]).then(() => {});
    },
    setPauses(stored, askedMs) {
      for (const [name, { storedMs }] of pauses) {
        // A person ended the pause. One that was stored meanwhile, or could not be stored, is not among those that were read.
        if (storedMs !== undefined && storedMs <= askedMs && !(name in stored)) setPause(name, 0);
      }
      for (const [name, ms] of Object.entries(stored)) {
        if (!isPaused({ name })) setPause(name, ms, askedMs);
      }
    },
    isPaused,
    isAnyPaused: () => [...pauses.values()].some(({ untilMs }) => untilMs > now()),
    async close() {
      await Promise.all([...limiters.values()].map((limiter) => limiter.close()));
      await reports;
    },
  };
}
