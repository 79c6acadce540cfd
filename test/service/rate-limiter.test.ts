import { expect, test } from "vitest";
import { LocalRateLimiter, type RateLimitSettings } from "../../src/service/rate-limiter.ts";

const NEVER = new AbortController().signal;

/** A rate limiter on a clock that moves only by `sleep` and `pass`. */
function openLimiter(settings: Partial<RateLimitSettings>) {
  let nowMs = 1_000_000;
  const startMs = nowMs;
  const reported: string[] = [];
  const limiter = new LocalRateLimiter(
    { requestsPerSecond: 1_000, maxConcurrent: 1_000, waitMsMax: 300_000, ...settings },
    () => nowMs,
    async (ms, signal) => {
      signal.throwIfAborted();
      nowMs += ms;
    },
    (wait, seconds) => reported.push(`${wait} ${seconds}`),
  );
  return Object.assign(limiter, {
    reported,
    now: () => nowMs,
    sinceStartMs: () => nowMs - startMs,
    pass: (ms: number) => {
      nowMs += ms;
    },
  });
}

async function startsOf(limiter: ReturnType<typeof openLimiter>, count: number): Promise<number[]> {
  const starts: number[] = [];
  for (let i = 0; i < count; i++) {
    const permit = await limiter.acquire(NEVER);
    starts.push(limiter.sinceStartMs());
    permit.release();
  }
  return starts;
}

test("calls start at even intervals", async () => {
  expect(await startsOf(openLimiter({ requestsPerSecond: 5 }), 8)).toEqual([
    0, 200, 400, 600, 800, 1_000, 1_200, 1_400,
  ]);
});

test("the rate can be less than one call a second", async () => {
  expect(await startsOf(openLimiter({ requestsPerSecond: 0.5 }), 3)).toEqual([0, 2_000, 4_000]);
});

test("permits that were not used during an idle time are not saved up", async () => {
  const limiter = openLimiter({ requestsPerSecond: 2 });
  limiter.pass(3_600_000);
  const [first = 0, ...others] = await startsOf(limiter, 4);
  expect(others.map((start) => start - first)).toEqual([500, 1_000, 1_500]);
});

test("no call starts during a pause, and a shorter pause does not end a longer one", async () => {
  const limiter = openLimiter({});
  limiter.pause(31_000);
  limiter.pause(2_000);
  expect(await startsOf(limiter, 2)).toEqual([31_000, 31_001]);
});

test("every call fails at once while the rest of the pause is longer than waitMsMax", async () => {
  const limiter = openLimiter({ waitMsMax: 60_000 });
  limiter.pause(90_000);
  const tooLong = { code: "rate_limited", details: { askedSeconds: 90, sent: "no" } };
  await expect(limiter.acquire(NEVER)).rejects.toMatchObject(tooLong);
  await expect(limiter.acquire(NEVER)).rejects.toMatchObject(tooLong);
  expect(limiter.sinceStartMs()).toBe(0);

  limiter.pass(30_000);
  expect(await startsOf(limiter, 1)).toEqual([90_000]);
});

test("a call that fails because of a pause takes no slot", async () => {
  const limiter = openLimiter({ maxConcurrent: 1, waitMsMax: 1_000 });
  limiter.pause(2_000);
  await expect(limiter.acquire(NEVER)).rejects.toMatchObject({ code: "rate_limited" });
  limiter.pass(2_000);
  expect(await startsOf(limiter, 1)).toEqual([2_000]);
});

test("at most maxConcurrent calls run at once, and the others start in order", async () => {
  const limiter = openLimiter({ maxConcurrent: 2 });
  const started: number[] = [];
  const acquire = async (number: number) => {
    const permit = await limiter.acquire(NEVER);
    started.push(number);
    return permit;
  };
  const [first, second, third, fourth] = [acquire(1), acquire(2), acquire(3), acquire(4)];
  const permit = await first;
  await second;
  await new Promise((resolve) => setImmediate(resolve));
  expect(started).toEqual([1, 2]);
  permit.release();
  permit.release();
  (await third).release();
  await fourth;
  expect(started).toEqual([1, 2, 3, 4]);
});

