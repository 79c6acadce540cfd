// The behaviour of the attempt loop for several calls together.

import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { AppError } from "../../src/errors.ts";
import { Secret } from "../../src/secret.ts";
import type { AttemptReport } from "../../src/service/client-types.ts";
import { Limiter } from "../../src/service/limiter.ts";
import { answer, answering, answeringJson, answerJson } from "../support/scripted-server.ts";
import { hangSignal, KEY, READ, serve } from "./open-test-service.ts";

const LIMITER_STUB = { pause() {}, pausedMs: () => 0, releaseSlots: async () => {} };
const CALL = { key: "k", project: "p", waitMsMax: 0 };

test("after a 429 with Retry-After the next attempt starts exactly when the wait ends", async () => {
  const times: number[] = [];
  const { service, read } = await serve(
    ({ number }, response) => {
      times.push(service.now());
      if (number === 1) answer(response, 429, "", { "retry-after": "31" });
      else answerJson(response, 200, {});
    },
    {},
    { random: () => 0 },
  );
  await read();
  expect(times).toEqual([0, 31_000]);
});

test("a call whose permit became invalid before it was sent is prepared again with another permit", async () => {
  const events: string[] = [];
  const acquire = async () => {
    const isThird = events.filter((event) => event === "release").length === 2;
    return { isValid: () => isThird, release: () => void events.push("release") };
  };
  const { read } = await serve(
    (_request, response) => {
      events.push("send");
      answerJson(response, 200, {});
    },
    {},
    { limiter: { ...LIMITER_STUB, acquire } },
  );
  await read({ beforeAttempt: async () => void events.push("prepare") });
  expect(events.join(" ")).toBe("prepare release prepare release prepare send release");
});

test.each(["GET", "POST"] as const)(
  "a %s whose permit became invalid while it was connecting is sent once, with another permit",
  async (method) => {
    const held: number[] = [];
    let permits = 0;
    const acquire = async () => {
      const number = ++permits;
      let checks = 0;
      held.push(number);
      // The first permit is valid at its first check, before connecting, and never again.
      return { isValid: () => number > 1 || ++checks === 1, release: () => void held.splice(held.indexOf(number), 1) };
    };
    const heldAtRequests: number[][] = [];
    const reports: AttemptReport[] = [];
    const { read } = await serve(
      (_request, response) => {
        heldAtRequests.push([...held]);
        answerJson(response, 200, {});
      },
      {},
      { limiter: { ...LIMITER_STUB, acquire }, onAttempt: (report) => void reports.push(report) },
    );
    await read({ method });
    expect({ heldAtRequests, held }).toEqual({ heldAtRequests: [[2]], held: [] });
    expect(reports).toMatchObject([{ result: "ok" }]);
  },
);

test("no wait for the rate is negative, although time passes while it is computed", async () => {
  const waits: number[] = [];
  for (let requestsPerSecond = 10; requestsPerSecond <= 500; requestsPerSecond++) {
    let nowMs = 0;
    const now = () => {
      nowMs += 2;
      return nowMs;
    };
    const limiter = new Limiter({ maxConcurrent: 1, requestsPerSecond }, now, async (ms) => void waits.push(ms));
    limiter.setShare(1, Number.POSITIVE_INFINITY, { startsLater: false });
    for (let i = 0; i < 10; i++) (await limiter.acquire(CALL, hangSignal())).release();
  }
  expect(waits.length).toBeGreaterThan(100);
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(1);
});

test("a pause that the answer to one call asks for holds for all calls", async () => {
  const times: number[] = [];
  const { service, read } = await serve(
    ({ target }, response) => {
      times.push(service.now());
      if (target.endsWith("/first") && times.length === 2) answer(response, 503, "", { "retry-after": "60" });
      else answerJson(response, 200, {});
    },
    { maxConcurrent: 1 },
  );
  const call = (part: string) => read({ path: ["v1", "projects", "p1", part] });
  await call("warm-up");
  await Promise.all([call("first"), call("second"), call("third")]);
  // Calls start 1 ms apart, and the pause begins when the second is answered.
  expect(times).toEqual([0, 1, ...times.slice(2).filter((ms) => ms >= 60_001)]);
  expect(times).toHaveLength(5);
});

test.each([
  [503, [60_000]],
  [429, []],
])("after a %i that asks for a minute a call with another key waits %j", async (status, waits) => {
  const { service } = await serve(({ number }, response) => {
    if (number === 1) answer(response, status, "", { "retry-after": "60" });
    else answerJson(response, 200, {});
  });
  const call = (key: Secret) => service.call({ ...READ, method: "POST" }, key, hangSignal());
  await expect(call(KEY.named("env KEY"))).rejects.toMatchObject({ details: { status } });
  await call(new Secret("sk_other_0123456789abcdef", "env OTHER"));
  expect(service.sleeps.filter((ms) => ms > 1)).toEqual(waits);
});

