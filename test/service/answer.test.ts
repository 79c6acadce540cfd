// Which 2xx answers are accepted: first the pure checks, then the cases that need a server.

import { expect, test } from "vitest";
import { type Outcome, readAnswer } from "../../src/service/answer.ts";
import type { ResponseHeaders } from "../../src/service/errors.ts";
import { answering } from "../support/scripted-server.ts";
import { serve } from "./open-test-service.ts";

const JSON_TYPE = { "content-type": "application/json" };
const WHAT = "GET /v1/x";

const JSON_200 = { status: 200, headers: JSON_TYPE as ResponseHeaders };

function outcomeOf(body: string | Uint8Array, part: Partial<typeof JSON_200> = {}, method: "GET" | "DELETE" = "GET") {
  return readAnswer(WHAT, { ...JSON_200, ...part, body: Buffer.from(body) }, method, (text) => text);
}

const messageOf = (outcome: Outcome) => ("error" in outcome ? outcome.error.message : undefined);

test.each(["application/json", "application/json; charset=utf-8", "Application/JSON", "application/problem+json"])(
  "%s is JSON",
  (contentType) => {
    expect(outcomeOf("{}", { headers: { "content-type": contentType } })).toEqual({ status: 200, value: {} });
  },
);

test.each<[string, string | Uint8Array, ResponseHeaders, string]>([
  ["HTML", "<html>[]</html>", { "content-type": "text/html" }, "is text/html instead of JSON (an HTML page)"],
  ["JSON sent as text/html", '{"results":[]}', { "content-type": "text/html" }, "its content type is text/html"],
  ["JSON sent as text/plain", '{"key":"new"}', { "content-type": "text/plain" }, "instead of JSON (13 bytes)"],
  ["no content type", "{}", {}, "its content type is not given instead of JSON"],
  ["two content types", "{}", { "content-type": ["application/json", "text/html"] }, "type is application/json,"],
  ["the content type of JSONP", "{}", { "content-type": "application/jsonp" }, "instead of JSON"],
  ["a compressed body", "{}", { ...JSON_TYPE, "content-encoding": "gzip" }, "it is compressed (gzip)"],
  ["an empty body", "", JSON_TYPE, "it is empty"],
  ["a byte order mark", "\ufeff{}", JSON_TYPE, "it is not valid JSON"],
  ["a byte that is not UTF-8", Buffer.from([0x22, 0xff, 0x22]), JSON_TYPE, "it is not valid UTF-8"],
])("a success with %s is a bad answer", (_name, body, headers, expected) => {
  const result = outcomeOf(body, { headers });
  expect(result).toMatchObject({ kind: "bad_answer", error: { code: "bad_answer", details: { status: 200 } } });
  expect(messageOf(result)).toContain(expected);
});

test("a body that is cut at any byte is a bad answer", () => {
  const results = [{ hours: 1619.7242069444444, requests: 373381, grouping: { tags: ["ä", "😀"] } }];
  const bytes = Buffer.from(JSON.stringify({ start: "2026-03-01", results }));
  expect(messageOf(outcomeOf(bytes))).toBeUndefined();
  for (const length of bytes.keys()) expect(messageOf(outcomeOf(bytes.subarray(0, length)))).toBeDefined();
});

test("a 206 is a bad answer, even if its body is valid JSON", () => {
  expect(messageOf(outcomeOf("{}", { status: 206 }))).toBe(
    "GET /v1/x: the service answered 206 with a body that is no answer: it is only a part of one",
  );
});

test("a 204 is an answer only to a DELETE", () => {
  const empty = { status: 204, headers: {} };
  expect(outcomeOf("", empty, "DELETE")).toEqual({ status: 204, value: undefined });
  expect(messageOf(outcomeOf("", empty))).toContain("not given instead of JSON");
});

test("an HTML page of a gateway is a bad answer after a second attempt", async () => {
  const { server, read } = await serve(answering(200, "<html>[]</html>", { "content-type": "text/html" }));
  await expect(read()).rejects.toMatchObject({ code: "bad_answer", details: { status: 200 } });
  expect(server.requests).toHaveLength(2);
});

test.each([
  ["a compressed success", 200, { "content-encoding": "gzip" }, 2, "bad_answer", "it is compressed"],
  ["a success", 200, {}, 1, "bad_answer", "longer than 33554432 bytes"],
  ["an error", 400, {}, 1, "rejected", "a body that was cut or too long"],
])("the endless body of %s is cut off", async (_name, status, headers, attempts, code, message) => {
  const chunk = Buffer.alloc(1024 * 1024, " ");
  const { server, read } = await serve((_request, response) => {
    response.writeHead(status, { ...JSON_TYPE, ...headers });
    const sendMore = () => {
      while (!response.destroyed && response.write(chunk));
      response.once("drain", sendMore);
    };
    sendMore();
  });
  await expect(read()).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  expect(server.requests).toHaveLength(attempts);
});
