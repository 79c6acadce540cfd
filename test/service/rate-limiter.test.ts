import { expect, test } from "vitest";
import { openPace, type PaceSettings } from "../../src/service/rate-limiter.ts";

const NEVER = new AbortController().signal;

/** A pace on a clock that moves only when somebody sleeps. */
function paceOf(settings: Partial<PaceSettings>) {
  let nowMs = 1_000_000;
  const startMs = nowMs;
  const pace = openPace(
    { requestsPerSecond: 1_000, maxConcurrent: 1_000, waitMsMax: 300_000, ...settings },
    () => nowMs,
    async (ms, signal) => {
      signal.throwIfAborted();
      nowMs += ms;
    },
  );
  return {
    ...pace,
    sinceStartMs: () => nowMs - startMs,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

async function startsOf(pace: ReturnType<typeof paceOf>, count: number): Promise<number[]> {
  const starts: number[] = [];
  for (let i = 0; i < count; i++) {
    const leave = await pace.enter(NEVER);
    starts.push(pace.sinceStartMs());
    leave();
  }
  return starts;
}

test("requests start evenly, so that no second has more than it may", async () => {
  expect(await startsOf(paceOf({ requestsPerSecond: 5 }), 8)).toEqual([0, 200, 400, 600, 800, 1_000, 1_200, 1_400]);
});

test("less than one request a second is possible", async () => {
  expect(await startsOf(paceOf({ requestsPerSecond: 0.5 }), 3)).toEqual([0, 2_000, 4_000]);
});

test("a long pause saves nothing up", async () => {
  const pace = paceOf({ requestsPerSecond: 2 });
  pace.pass(3_600_000);
  const [first = 0, ...others] = await startsOf(pace, 4);
  expect(others.map((start) => start - first)).toEqual([500, 1_000, 1_500]);
});

test("no request starts while the service is left alone, whoever was told", async () => {
  const pace = paceOf({});
  pace.hold(31_000);
  pace.hold(2_000);
  expect(await startsOf(pace, 2)).toEqual([31_000, 31_001]);
});

test("a wait that is longer than what is waited fails at once, for every call, until enough of it has passed", async () => {
  const pace = paceOf({ waitMsMax: 60_000 });
  pace.hold(90_000);
  const tooLong = { code: "rate_limited", details: { askedSeconds: 90, sent: "no" } };
  await expect(pace.enter(NEVER)).rejects.toMatchObject(tooLong);
  await expect(pace.enter(NEVER)).rejects.toMatchObject(tooLong);
  expect(pace.sinceStartMs()).toBe(0);

  pace.pass(30_000);
  expect(await startsOf(pace, 1)).toEqual([90_000]);
});

test("a failed wait gives its place back", async () => {
  const pace = paceOf({ maxConcurrent: 1, waitMsMax: 1_000 });
  pace.hold(2_000);
  await expect(pace.enter(NEVER)).rejects.toMatchObject({ code: "rate_limited" });
  pace.pass(2_000);
  expect(await startsOf(pace, 1)).toEqual([2_000]);
});

test("only so many run at once, and the others follow in order", async () => {
  const pace = paceOf({ maxConcurrent: 2 });
  const started: number[] = [];
  const enter = async (number: number) => {
    const leave = await pace.enter(NEVER);
    started.push(number);
    return leave;
  };
  const [first, second, third, fourth] = [enter(1), enter(2), enter(3), enter(4)];
  const leaveFirst = await first;
  await second;
  expect(started).toEqual([1, 2]);
  leaveFirst();
  const leaveThird = await third;
  expect(started).toEqual([1, 2, 3]);
  leaveThird();
  await fourth;
  expect(started).toEqual([1, 2, 3, 4]);
});

test("an abort ends the wait for a place with its own reason, and the place goes to the next", async () => {
  const pace = paceOf({ maxConcurrent: 1 });
  const leave = await pace.enter(NEVER);
  const controller = new AbortController();
  const aborted = pace.enter(controller.signal);
  const next = pace.enter(NEVER);
  controller.abort("no more");
  await expect(aborted).rejects.toBe("no more");
  leave();
  await next;
});
