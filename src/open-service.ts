// Opens the service at the one rate of this process. Its share of the caps is renewed in the database while calls are made; without a
// database it is all.

import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { App } from "./app.ts";
import { sleep } from "./async.ts";
import type { Config } from "./config/config.ts";
import { announce, LIVE_MS, signOff, storePause } from "./db/calling-processes.ts";
import type { Database } from "./db/connection/database.ts";
import { proxyOf } from "./proxy.ts";
import { Limiter, type Rate, type RateCaps } from "./service/limiter.ts";
import type { Service, ServiceDeps } from "./service/service.ts";

/** On one database all calls of the process share one rate. The client is loaded only here, because half the commands make no calls. */
export async function openServiceFor(
  app: App,
  config: Config,
  db: Database | undefined,
  deps: Pick<ServiceDeps, "onAttempt" | "waitMsMax"> = {},
): Promise<Service> {
  const { openService } = await import("./service/client.ts");
  const rate = sharedRate(db, config.service, app.log);
  const scrub = (text: string) => app.scrubber.scrub(text);
  return openService(config.service, { ...deps, rate, proxy: proxyOf(app.env), log: app.log, scrub });
}

const RENEW_MS = 2_000;
/** While slots change hands. */
const RENEW_MS_CONTENDED = 250;
/** No call starts in the last part of the time for which the database counts the process as live: it takes a moment to arrive. */
const MARGIN_MS = 2_000;
/** With more processes than slots each has one in turn, for this time and that of three calls. */
const TURN_MS = 10_000;
const LONG_PAUSE_MS = 5_000;

const now = () => performance.now();
const NO_DATABASE = {};
const opened = new WeakMap<object, ProcessRate>();

/** All that this process opens on the database calls at one rate: that of the newest configuration. */
export function sharedRate(db: Database | undefined, caps: RateCaps, log: Logger): Rate {
  const rate = opened.get(db ?? NO_DATABASE) ?? new ProcessRate(db, caps, log);
  rate.caps = caps;
  opened.set(db ?? NO_DATABASE, rate);
  return rate;
}

class ProcessRate implements Rate {
  caps: RateCaps;
  readonly #db: Database | undefined;
  readonly #log: Logger;
  readonly #id = randomUUID();
  readonly #limiter = new Limiter(
    () => this.caps,
    now,
    sleep,
    () => this.#renewWhileUsed(),
  );
  /** Whether a call was asked for since the last renewal. */
  #isUsed = false;
  /** Ends when the process is at rest; undefined before and after. */
  #renewals: Promise<void> | undefined;
  #storing: Promise<unknown> | undefined;
  #rest = new AbortController();

  constructor(db: Database | undefined, caps: RateCaps, log: Logger) {
    this.#db = db;
    this.caps = caps;
    this.#log = log;
  }

  acquire(...args: Parameters<Rate["acquire"]>): ReturnType<Rate["acquire"]> {
    return this.#limiter.acquire(...args);
  }

  pausedMs(key: string): number {
    return this.#limiter.pausedMs(key);
  }

  pause(key: string, ms: number): void {
    this.#pauseHere(key, ms);
    // If it can't be stored, the others are told by the service.
    if (this.#db) this.#storing = storePause(this.#db, key, ms).catch(() => {});
  }

  async rest(): Promise<void> {
    this.#isUsed = false;
    this.#rest.abort("at rest");
    if (!this.#isBusy()) await this.#renewals;
    await this.#storing;
  }

  #isBusy(): boolean {
    return this.#isUsed || !this.#limiter.isIdle;
  }

  #pauseHere(key: string, ms: number): void {
    const isNews = ms > this.#limiter.pausedMs(key) + LONG_PAUSE_MS;
    this.#limiter.pause(key, ms);
    if (isNews)
      this.#log.warn({ key, seconds: Math.ceil(ms / 1000) }, "calls to the service wait, as it asked for a pause");
  }

  #renewWhileUsed(): void {
    this.#isUsed = true;
    if (this.#db) this.#renewals ??= this.#renewUntilIdle(this.#db);
    else this.#limiter.setShare(this.caps.maxConcurrent, Number.POSITIVE_INFINITY, false);
  }

  async #renewUntilIdle(db: Database): Promise<void> {
    while (this.#isBusy()) {
      this.#rest = new AbortController();
      this.#isUsed = false;
      let isSettled = false;
      try {
        isSettled = await this.#renew(db);
      } catch (error) {
        if (this.#limiter.slots === 0) this.#limiter.rejectWaiting(error);
      }
      await sleep(isSettled ? RENEW_MS : RENEW_MS_CONTENDED, this.#rest.signal).catch(() => {});
    }
    this.#limiter.setShare(0, 0, false);
    // If it fails, the others notice by the time.
    await signOff(db, this.#id).catch(() => {});
    this.#renewals = this.#isBusy() ? this.#renewUntilIdle(db) : undefined;
  }

  /**
   * A process uses no slot that it has not announced, and announces before it reads what the others have announced. So of two that want the
   * same slot at least one sees it. Returns whether it has what it is entitled to, and no more.
   */
  async #renew(db: Database): Promise<boolean> {
    const startedMs = now();
    let announced = Math.max(this.#limiter.inFlight, this.#limiter.slots);
    for (let isRaised = false; ; isRaised = true) {
      const { slots, pauses, nowMs } = await announce(db, this.#id, announced);
      for (const [key, ms] of Object.entries(pauses)) this.#pauseHere(key, ms);
      const others = Object.entries(slots).filter(([other]) => other !== this.#id);
      const fair = fairSlots([...others.map(([other]) => other), this.#id], this.#id, this.caps, nowMs);
      const free = others.reduce((left, [, count]) => left - count, this.caps.maxConcurrent);
      const wanted = Math.max(Math.min(fair, free), 0);
      if (wanted <= announced || isRaised) {
        const usable = Math.min(wanted, announced);
        this.#limiter.setShare(usable, startedMs + LIVE_MS - MARGIN_MS, others.length > 0);
        return usable === announced && usable >= fair;
      }
      announced = wanted;
    }
  }
}

/** The cap divided by the processes. What is left over, and the slots if there are fewer than processes, are had in turn. */
export function fairSlots(ids: readonly string[], id: string, caps: RateCaps, nowMs: number): number {
  const { maxConcurrent, requestsPerSecond } = caps;
  const turn = Math.floor(nowMs / (TURN_MS + (3 * 1000 * maxConcurrent) / requestsPerSecond));
  const rank = (ids.toSorted().indexOf(id) + turn) % ids.length;
  return Math.max(Math.ceil((maxConcurrent - rank) / ids.length), 0);
}
