// Opens the service with the rate limiter that all calls of this process share. The configured caps hold for all processes together: while a
// process makes calls, it renews its share of them in the database. Without a database it has the caps for itself.

import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { App } from "./app.ts";
import { sleep } from "./async.ts";
import type { Config } from "./config/config.ts";
import { announce, LIVE_MS, signOff, storeCallPause } from "./db/calling-processes.ts";
import type { Database } from "./db/connection/database.ts";
import { proxyOf } from "./proxy.ts";
import type { Service, ServiceDeps } from "./service/client-types.ts";
import { Limiter, type RateCaps, type RateLimiter } from "./service/limiter.ts";

/** The client is loaded only here, because half the commands make no calls. */
export async function openServiceFor(
  app: App,
  config: Config,
  db: Database | undefined,
  deps: Pick<ServiceDeps, "onAttempt" | "waitMsMax"> = {},
): Promise<Service> {
  const { openService } = await import("./service/client.ts");
  const { env, log, scrubber } = app;
  const limiter = sharedLimiter(db, config.service, log);
  return openService(config.service, { ...deps, limiter, proxy: proxyOf(env), log, scrub: scrubber.scrub });
}

/** The interval of renewals, and the shorter one while slots change hands. */
const RENEW_MS = 2_000;
const RENEW_MS_CONTENDED = 250;
/** The process stops starting calls this long before the others count its share as expired, because a call takes a moment to arrive. */
const MARGIN_MS = 2_000;
/** Processes take turns with the slots that an even division leaves over. A turn lasts this long, plus the time to start three calls per slot. */
const TURN_MS = 10_000;
/** A pause is logged if it ends more than this much later than the current one. */
const LONG_PAUSE_MS = 5_000;

const now = () => performance.now();
const NO_DATABASE = {};
const limitersByDatabase = new WeakMap<object, ProcessLimiter>();

/** One limiter for each database, with the caps of the newest configuration. */
export function sharedLimiter(db: Database | undefined, caps: RateCaps, log: Logger): RateLimiter {
  const limiter = limitersByDatabase.get(db ?? NO_DATABASE) ?? new ProcessLimiter(db, caps, log);
  limiter.caps = caps;
  limitersByDatabase.set(db ?? NO_DATABASE, limiter);
  return limiter;
}

class ProcessLimiter extends Limiter implements RateLimiter {
  readonly #db: Database | undefined;
  readonly #log: Logger;
  readonly #id = randomUUID();
  /** Whether a call asked for a slot since the last renewal. */
  #isUsed = false;
  /** Undefined while the process makes no calls. */
  #renewals: Promise<void> | undefined;
  #storingPause: Promise<unknown> | undefined;
  #endOfSleep = new AbortController();

  constructor(db: Database | undefined, caps: RateCaps, log: Logger) {
    super(caps, now, sleep);
    this.#db = db;
    this.#log = log;
  }

  override pause(key: string, ms: number): void {
    this.#pauseHere(key, ms);
    // If the pause can't be stored, the other processes learn of it from answers to their own calls.
    if (this.#db) this.#storingPause = storeCallPause(this.#db, key, ms).catch(() => {});
  }

  async releaseSlots(): Promise<void> {
    this.#isUsed = false;
    this.#endOfSleep.abort();
    if (!this.#isBusy()) await this.#renewals;
    await this.#storingPause;
  }

  #isBusy(): boolean {
    return this.#isUsed || !this.isIdle;
  }

  #pauseHere(key: string, ms: number): void {
    if (ms > this.pausedMs(key) + LONG_PAUSE_MS) {
      this.#log.warn({ key, seconds: Math.ceil(ms / 1000) }, "the service asked for a pause: calls to it wait");
    }
    super.pause(key, ms);
  }

  protected override onSlotRequest(): void {
    this.#isUsed = true;
    if (this.#db) this.#renewals ??= this.#renewUntilIdle(this.#db);
    else this.setShare(this.caps.maxConcurrent, Number.POSITIVE_INFINITY, { startsLater: false });
  }

  async #renewUntilIdle(db: Database): Promise<void> {
    while (this.#isBusy()) {
      this.#endOfSleep = new AbortController();
      this.#isUsed = false;
      let isSettled = false;
      try {
        isSettled = await this.#renew(db);
      } catch (error) {
        // While the process still has slots, its calls go on, and the next renewal may succeed.
        if (this.slots === 0) this.rejectWaiting(error);
      }
      await sleep(isSettled ? RENEW_MS : RENEW_MS_CONTENDED, this.#endOfSleep.signal).catch(() => {});
    }
    this.setShare(0, 0, { startsLater: false });
    // If this fails, the other processes wait until the share has expired.
    await signOff(db, this.#id).catch(() => {});
    this.#renewals = this.#isBusy() ? this.#renewUntilIdle(db) : undefined;
  }

  /**
   * A process announces slots before it reads what others have announced, and only then uses them. So if two want the same slot, at least
   * one sees the other. Returns false while this process may use fewer slots than it has announced or than `fairSlots` gives it.
   */
  async #renew(db: Database): Promise<boolean> {
    const startedMs = now();
    const held = Math.max(this.inFlight, this.slots);
    let read = await this.#announceAndRead(db, held);
    const announced = Math.max(held, read.wanted);
    if (announced > held) read = await this.#announceAndRead(db, announced);
    const usable = Math.min(announced, read.wanted);
    this.setShare(usable, startedMs + LIVE_MS - MARGIN_MS, { startsLater: read.hasOthers });
    return usable === announced && usable >= read.fair;
  }

  /** `wanted` is the fair number of slots, or what others leave free if that is lower. */
  async #announceAndRead(db: Database, count: number) {
    const { slots, pauses, nowMs } = await announce(db, this.#id, count);
    for (const [key, ms] of Object.entries(pauses)) this.#pauseHere(key, ms);
    const others = Object.entries(slots).filter(([id]) => id !== this.#id);
    const fair = fairSlots([...others.map(([id]) => id), this.#id], this.#id, this.caps, nowMs);
    const free = others.reduce((left, [, announced]) => left - announced, this.caps.maxConcurrent);
    return { fair, wanted: Math.max(Math.min(fair, free), 0), hasOthers: others.length > 0 };
  }
}

/** How many slots a fair division gives to the process `id`. If there are fewer slots than processes, the processes take turns. */
export function fairSlots(ids: readonly string[], id: string, caps: RateCaps, nowMs: number): number {
  const { maxConcurrent, requestsPerSecond } = caps;
  const turn = Math.floor(nowMs / (TURN_MS + (3 * 1000 * maxConcurrent) / requestsPerSecond));
  const rank = (ids.toSorted().indexOf(id) + turn) % ids.length;
  return Math.max(Math.ceil((maxConcurrent - rank) / ids.length), 0);
}
