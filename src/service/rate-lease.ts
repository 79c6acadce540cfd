// The rate limiter of a process that shares the cap with others: it leases slots, renews the lease while it makes calls, and stops
// calling before the lease ends if it can't renew it.

import type { Sleep } from "../async.ts";
import type { Demand, KeyPauses, LeasedShare } from "../rate-share.ts";
import { LocalRateLimiter, type OnLongWait, type RateLimiter, type RateLimitSettings } from "./rate-limiter.ts";

/** The leases of all processes, wherever they are stored. */
export type RateLease = {
  readonly renew: (demand: Demand) => Promise<LeasedShare>;
  /** The service asked all processes for no call in the next `ms`. */
  readonly reportPause: (ms: number) => Promise<void>;
  /** Gives all slots back. By the rate, the next call on them may start in `nextStartMs` milliseconds. */
  readonly release: (nextStartMs: number) => Promise<void>;
};

/** The pauses of single keys, as this process knows them. */
export type PausedKeys = {
  /** The stored pauses, as they were read after `askedMs` by the clock `now`. They replace those known before. */
  readonly setPauses: (pauses: KeyPauses, askedMs: number) => void;
  readonly isAnyPaused: () => boolean;
};

/** No call starts in this last part of the lease, because a call takes a moment to reach the service. */
const MARGIN_MS = 2_000;
const RENEW_MS = 2_000;
/** While this process waits for slots, or another process waits for slots that this one holds. */
const RENEW_MS_CONTENDED = 500;

const NO_SHARE = { slots: 0, untilMs: 0 };

export function openLeasedRateLimiter(
  settings: RateLimitSettings,
  lease: RateLease,
  now: () => number,
  sleep: Sleep,
  onLongWait?: OnLongWait,
  keyLimits?: PausedKeys,
): RateLimiter {
  const local = new LocalRateLimiter(settings, now, sleep, onLongWait);
  local.setShare(NO_SHARE);
  const closing = new AbortController();
  /** The time between two calls on one slot, by the rate. */
  const slotIntervalMs = (1000 * settings.maxConcurrent) / settings.requestsPerSecond;
  /**
   * The most calls in flight and waiting at once since the last renewal. The calls of one moment would say too little: while answers
   * are stored, a busy process may have none, and would lose its slots until it is renewed again.
   */
  let wantedMost = 0;
  let renewals: Promise<void> | undefined;
  let pauseReports: Promise<void> = Promise.resolve();
  /** When the rate allows the next call on the slots that this process gave back. */
  let givenBackStartMs = Number.NEGATIVE_INFINITY;
  let pauseReportedMs = Number.NEGATIVE_INFINITY;
  /**
   * The end of a pause that could not be stored. It is stored before the next renewal: otherwise the renewal's answer, which would not
   * contain the pause, would end it in this process.
   */
  let unstoredPauseUntilMs = Number.NEGATIVE_INFINITY;

  async function renewWhileInUse(): Promise<void> {
    // One microtask later, so that the first demand counts all calls that are made at the same moment.
    await Promise.resolve();
    // Also while a key is paused: only a renewal shows that a person ended the pause, and calls with the key don't get as far as here.
    while (wantedMost > 0 || local.inFlight + local.waiting > 0 || keyLimits?.isAnyPaused()) {
      const waitMs = await renew();
      if (waitMs > 0) await sleep(waitMs, closing.signal).catch(() => {});
      if (closing.signal.aborted) break;
    }
    const nextStartMs = local.nextStartMs;
    local.setShare(NO_SHARE);
    // If this fails, the lease ends by itself.
    await lease.release(nextStartMs).catch(() => {});
    renewals = wantedMost > 0 && !closing.signal.aborted ? renewWhileInUse() : undefined;
  }

  /** Returns after how many milliseconds to renew again. */
  async function renew(): Promise<number> {
    // A reported pause must be stored first: otherwise the answer would not contain the pause, and would end it in this process.
    await pauseReports;
    const askedMs = now();
    const before = local.share;
    const demand = {
      kept: Math.max(before.slots, local.inFlight),
      wanted: Math.max(wantedMost, local.inFlight + local.waiting),
      ...(givenBackStartMs > askedMs && { nextStartMs: givenBackStartMs - askedMs }),
    };
    wantedMost = 0;
    let leased: LeasedShare;
    try {
      await storeUnstoredPause();
      leased = await lease.renew(demand);
    } catch (error) {
      if (local.share.untilMs <= now()) local.rejectWaiting(error);
      return RENEW_MS_CONTENDED;
    }
    const { slots, usableSlots, fairSlots, lifeMs, startMs, pauseMs, keyPauses } = leased;
    keyLimits?.setPauses(keyPauses, askedMs);
    // The answer does not contain a pause that was reported after the renewal was requested.
    if (pauseReportedMs < askedMs) local.setPause(pauseMs);
    // If only some slots are given back, any of them may just have started a call: the whole interval is waited.
    if (usableSlots < before.slots) givenBackStartMs = now() + (usableSlots === 0 ? local.nextStartMs : slotIntervalMs);
    local.setShare({ slots: usableSlots, untilMs: askedMs + lifeMs - MARGIN_MS });
    if (usableSlots > before.slots) local.delayStart(startMs);
    // Other processes wait for slots, and this one has some to give back by now: renewing at once does so.
    if (usableSlots < slots && local.inFlight < demand.kept) return 0;
    return usableSlots < slots || slots < Math.min(demand.wanted, fairSlots) ? RENEW_MS_CONTENDED : RENEW_MS;
  }

  async function storeUnstoredPause(): Promise<void> {
    const untilMs = unstoredPauseUntilMs;
    if (untilMs <= now()) return;
    await lease.reportPause(untilMs - now());
    if (unstoredPauseUntilMs === untilMs) unstoredPauseUntilMs = Number.NEGATIVE_INFINITY;
  }

  return {
    async acquire(signal) {
      // Without this check a stopping process would take a lease for a call that it does not make.
      signal.throwIfAborted();
      const permit = local.acquire(signal);
      wantedMost = Math.max(wantedMost, local.inFlight + local.waiting);
      renewals ??= renewWhileInUse();
      return permit;
    },
    pause(ms) {
      local.pause(ms);
      pauseReportedMs = now();
      const untilMs = pauseReportedMs + ms;
      const report = lease.reportPause(ms).catch(() => {
        unstoredPauseUntilMs = Math.max(unstoredPauseUntilMs, untilMs);
      });
      // The results are dropped: with them each pause would be kept as long as the process runs.
      pauseReports = Promise.all([pauseReports, report]).then(() => {});
    },
    async close() {
      closing.abort("closed");
      await renewals;
      await pauseReports;
    },
  };
}
