// How a call is sent, repeated and ended, and what its error shows.

import { expect, test } from "vitest";
import { AppError } from "../../src/errors.ts";
import { Secret } from "../../src/secret.ts";
import {
  answer,
  answeringJson,
  answerJson,
  rawServer,
  type Script,
  scriptedServer,
} from "../support/scripted-server.ts";
import { hangSignal, KEY, KEY_TEXT, openTestService, READ, serve } from "./open-test-service.ts";

test.each([
  ["Token", `Token ${KEY_TEXT}`],
  ["Bearer", `Bearer ${KEY_TEXT}`],
  ["none", KEY_TEXT],
] as const)("a call sends its key in the scheme %s", async (authScheme, authorization) => {
  const { server, read } = await serve(answeringJson(201, { results: [1.5] }), { authScheme });
  expect(await read()).toEqual({ status: 201, value: { results: [1.5] } });
  const headers = { authorization, accept: "application/json", "accept-encoding": "identity" };
  expect(server.requests).toMatchObject([{ headers }]);
});

test("a path in baseUrl is put before the path of the call", async () => {
  await using server = await scriptedServer(answeringJson(200));
  await using service = openTestService(`${server.origin}/speech/`);
  const query = new URLSearchParams({ start: "2026-03-01", note: "a b&c" });
  await service.call({ ...READ, query }, KEY, hangSignal());
  expect(server.requests[0]?.target).toBe("/speech/v1/projects/p1/usage/breakdown?start=2026-03-01&note=a+b%26c");
});

test.each(["..", ".", "", "a/b", "%2e%2e", "a\r\nb", "a b", "ä", "x".repeat(129)])(
  "the id %j is refused before anything is sent",
  async (id) => {
    const { server, read } = await serve(answeringJson(200));
    const call = read({ path: ["v1", "projects", id, "usage"] });
    await expect(call).rejects.toMatchObject({ code: "config", details: { sent: "no" } });
    expect(server.connections()).toBe(0);
  },
);

test.each(["", "two words", "line\nbreak", "sk_käse"])(
  "the key %j is refused before anything is sent",
  async (text) => {
    const { server, service } = await serve(answeringJson(200));
    await expect(service.call(READ, new Secret(text), hangSignal())).rejects.toMatchObject({ code: "config" });
    expect(server.connections()).toBe(0);
  },
);

test.each([408, 425, 429, 499, 500, 502, 503, 504])(
  "a request that is answered %i every time is sent five times",
  async (status) => {
    const { server, service, read } = await serve(answeringJson(status, { message: "later" }));
    await expect(read()).rejects.toMatchObject({
      code: status === 429 ? "rate_limited" : "unavailable",
      message: `GET /v1/projects/p1/usage/breakdown: the service answered ${status}: later (5 attempts)`,
      details: { status },
    });
    expect(server.requests).toHaveLength(5);
    expect(service.sleeps).toEqual([500, 1_000, 2_000, 4_000]);
  },
);

test("failures before a successful attempt are logged and not thrown", async () => {
  const { service, read } = await serve(({ number }, response) =>
    number < 3 ? answer(response, 503, "") : answerJson(response, 200, { number }),
  );
  expect((await read()).value).toEqual({ number: 3 });
  expect(service.lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 40, msg: "service call failed, trying again", attempt: 1, attempts: 5, code: "unavailable", delayMs: 500 },
    { attempt: 2, delayMs: 1_000 },
  ]);
});

test.each([400, 402, 404, 405, 409, 410, 422])("a request that is answered %i is not sent again", async (status) => {
  const body = { err_code: "NO", err_msg: "no", request_id: "r-9" };
  const { server, read } = await serve(answeringJson(status, body));
  const message = expect.stringMatching(/NO: no.*request id r-9/);
  await expect(read()).rejects.toMatchObject({ code: "rejected", message, details: { status } });
  expect(server.requests).toHaveLength(1);
});

test("the error after five refused connections says that nothing was sent", async () => {
  const { server, service, read } = await serve(() => undefined);
  await server[Symbol.asyncDispose]();
  const message = expect.stringContaining("ECONNREFUSED");
  await expect(read()).rejects.toMatchObject({ code: "unavailable", message, details: { sent: "no" } });
  expect(service.sleeps).toHaveLength(4);
});

test("a connection that the service closed while it was idle costs one more attempt and nothing else", async () => {
  const answered = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
  await using server = await rawServer((socket, number) => {
    if (number === 2) socket.resetAndDestroy();
    else socket.write(answered);
  });
  await using service = openTestService(server.origin);
  await service.call(READ, KEY, hangSignal());
  await service.call(READ, KEY, hangSignal());
  expect(server.connections()).toBe(2);
});

