// How a call is sent, and how it ends if the service does not answer it.

import { expect, test } from "vitest";
import { AppError } from "../../src/errors.ts";
import { Secret } from "../../src/secret.ts";
import type { ServiceCall } from "../../src/service/service.ts";
import { answer, answerJson, rawServer, scriptedServer } from "../support/scripted-server.ts";
import { KEY, KEY_TEXT, limit, openTestService } from "./open-test-service.ts";

const READ: ServiceCall = { method: "GET", path: ["v1", "projects", "p1", "usage", "breakdown"], retry: true };

test.each([
  ["Token", `Token ${KEY_TEXT}`],
  ["Bearer", `Bearer ${KEY_TEXT}`],
  ["none", KEY_TEXT],
] as const)("the key is sent in the scheme %s", async (authScheme, authorization) => {
  await using server = await scriptedServer((_request, response) => answerJson(response, 200, {}));
  await using service = openTestService(server.origin, { authScheme });
  await service.call(READ, KEY, limit());
  expect(server.requests[0]?.headers).toMatchObject({
    authorization,
    accept: "application/json",
    "accept-encoding": "identity",
  });
});

test("a success returns its status and its value", async () => {
  await using server = await scriptedServer((_request, response) => answerJson(response, 201, { results: [1.5] }));
  await using service = openTestService(server.origin);
  expect(await service.call(READ, KEY, limit())).toEqual({ status: 201, value: { results: [1.5] } });
});

test("a path in baseUrl is put before the path of the call", async () => {
  await using server = await scriptedServer((_request, response) => answerJson(response, 200, {}));
  await using service = openTestService(`${server.origin}/speech/`);
  await service.call({ ...READ, query: new URLSearchParams({ start: "2026-03-01", note: "a b&c" }) }, KEY, limit());
  expect(server.requests[0]?.target).toBe("/speech/v1/projects/p1/usage/breakdown?start=2026-03-01&note=a+b%26c");
});

test.each(["..", ".", "", "a/b", "%2e%2e", "a\r\nb", "a b", "ä", "x".repeat(129)])(
  "the id %j is refused before anything is sent",
  async (id) => {
    await using server = await scriptedServer((_request, response) => answerJson(response, 200, {}));
    await using service = openTestService(server.origin);
    const call = service.call({ ...READ, path: ["v1", "projects", id, "usage"] }, KEY, limit());
    await expect(call).rejects.toMatchObject({ code: "config", details: { sent: "no" } });
    expect(server.connections()).toBe(0);
  },
);

test.each(["", "two words", "line\nbreak", "sk_käse"])(
  "the key %j is refused before anything is sent",
  async (text) => {
    await using server = await scriptedServer((_request, response) => answerJson(response, 200, {}));
    await using service = openTestService(server.origin);
    await expect(service.call(READ, new Secret(text), limit())).rejects.toMatchObject({ code: "config" });
    expect(server.connections()).toBe(0);
  },
);

test.each([408, 425, 429, 499, 500, 502, 503, 504])(
  "a request that is answered %i every time is sent five times",
  async (status) => {
    await using server = await scriptedServer((_request, response) =>
      answerJson(response, status, { message: "later" }),
    );
    await using service = openTestService(server.origin);
    await expect(service.call(READ, KEY, limit())).rejects.toMatchObject({
      code: status === 429 ? "rate_limited" : "unavailable",
      message: `GET /v1/projects/p1/usage/breakdown: the service answered ${status}: later (5 attempts)`,
      details: { status },
    });
    expect(server.requests).toHaveLength(5);
    expect(service.sleeps).toEqual([500, 1_000, 2_000, 4_000]);
  },
);

test("failures before a successful attempt are logged and not thrown", async () => {
  await using server = await scriptedServer(({ number }, response) =>
    number < 3 ? answer(response, 503, "") : answerJson(response, 200, { number }),
  );
  await using service = openTestService(server.origin);
  expect((await service.call(READ, KEY, limit())).value).toEqual({ number: 3 });
  expect(service.lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 40, msg: "service call failed, trying again", attempt: 1, attempts: 5, code: "unavailable", delayMs: 500 },
    { attempt: 2, delayMs: 1_000 },
  ]);
});

test.each([400, 402, 404, 405, 409, 410, 422])("a request that is answered %i is not sent again", async (status) => {
  await using server = await scriptedServer((_request, response) =>
    answerJson(response, status, { err_code: "NO", err_msg: "no", request_id: "r-9" }),
  );
  await using service = openTestService(server.origin);
  await expect(service.call(READ, KEY, limit())).rejects.toMatchObject({
    code: "rejected",
    message: expect.stringMatching(/NO: no.*request id r-9/),
    details: { status },
  });
  expect(server.requests).toHaveLength(1);
});

test("a refused connection is tried again, and the error says that nothing was sent", async () => {
  const server = await rawServer(() => undefined);
  await server[Symbol.asyncDispose]();
  await using service = openTestService(server.origin);
  await expect(service.call(READ, KEY, limit())).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("ECONNREFUSED"),
    details: { sent: "no" },
  });
  expect(service.sleeps).toHaveLength(4);
});

test("a connection that the service closed while it was idle costs one more attempt and nothing else", async () => {
  const body = "{}";
  await using server = await rawServer((socket, number) => {
    if (number === 2) socket.resetAndDestroy();
    else
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
  });
  await using service = openTestService(server.origin);
  await service.call(READ, KEY, limit());
  await service.call(READ, KEY, limit());
  expect(server.connections()).toBe(2);
});