test("an abort ends the wait for a slot with its own reason, and the slot goes to the next call", async () => {
  const limiter = openLimiter({ maxConcurrent: 1 });
  const permit = await limiter.acquire(NEVER);
  const controller = new AbortController();
  const aborted = limiter.acquire(controller.signal);
  const next = limiter.acquire(NEVER);
  controller.abort("no more");
  await expect(aborted).rejects.toBe("no more");
  permit.release();
  await next;
});

test("a process with a quarter of the slots has a quarter of the rate", async () => {
  const limiter = openLimiter({ requestsPerSecond: 20, maxConcurrent: 8 });
  limiter.setShare({ slots: 2, untilMs: Number.POSITIVE_INFINITY });
  expect(await startsOf(limiter, 3)).toEqual([0, 200, 400]);
  const permits = [await limiter.acquire(NEVER), await limiter.acquire(NEVER)];
  expect(limiter).toMatchObject({ inFlight: 2, waiting: 0 });
  const third = limiter.acquire(NEVER);
  expect(limiter).toMatchObject({ inFlight: 2, waiting: 1 });
  permits[0]?.release();
  await third;
});

test("a permit from before a pause is invalid until the pause is over", async () => {
  const limiter = openLimiter({});
  const permit = await limiter.acquire(NEVER);
  limiter.pause(2_000);
  expect(permit.isValid()).toBe(false);
  limiter.pass(2_000);
  expect(permit.isValid()).toBe(true);
});

test("permits stay valid if the share is renewed in time, and are invalid for good once it has expired", async () => {
  const limiter = openLimiter({});
  limiter.setShare({ slots: 4, untilMs: limiter.now() + 8_000 });
  const permit = await limiter.acquire(NEVER);
  expect(permit.isValid()).toBe(true);
  limiter.pass(7_999);
  limiter.setShare({ slots: 4, untilMs: limiter.now() + 8_000 });
  expect(permit.isValid()).toBe(true);
  limiter.pass(8_000);
  expect(permit.isValid()).toBe(false);
  limiter.setShare({ slots: 4, untilMs: limiter.now() + 8_000 });
  expect(permit.isValid()).toBe(false);
  expect((await limiter.acquire(NEVER)).isValid()).toBe(true);
});

test("a slightly late timer costs no permit, but the permits that a suspended process missed are lost", async () => {
  let nowMs = 0;
  let lateMs = 3;
  const limiter = new LocalRateLimiter(
    { requestsPerSecond: 100, maxConcurrent: 4, waitMsMax: 0 },
    () => nowMs,
    async (ms) => {
      // Lets the call that was started before run first.
      await new Promise((resolve) => setImmediate(resolve));
      nowMs += ms + lateMs;
    },
  );
  const starts: number[] = [];
  const start = async () => {
    const permit = await limiter.acquire(NEVER);
    starts.push(nowMs);
    permit.release();
  };
  await Promise.all(Array.from({ length: 5 }, start));
  expect(starts).toEqual([0, 13, 23, 33, 43]);
  lateMs = 60_000;
  await Promise.all(Array.from({ length: 6 }, start));
  // At most as many calls as slots start at once.
  expect(starts.slice(5).filter((ms) => ms < 120_000).length).toBeLessThanOrEqual(4);
});

test("a long pause and its end are each reported once, a short pause is not", async () => {
  const limiter = openLimiter({});
  limiter.pause(4_000);
  await startsOf(limiter, 1);
  expect(limiter.reported).toEqual([]);
  limiter.pause(60_000);
  await startsOf(limiter, 2);
  expect(limiter.reported).toEqual(["pause 60", "over 60"]);
});

test("a long wait for slots of other processes and its end are each reported once", async () => {
  let nowMs = 0;
  const reported: string[] = [];
  const limiter = new LocalRateLimiter(
    { requestsPerSecond: 100, maxConcurrent: 4, waitMsMax: 0 },
    () => nowMs,
    async (ms) => {
      nowMs += ms;
      if (nowMs >= 60_000) limiter.setShare({ slots: 1, untilMs: Number.POSITIVE_INFINITY });
    },
    (wait, seconds) => reported.push(`${wait} ${seconds}`),
  );
  limiter.setShare({ slots: 0, untilMs: 0 });
  await limiter.acquire(NEVER);
  expect(reported).toEqual(["slots 15", "over 60"]);
});
