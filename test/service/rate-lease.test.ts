// The lease loop of one process. The test simulates the clock and the stored leases.

import { expect, test } from "vitest";
import type { Demand, LeasedShare } from "../../src/rate-share.ts";
import { openLeasedRateLimiter, type RateLease } from "../../src/service/rate-lease.ts";

const NEVER = new AbortController().signal;
const CAP = 4;

/** Waits until everything that needs no timer has run. */
async function waitUntilSettled(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** The nth renewal is answered with the nth of `answers`, and every later one with the last. */
function openLimiter(
  answers: readonly (Partial<LeasedShare> | Error)[] = [],
  requestsPerSecond = Number.POSITIVE_INFINITY,
) {
  let nowMs = 1_000;
  const left = [...answers];
  const demands: Demand[] = [];
  const events: string[] = [];
  const timers = new Set<{ readonly atMs: number; readonly fire: () => void }>();
  let duringRenewal: (() => Promise<void>) | undefined;
  let pausesLost = 0;
  const lease: RateLease = {
    async renew(demand) {
      demands.push(demand);
      const answer = left.length > 1 ? left.shift() : left[0];
      await duringRenewal?.();
      if (answer instanceof Error) throw answer;
      return {
        slots: CAP,
        usableSlots: CAP,
        fairSlots: CAP,
        lifeMs: 10_000,
        startMs: 0,
        pauseMs: 0,
        keyPauses: {},
        ...answer,
      };
    },
    async reportPause(ms) {
      if (pausesLost > 0) {
        pausesLost--;
        throw new Error("no database");
      }
      events.push(`pause ${ms}`);
    },
    release: async (nextStartMs) => void events.push(`release ${nextStartMs}`),
  };
  const limiter = openLeasedRateLimiter(
    { requestsPerSecond, maxConcurrent: CAP, waitMsMax: 60_000 },
    lease,
    () => nowMs,
    (ms, signal) =>
      new Promise<void>((resolve, reject) => {
        const timer = { atMs: nowMs + ms, fire: resolve };
        timers.add(timer);
        signal.addEventListener("abort", () => {
          timers.delete(timer);
          reject(signal.reason);
        });
      }),
  );
  /** Moves the clock by `ms`, and fires the timers that end within that time. */
  async function pass(ms: number): Promise<void> {
    const untilMs = nowMs + ms;
    for (;;) {
      await waitUntilSettled();
      const [next] = [...timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs);
      if (next === undefined) break;
      timers.delete(next);
      nowMs = Math.max(nowMs, next.atMs);
      next.fire();
    }
    nowMs = untilMs;
    await waitUntilSettled();
  }
  let started = 0;
  async function start() {
    const permit = await limiter.acquire(NEVER);
    started++;
    return permit;
  }
  return {
    limiter,
    demands,
    events,
    pass,
    start,
    started: () => started,
    suspend: (ms: number) => {
      nowMs += ms;
    },
    losePauses: (count: number) => {
      pausesLost = count;
    },
    duringRenewal: (work: () => Promise<void>) => {
      duringRenewal = work;
    },
  };
}

test("calls that start together share one lease, which is renewed every two seconds while they run", async () => {
  const { start, demands, pass, events } = openLimiter();
  const permits = await Promise.all([start(), start(), start()]);
  expect(demands).toEqual([{ kept: 0, wanted: 3 }]);
  await pass(6_000);
  expect(demands).toHaveLength(4);
  expect(demands.at(-1)).toEqual({ kept: 4, wanted: 3 });
  for (const permit of permits) permit.release();
  await pass(10_000);
  expect(demands).toHaveLength(4);
  expect(events).toEqual(["release 0"]);
});

test("a process asks for as many slots as it used at most since the last renewal, even if no call is in flight at that moment", async () => {
  const { start, demands, pass } = openLimiter();
  await start().then((permit) => permit.release());
  const permits = await Promise.all([start(), start(), start()]);
  for (const permit of permits) permit.release();
  await pass(2_000);
  expect(demands).toMatchObject([{ wanted: 1 }, { wanted: 3 }]);
});

test("a process without a slot asks again twice a second", async () => {
  const none = { slots: 0, usableSlots: 0, fairSlots: 2 };
  const { start, started, demands, pass } = openLimiter([none, none, none, { slots: 2, usableSlots: 2, fairSlots: 2 }]);
  void start();
  await pass(1_400);
  expect(started()).toBe(0);
  await pass(200);
  expect(started()).toBe(1);
  expect(demands).toHaveLength(4);
});

test("a process keeps slots that another needs while its calls hold them, and then gives them back", async () => {
  const contested = { slots: 4, usableSlots: 2, fairSlots: 2 };
  const { start, started, demands, pass } = openLimiter([{}, contested, { slots: 2, usableSlots: 2, fairSlots: 2 }]);
  const permits = await Promise.all([start(), start(), start(), start()]);
  void start();
  await pass(2_000);
  permits[0]?.release();
  permits[1]?.release();
  await pass(400);
  // Two calls are in flight, as many as the new share allows.
  expect(started()).toBe(4);
  await pass(100);
  expect(demands).toMatchObject([{ kept: 0 }, { kept: 4 }, { kept: 2 }]);
  permits[2]?.release();
  await pass(10);
  expect(started()).toBe(5);
});

test("a process that can't renew its lease starts no call in the lease's last two seconds", async () => {
  const { start, started, pass, suspend, duringRenewal } = openLimiter();
  const permit = await start();
  duringRenewal(() => new Promise(() => {}));
  await pass(2_000);
  suspend(5_999);
  await start();
  expect(permit.isValid()).toBe(true);
  suspend(1);
  expect(permit.isValid()).toBe(false);
  void start();
  await waitUntilSettled();
  expect(started()).toBe(2);
});

test("a suspended process starts no call before it has renewed its lease", async () => {
  const { start, started, demands, pass, suspend, duringRenewal } = openLimiter([{}, {}, { slots: 1, usableSlots: 1 }]);
  const permits = await Promise.all([start(), start()]);
  await pass(2_000);
  const renewed = Promise.withResolvers<void>();
  duringRenewal(() => renewed.promise);
  suspend(60_000);
  void start();
  await waitUntilSettled();
  expect(started()).toBe(2);
  await pass(0);
  expect(demands.at(-1)).toEqual({ kept: 4, wanted: 3 });
  renewed.resolve();
  await waitUntilSettled();
  expect(started()).toBe(2);
  expect(permits.map((permit) => permit.isValid())).toEqual([false, false]);
  for (const permit of permits) permit.release();
  await waitUntilSettled();
  expect(started()).toBe(3);
});

test("if the first renewal fails, the calls that wait for it fail, and later calls start", async () => {
  const { start, pass, limiter } = openLimiter([new Error("no database"), {}]);
  await expect(start()).rejects.toThrow("no database");
  const later = start();
  await pass(500);
  const permit = await later;
  expect(permit.isValid()).toBe(true);
  await limiter.close();
});

test("a failed renewal fails no call before the lease ends", async () => {
  const { start, started, pass } = openLimiter([{}, new Error("no database")]);
  await start();
  await pass(7_000);
  await start();
  await pass(2_000);
  const failed = expect(start()).rejects.toThrow("no database");
  await pass(500);
  await failed;
  expect(started()).toBe(2);
});

test("a pause is stored before the lease is renewed, and a renewal requested before the pause does not end it", async () => {
  const { limiter, start, started, events, pass, duringRenewal } = openLimiter();
  const permit = await start();
  duringRenewal(async () => {
    if (events.length === 0) limiter.pause(7_000);
  });
  await pass(2_000);
  expect(events).toEqual(["pause 7000"]);
  void start();
  await pass(1_000);
  expect(started()).toBe(1);
  permit.release();
});

test("a pause that could not be stored goes on, and the next renewal stores what is left of it", async () => {
  const { limiter, start, started, events, pass, losePauses } = openLimiter([{}, { pauseMs: 5_500 }, { pauseMs: 0 }]);
  const permit = await start();
  losePauses(2);
  limiter.pause(8_000);
  permit.release();
  void start();
  await pass(2_000);
  expect(events).toEqual([]);
  await pass(1_000);
  expect(events).toEqual(["pause 5500"]);
  expect(started()).toBe(1);
  await pass(5_000);
  expect(started()).toBe(2);
});

test("a call whose signal is already aborted requests no lease", async () => {
  const { limiter, demands, pass } = openLimiter();
  await expect(limiter.acquire(AbortSignal.abort(new Error("stop")))).rejects.toThrow("stop");
  await pass(1_000);
  expect(demands).toEqual([]);
});

test("the next renewal starts a pause that another process reported, and ends one that a person ended", async () => {
  const { start, started, pass } = openLimiter([{}, { pauseMs: 60_000 }, { pauseMs: 58_000 }, { pauseMs: 0 }]);
  await start();
  await pass(2_000);
  void start();
  await pass(2_000);
  expect(started()).toBe(1);
  await pass(2_000);
  expect(started()).toBe(2);
});

test("the first call waits for the lease's startMs, and the release says when the rate allows the next call", async () => {
  const { limiter, start, started, pass, events } = openLimiter([{ startMs: 700 }], 1_000);
  const first = start();
  await pass(600);
  expect(started()).toBe(0);
  await pass(100);
  (await first).release();
  await limiter.close();
  expect(events).toEqual(["release 1"]);
});

test("a renewal that gives slots back says when the rate allows the next call on them", async () => {
  const contested = { slots: 4, usableSlots: 2, fairSlots: 2 };
  const { start, demands, pass } = openLimiter([{}, contested, { slots: 2, usableSlots: 2, fairSlots: 2 }], 4);
  await start();
  await pass(2_000);
  expect(demands.slice(1)).toEqual([
    { kept: 4, wanted: 1 },
    { kept: 2, wanted: 1, nextStartMs: 1_000 },
  ]);
});

test("a process that gets more slots waits for the lease's startMs before its next call", async () => {
  const { start, started, pass } = openLimiter([{ slots: 1, usableSlots: 1, fairSlots: 1 }, { startMs: 700 }], 1_000);
  await start();
  await pass(2_000);
  void start();
  await pass(600);
  expect(started()).toBe(1);
  await pass(100);
  expect(started()).toBe(2);
});

test("closing releases the lease at once", async () => {
  const { limiter, start, events } = openLimiter();
  (await start()).release();
  await limiter.close();
  expect(events).toEqual(["release 0"]);
});
