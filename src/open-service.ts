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
import { openLimiter, type Rate, type RateCaps } from "./service/limiter.ts";
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
type Opened = { caps: RateCaps; readonly rate: Rate };
const opened = new WeakMap<object, Opened>();

/** All that this process opens on the database calls at one rate: that of the newest configuration. */
export function sharedRate(db: Database | undefined, caps: RateCaps, log: Logger): Rate {
  const known: Opened = opened.get(db ?? NO_DATABASE) ?? { caps, rate: openRate(db, () => known.caps, log) };
  known.caps = caps;
  opened.set(db ?? NO_DATABASE, known);
  return known.rate;
}

function openRate(db: Database | undefined, caps: () => RateCaps, log: Logger): Rate {
  const id = randomUUID();
  const limiter = openLimiter(caps, now, sleep, () => {
    isUsed = true;
    if (db) renewals ??= renewWhileUsed(db);
    else limiter.setShare(caps().maxConcurrent, Number.POSITIVE_INFINITY, false);
  });
  let storing: Promise<unknown> | undefined;
  /** Whether a call was asked for since the last renewal. */
  let isUsed = false;
  let renewals: Promise<void> | undefined;
  let rest = new AbortController();
  const isBusy = () => isUsed || !limiter.isIdle();

  async function renewWhileUsed(to: Database): Promise<void> {
    while (isBusy()) {
      rest = new AbortController();
      isUsed = false;
      let isSettled = false;
      try {
        isSettled = await renew(to);
      } catch (error) {
        if (limiter.slots() === 0) limiter.rejectWaiting(error);
      }
      await sleep(isSettled ? RENEW_MS : RENEW_MS_CONTENDED, rest.signal).catch(() => {});
    }
    limiter.setShare(0, 0, false);
    // If it fails, the others notice by the time.
    await signOff(to, id).catch(() => {});
    renewals = isBusy() ? renewWhileUsed(to) : undefined;
  }

  /**
   * A process uses no slot that it has not announced, and announces before it reads what the others have announced. So of two that want the
   * same slot at least one sees it. Returns whether it has what it is entitled to, and no more.
   */
  async function renew(to: Database): Promise<boolean> {
    const startedMs = now();
    let announced = Math.max(limiter.inFlight(), limiter.slots());
    for (let isRaised = false; ; isRaised = true) {
      const { slots, pauses, nowMs } = await announce(to, id, announced);
      for (const [key, ms] of Object.entries(pauses)) pause(key, ms);
      const others = Object.entries(slots).filter(([other]) => other !== id);
      const fair = fairSlots([...others.map(([other]) => other), id], id, caps(), nowMs);
      const free = others.reduce((left, [, count]) => left - count, caps().maxConcurrent);
      const wanted = Math.max(Math.min(fair, free), 0);
      if (wanted <= announced || isRaised) {
        const usable = Math.min(wanted, announced);
        limiter.setShare(usable, startedMs + LIVE_MS - MARGIN_MS, others.length > 0);
        return usable === announced && usable >= fair;
      }
      announced = wanted;
    }
  }

  function pause(key: string, ms: number): void {
    const isNews = ms > limiter.pausedMs(key) + LONG_PAUSE_MS;
    limiter.pause(key, ms);
    if (isNews) log.warn({ key, seconds: Math.ceil(ms / 1000) }, "calls to the service wait, as it asked for a pause");
  }

  return {
    ...limiter,
    pause(key, ms) {
      pause(key, ms);
      // If it can't be stored, the others are told by the service.
      if (db) storing = storePause(db, key, ms).catch(() => {});
    },
    async rest() {
      isUsed = false;
      rest.abort("at rest");
      if (!isBusy()) await renewals;
      await storing;
    },
  };
}

/** The cap divided by the processes. What is left over, and the slots if there are fewer than processes, are had in turn. */
export function fairSlots(ids: readonly string[], id: string, caps: RateCaps, nowMs: number): number {
  const { maxConcurrent, requestsPerSecond } = caps;
  const turn = Math.floor(nowMs / (TURN_MS + (3 * 1000 * maxConcurrent) / requestsPerSecond));
  const rank = (ids.toSorted().indexOf(id) + turn) % ids.length;
  return Math.max(Math.ceil((maxConcurrent - rank) / ids.length), 0);
}
