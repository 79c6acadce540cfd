// Which successes are believed. The pure checks first, then what needs a server to be wrong with.

import { expect, test } from "vitest";
import { readAnswer } from "../../src/service/answer.ts";
import type { ResponseHeaders } from "../../src/service/retry.ts";
import type { ServiceCall } from "../../src/service/service.ts";
import { answer, scriptedServer } from "../support/scripted-server.ts";
import { KEY, limit, openTestService } from "./open-test-service.ts";

const READ: ServiceCall = { method: "GET", path: ["v1", "projects", "p1", "usage", "breakdown"], retry: true };
const JSON_TYPE = { "content-type": "application/json" };
const WORDS = { what: "GET /v1/x", scopes: [] };

function read(body: string | Uint8Array, headers: ResponseHeaders = JSON_TYPE) {
  return readAnswer(WORDS, { status: 200, headers, body: Buffer.from(body) }, false, (text) => text);
}

test.each(["application/json", "application/json; charset=utf-8", "Application/JSON", "application/problem+json"])(
  "%s is JSON",
  (contentType) => {
    expect(read("{}", { "content-type": contentType })).toMatchObject({ ok: true, answer: { status: 200, value: {} } });
  },
);

test.each<[string, string | Uint8Array, ResponseHeaders, string]>([
  [
    "HTML",
    "<html>[]</html>",
    { "content-type": "text/html" },
    "its content type is text/html instead of JSON (an HTML page)",
  ],
  ["JSON that says it is HTML", '{"results":[]}', { "content-type": "text/html" }, "its content type is text/html"],
  ["JSON that says it is text", '{"key":"new"}', { "content-type": "text/plain" }, "instead of JSON (13 bytes)"],
  ["a body of no type", "{}", {}, "its content type is not given instead of JSON"],
  [
    "a body of two types",
    "{}",
    { "content-type": ["application/json", "text/html"] },
    "its content type is application/json,",
  ],
  ["JSON for a script", "{}", { "content-type": "application/jsonp" }, "instead of JSON"],
  ["a compressed body", "{}", { ...JSON_TYPE, "content-encoding": "gzip" }, "it is compressed (gzip)"],
  ["HTML that says it is JSON", "<html>[]</html>", JSON_TYPE, "it is not valid JSON"],
  ["nothing", "", JSON_TYPE, "it is empty"],
  ["a byte order mark", "\ufeff{}", JSON_TYPE, "it is not valid JSON"],
  ["a byte that is not UTF-8", Buffer.from([0x22, 0xff, 0x22]), JSON_TYPE, "it is not valid UTF-8"],
  ["half of a surrogate pair", '"\\ud800"', JSON_TYPE, "half of a surrogate pair"],
  ["100,000 open brackets", "[".repeat(100_000) + "]".repeat(100_000), JSON_TYPE, "nested more than 64 levels"],
])("a success with %s is a bad answer", (_name, body, headers, expected) => {
  const result = read(body, headers);
  expect(result).toMatchObject({
    ok: false,
    failure: { kind: "bad_answer", error: { code: "bad_answer", details: { status: 200 } } },
  });
  expect(!result.ok && result.failure.error.message).toContain(expected);
});

test("no part of a valid body is valid", () => {
  const body = JSON.stringify({
    start: "2026-03-01",
    end: "2026-03-01",
    resolution: { units: "day", amount: 1 },
    results: [{ hours: 1619.7242069444444, requests: 373381, grouping: { start: "2026-03-01", tags: ["ä", "😀"] } }],
  });
  const bytes = Buffer.from(body);
  expect(read(bytes).ok).toBe(true);
  for (let length = 0; length < bytes.length; length++) expect(read(bytes.subarray(0, length)).ok).toBe(false);
});

test("a part of an answer is none, though it be valid JSON", () => {
  const result = readAnswer(WORDS, { status: 206, headers: JSON_TYPE, body: Buffer.from("{}") }, false, (text) => text);
  expect(!result.ok && result.failure.error.message).toBe(
    "GET /v1/x: the service answered 206 with a body that is no answer: it is only a part of one",
  );
});

test("an answer without a body is right only where none is expected", () => {
  const reply = { status: 204, headers: {}, body: Buffer.from("") };
  expect(readAnswer(WORDS, reply, true, (text) => text)).toMatchObject({ ok: true, answer: { value: undefined } });
  expect(readAnswer(WORDS, reply, false, (text) => text).ok).toBe(false);
});

test("a gateway's page instead of an answer is requested once more", async () => {
  await using server = await scriptedServer(({ number }, response) =>
    number === 1
      ? answer(response, 200, "<html><title>Log in</title></html>", { "content-type": "text/html" })
      : answer(response, 200, "{}", JSON_TYPE),
  );
  await using service = openTestService(server.origin);
  await service.call(READ, KEY, limit());
  expect(server.requests).toHaveLength(2);
});

test("a page of a gateway that stays is a bad answer after two attempts", async () => {
  await using server = await scriptedServer((_request, response) =>
    answer(response, 200, "<html>[]</html>", { "content-type": "text/html", "dg-request-id": "r-5" }),
  );
  await using service = openTestService(server.origin);
  await expect(service.call(READ, KEY, limit())).rejects.toMatchObject({
    code: "bad_answer",
    details: { status: 200, requestId: "r-5" },
  });
  expect(server.requests).toHaveLength(2);
});

test("an empty body instead of an answer is a bad answer", async () => {
  await using server = await scriptedServer((_request, response) => answer(response, 204, ""));
  await using service = openTestService(server.origin);
  await expect(service.call(READ, KEY, limit())).rejects.toMatchObject({
    code: "bad_answer",
    details: { status: 204 },
  });
});

test.each([
  [
    "a compressed success",
    200,
    { "content-encoding": "gzip" },
    2,
    { message: expect.stringContaining("it is compressed") },
  ],
  ["a success", 200, {}, 1, { code: "bad_answer", message: expect.stringContaining("longer than 33554432 bytes") }],
  ["an error", 400, {}, 1, { code: "rejected", message: expect.stringContaining("a body that was cut or too long") }],
])("the body of %s that never ends is cut off", async (_name, status, headers, attempts, expected) => {
  const chunk = Buffer.alloc(1024 * 1024, " ");
  await using server = await scriptedServer((_request, response) => {
    response.writeHead(status, { ...JSON_TYPE, ...headers });
    const pour = () => {
      while (!response.destroyed && response.write(chunk));
      response.once("drain", pour);
    };
    pour();
  });
  await using service = openTestService(server.origin);
  await expect(service.call(READ, KEY, limit())).rejects.toMatchObject(expected);
  expect(server.requests).toHaveLength(attempts);
});