test("an attempt without an answer ends at its time limit", async () => {
  await using server = await scriptedServer(() => undefined);
  await using service = openTestService(server.origin, { timeoutSeconds: 0.05 });
  await expect(service.call({ ...READ, retry: false }, KEY, limit())).rejects.toMatchObject({
    code: "unavailable",
    message: "GET /v1/projects/p1/usage/breakdown: no whole answer within 0.05 s",
  });
});

test("an attempt whose body comes byte by byte ends at its time limit", async () => {
  await using server = await scriptedServer((_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const drip = setInterval(() => response.write(" "), 10);
    response.on("close", () => clearInterval(drip));
  });
  await using service = openTestService(server.origin, { timeoutSeconds: 0.1 });
  const startMs = performance.now();
  await expect(service.call({ ...READ, retry: false }, KEY, limit())).rejects.toMatchObject({ code: "unavailable" });
  expect(performance.now() - startMs).toBeLessThan(30_000);
});

test("the reason of an abort is thrown as it is, during an attempt and before one", async () => {
  const controller = new AbortController();
  const reason = new AppError("stopped", "a signal ended the work");
  await using server = await scriptedServer(() => controller.abort(reason));
  await using service = openTestService(server.origin);
  await expect(service.call(READ, KEY, controller.signal)).rejects.toBe(reason);
  await expect(service.call(READ, KEY, controller.signal)).rejects.toBe(reason);
  expect(server.requests).toHaveLength(1);
});

test.each([
  [301, "http://other.example/x?key=1", "other.example"],
  [302, "/login", "another path"],
  [307, "", "another path"],
])("a %i to %s is never followed, and the error shows only the host of the target", async (status, location, named) => {
  await using other = await scriptedServer((_request, response) => answerJson(response, 200, {}));
  await using server = await scriptedServer((_request, response) =>
    answer(response, status, "", { location: location.replace("other.example", other.origin.slice("http://".length)) }),
  );
  await using service = openTestService(server.origin);
  const error = await service.call(READ, KEY, limit()).catch((caught: unknown) => caught);
  expect(error).toMatchObject({ code: "rejected", details: { status } });
  expect(String(error)).toContain(named.replace("other.example", other.origin.slice("http://".length)));
  expect(String(error)).not.toContain("key=1");
  expect(server.requests).toHaveLength(1);
  expect(other.connections()).toBe(0);
});

test.each([200, 400, 401, 403, 404, 500])(
  "the key in the body of a %i is not in the error or the log",
  async (status) => {
    await using server = await scriptedServer((request, response) =>
      answer(response, status, `refused: ${request.headers.authorization}`, { "dg-request-id": KEY_TEXT }),
    );
    await using service = openTestService(server.origin);
    const error = await service.call(READ, KEY, limit()).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(AppError);
    expect(`${JSON.stringify(error)}${error}${service.lines}`).not.toContain("CANARY");
  },
);

test("what `scrub` replaces is not in the error", async () => {
  await using server = await scriptedServer((_request, response) => answer(response, 400, "the other key abc"));
  await using service = openTestService(server.origin, {}, { scrub: (text) => text.replace("abc", "***") });
  await expect(service.call(READ, KEY, limit())).rejects.toThrow("the other key ***");
});

test("beforeAttempt is awaited before each attempt, and its error ends the call", async () => {
  const order: string[] = [];
  await using server = await scriptedServer((_request, response) => {
    order.push("request");
    answerJson(response, order.length < 3 ? 503 : 200, {});
  });
  await using service = openTestService(server.origin);
  const beforeAttempt = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    order.push("before");
  };
  await service.call({ ...READ, beforeAttempt }, KEY, limit());
  expect(order).toEqual(["before", "request", "before", "request"]);

  const lost = service.call(
    { ...READ, beforeAttempt: () => Promise.reject(new AppError("database", "gone")) },
    KEY,
    limit(),
  );
  await expect(lost).rejects.toThrow("gone");
  expect(order).toHaveLength(4);
});

test("a call that is aborted during beforeAttempt is not sent", async () => {
  const stop = new AbortController();
  await using server = await scriptedServer(() => {});
  await using service = openTestService(server.origin, { timeoutSeconds: 1 });
  const beforeAttempt = async () => stop.abort(new Error("stopped"));
  await expect(service.call({ ...READ, beforeAttempt }, KEY, stop.signal)).rejects.toThrow("stopped");
  expect(server.requests).toHaveLength(0);
});

test("serviceTime is the Date of the newest answer, success or not, plus the time since then", async () => {
  const dates = ["Sun, 01 Mar 2026 12:00:00 GMT", "Sun, 01 Mar 2026 11:00:00 GMT", "yesterday"];
  await using server = await scriptedServer(({ number }, response) =>
    answerJson(response, number === 1 ? 200 : 400, {}, { date: dates[number - 1] }),
  );
  let nowMs = 5_000;
  await using service = openTestService(server.origin, {}, { now: () => nowMs });
  expect(service.serviceTime()).toBeUndefined();
  await service.call(READ, KEY, limit());
  nowMs += 2_000;
  expect(service.serviceTime()?.toISOString()).toBe("2026-03-01T12:00:02.000Z");
  for (const time of ["2026-03-01T11:00:00.000Z", "2026-03-01T11:00:02.000Z"]) {
    await expect(service.call(READ, KEY, limit())).rejects.toMatchObject({ code: "rejected" });
    expect(service.serviceTime()?.toISOString()).toBe(time);
    nowMs += 2_000;
  }
});