test("a shorter pause that is asked for later does not end a longer one", async () => {
  const sent = { long: Promise.withResolvers<ServerResponse>(), short: Promise.withResolvers<ServerResponse>() };
  const { service, read } = await serve(({ target }, response) => {
    const name = target.split("/").at(-1);
    if (name === "long" || name === "short") sent[name].resolve(response);
    else answerJson(response, 200, {});
  });
  const call = (name: string) => read({ path: ["v1", "projects", "p1", name], method: "POST" });
  const [long, short] = [call("long"), call("short")];
  const responses = await Promise.all([sent.long.promise, sent.short.promise]);
  answer(responses[0], 429, "", { "retry-after": "60" });
  await expect(long).rejects.toMatchObject({ code: "rate_limited" });
  answer(responses[1], 429, "", { "retry-after": "1" });
  await expect(short).rejects.toMatchObject({ code: "rate_limited" });
  await read();
  expect(service.sleeps.at(-1)).toBe(60_000);
});

test.each([429, 503])("a %i that asks for an hour fails the call and later ones at once", async (status) => {
  const { server, service, read } = await serve(answering(status, "slow down", { "retry-after": "3600" }));
  const code = "rate_limited";
  const message = /slow down; it asks to be called again in 3600 s, and this program waits at most 300 s/;
  await expect(read()).rejects.toMatchObject({ code, message: expect.stringMatching(message), details: { status } });
  await expect(read()).rejects.toMatchObject({ code, details: { sent: "no" } });
  expect(server.requests).toHaveLength(1);
  expect(service.sleeps).toEqual([]);
});

test("while the last three calls have failed with 500, a call is tried only once", async () => {
  let status = 0;
  const { server, read } = await serve((_request, response) => answerJson(response, status, {}));
  const requests = [];
  for (status of [500, 500, 500, 500, 500, 404, 500, 500, 500, 500, 200, 500]) {
    const before = server.requests.length;
    await read().catch(() => {});
    requests.push(server.requests.length - before);
  }
  expect(requests).toEqual([5, 5, 5, 1, 1, 1, 5, 5, 5, 1, 1, 5]);
});

test.each<[string, AppError]>([
  ["a refusal that is known already", new AppError("unauthorized", "not called again after a refusal")],
  ["a database that gives no fetch number", new AppError("database", "gone")],
])("a service that is down still counts as down after %s", async (_, error) => {
  const { server, read } = await serve(answeringJson(500));
  const attemptsOf = async (beforeAttempt: () => Promise<void>) => {
    const before = server.requests.length;
    await read({ beforeAttempt }).catch(() => {});
    return server.requests.length - before;
  };
  const numbers = [];
  for (let i = 0; i < 4; i++) numbers.push(await attemptsOf(async () => {}));
  numbers.push(await attemptsOf(() => Promise.reject(error)), await attemptsOf(async () => {}));
  expect(numbers).toEqual([5, 5, 5, 1, 0, 1]);
});

test("at most maxConcurrent calls are in flight, on as many connections", async () => {
  const waiting: ServerResponse[] = [];
  const counts: number[] = [];
  let inFlight = 0;
  const { server, read } = await serve(
    ({ number }, response) => {
      waiting.push(response);
      // The client sends the first call alone, and the others after its answer.
      if (number > 1 && waiting.length < 3) return;
      inFlight -= waiting.length;
      for (const one of waiting.splice(0)) answerJson(one, 200, {});
    },
    { maxConcurrent: 3 },
  );
  const beforeAttempt = async () => void counts.push(++inFlight);
  await Promise.all(Array.from({ length: 13 }, () => read({ beforeAttempt })));
  expect([Math.max(...counts), server.connections()]).toEqual([3, 3]);
});

test("calls start at even intervals", async () => {
  const times: number[] = [];
  const { service, read } = await serve(
    (_request, response) => {
      times.push(service.now());
      answerJson(response, 200, {});
    },
    { requestsPerSecond: 2 },
  );
  for (let i = 0; i < 4; i++) await read();
  expect(times).toEqual([0, 500, 1_000, 1_500]);
});

test("every attempt of a call is reported, with its outcome", async () => {
  const reports: AttemptReport[] = [];
  const { read } = await serve(
    ({ number }, response) => answerJson(response, [503, 429][number - 1] ?? 200, {}),
    {},
    { onAttempt: (report) => void reports.push(report) },
  );
  await read();
  expect(reports.map(({ operation, result }) => [operation, result])).toEqual([
    ["breakdown", "unavailable"],
    ["breakdown", "rate_limited"],
    ["breakdown", "ok"],
  ]);
});

test("a call that is aborted while it waits for its start leaves its slot to others", async () => {
  const sleep = () => Promise.reject(new Error("stopped"));
  const limiter = new Limiter({ maxConcurrent: 1, requestsPerSecond: 1 }, () => 0, sleep);
  limiter.setShare(1, 1, { startsLater: false });
  (await limiter.acquire(CALL, hangSignal())).release();
  await expect(limiter.acquire(CALL, hangSignal())).rejects.toThrow("stopped");
  expect(limiter.isIdle).toBe(true);
});

test("an attempt that the caller aborts is reported as stopped, not as a failure of the service", async () => {
  const reports: AttemptReport[] = [];
  const controller = new AbortController();
  const onAttempt = (report: AttemptReport) => void reports.push(report);
  const { service } = await serve(() => controller.abort(new Error("enough")), {}, { onAttempt });
  await expect(service.call(READ, KEY, controller.signal)).rejects.toThrow("enough");
  expect(reports).toMatchObject([{ operation: "breakdown", result: "stopped" }]);
});