test.each<[string, Script]>([
  ["without an answer", () => undefined],
  [
    "whose body comes byte by byte",
    (_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const timer = setInterval(() => response.write(" "), 10);
      response.on("close", () => clearInterval(timer));
    },
  ],
])("an attempt %s ends at its time limit", async (_name, script) => {
  const { read } = await serve(script, { timeoutSeconds: 0.1 });
  const message = "POST /v1/projects/p1/usage/breakdown: no whole answer within 0.1 s";
  await expect(read({ method: "POST" })).rejects.toMatchObject({ code: "unavailable", message });
});

test("the reason of an abort is thrown as it is, during an attempt and before one", async () => {
  const controller = new AbortController();
  const reason = new AppError("stopped", "a signal ended the work");
  const { server, service } = await serve(() => controller.abort(reason));
  await expect(service.call(READ, KEY, controller.signal)).rejects.toBe(reason);
  await expect(service.call(READ, KEY, controller.signal)).rejects.toBe(reason);
  expect(server.requests).toHaveLength(1);
});

test.each([
  [301, "http://OTHER/x?key=1", "OTHER"],
  [302, "/login", "another path"],
  [307, "", "another path"],
])("a %i to '%s' is never followed", async (status, target, named) => {
  const { server: other } = await serve(answeringJson(200));
  const [location, shown] = [target, named].map((text) => text.replace("OTHER", new URL(other.origin).host));
  const { server, read } = await serve(answeringJson(status, {}, { location }));
  const error = await read().catch((caught: unknown) => caught);
  expect(error).toMatchObject({ code: "rejected", details: { status } });
  expect(String(error)).toContain(shown);
  expect(String(error)).not.toContain("key=1");
  expect(server.requests).toHaveLength(1);
  expect(other.connections()).toBe(0);
});

test.each([200, 400, 401, 403, 404, 500])(
  "the key in the body of a %i is not in the error or the log",
  async (status) => {
    const { service, read } = await serve((request, response) =>
      answer(response, status, `refused: ${request.headers.authorization}`, { "dg-request-id": KEY_TEXT }),
    );
    const error = await read().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(AppError);
    expect(`${JSON.stringify(error)}${error}${service.lines}`).not.toContain(KEY_TEXT.slice(3, 9));
  },
);

test("what `scrub` replaces is not in the error", async () => {
  const scrub = (text: string) => text.replace("abc", "***");
  const { read } = await serve(answeringJson(400, { message: "the other key abc" }), {}, { scrub });
  await expect(read()).rejects.toThrow("the other key ***");
});

test("beforeAttempt is awaited before each attempt", async () => {
  const order: string[] = [];
  const { read } = await serve((_request, response) => {
    order.push("request");
    answerJson(response, order.length < 3 ? 503 : 200, {});
  });
  const beforeAttempt = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    order.push("before");
  };
  await read({ beforeAttempt });
  expect(order).toEqual(["before", "request", "before", "request"]);
  await expect(read({ beforeAttempt: () => Promise.reject(new AppError("database", "gone")) })).rejects.toThrow("gone");
  expect(order).toHaveLength(4);
});

test("a call that is aborted during beforeAttempt is not sent", async () => {
  const stop = new AbortController();
  const { server, service } = await serve(() => {}, { timeoutSeconds: 1 });
  const beforeAttempt = async () => stop.abort(new Error("stopped"));
  await expect(service.call({ ...READ, beforeAttempt }, KEY, stop.signal)).rejects.toThrow("stopped");
  expect(server.requests).toHaveLength(0);
});

test("serviceTime is the newest readable Date of an answer, success or not, plus the time since then", async () => {
  const dates = ["Sun, 01 Mar 2026 12:00:00 GMT", "Sun, 01 Mar 2026 11:00:00 GMT", "yesterday"];
  let nowMs = 5_000;
  const { service, read } = await serve(
    ({ number }, response) => answerJson(response, number === 1 ? 200 : 400, {}, { date: dates[number - 1] }),
    {},
    { now: () => nowMs },
  );
  expect(service.serviceTime()).toBeUndefined();
  await read();
  nowMs += 2_000;
  expect(service.serviceTime()?.toISOString()).toBe("2026-03-01T12:00:02.000Z");
  for (const time of ["2026-03-01T11:00:00.000Z", "2026-03-01T11:00:02.000Z"]) {
    await expect(read()).rejects.toMatchObject({ code: "rejected" });
    expect(service.serviceTime()?.toISOString()).toBe(time);
    nowMs += 2_000;
  }
});
