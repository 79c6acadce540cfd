// Which 2xx answers are accepted, and what is shown of the body of an error.

import { expect, test } from "vitest";
import { Secret } from "../../src/secret.ts";
import { type Outcome, readBody } from "../../src/service/answer.ts";
import { type ResponseHeaders, readErrorBody, redactorFor } from "../../src/service/reply.ts";
import { ENCODINGS } from "../support/encodings.ts";
import { findSecrets } from "../support/leak-search.ts";
import { serve } from "./open-test-service.ts";

const JSON_TYPE = { "content-type": "application/json" };
const JSON_200 = { status: 200, headers: JSON_TYPE as ResponseHeaders };

function outcomeOf(body: string | Uint8Array, part: Partial<typeof JSON_200> = {}, method: "GET" | "DELETE" = "GET") {
  const call = { operation: "read", method, path: ["v1", "x"] };
  return readBody(call, { ...JSON_200, ...part, body: Buffer.from(body) }, (text) => text);
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
  expect(result).toMatchObject({ error: { code: "bad_answer", details: { status: 200 } } });
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

test.each([
  ["a compressed success", 200, { "content-encoding": "gzip" }, 2, "bad_answer", "it is compressed"],
  ["a success", 200, {}, 2, "bad_answer", "longer than 33554432 bytes"],
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

const KEY_TEXT = "sk_CANARY_0123456789abcdef";
const hide = redactorFor(new Secret(KEY_TEXT), (text) => text);

function readError(headers: ResponseHeaders, body: string | Uint8Array | undefined) {
  return readErrorBody({ status: 400, headers, body: body === undefined ? undefined : Buffer.from(body) }, hide);
}

function textOf(body: string | Uint8Array, headers: ResponseHeaders = JSON_TYPE): string {
  return readError(headers, body).text;
}

test.each<[string, string, ResponseHeaders, string]>([
  [
    "all members",
    '{"category":"C","message":"No.","details":"Look again.","request_id":"r1"}',
    JSON_TYPE,
    "C: No. Look again.",
  ],
  ["err_code and err_msg", '{"err_code":"INVALID_AUTH","err_msg":"Invalid."}', JSON_TYPE, "INVALID_AUTH: Invalid."],
  ["error_code", '{"error_code":"OVERLOADED","err_msg":"Later."}', JSON_TYPE, "OVERLOADED: Later."],
  ["`error` alone", '{"error":"Project is suspended."}', JSON_TYPE, "Project is suspended."],
  ["`error` that is not text", '{"error":7}', JSON_TYPE, "(a body without a message)"],
  ["`message` alone", '{"message":"Later."}', JSON_TYPE, "Later."],
  ["members of other types", '{"err_code":7,"message":{"a":1},"err_msg":"Later."}', JSON_TYPE, "Later."],
  ["plain text", "Invalid credentials.", { "content-type": "text/plain" }, "Invalid credentials."],
  ["plain text without a type", "Invalid credentials.", {}, "Invalid credentials."],
  ["JSON of another shape", '{"key":"abcdefgh"}', JSON_TYPE, "(a body without a message)"],
  ["JSON that is cut", '{"key":"abcdefgh', JSON_TYPE, "(a body without a message)"],
  ["an empty body", "", JSON_TYPE, "(no body)"],
  ["HTML", "<html><body>[]</body></html>", { "content-type": "text/html; charset=utf-8" }, "(an HTML page)"],
  ["HTML sent as JSON", "<!DOCTYPE html><title>502</title>", JSON_TYPE, "(an HTML page)"],
  ["a compressed body", "\x1f\x8b", { "content-encoding": "gzip" }, "(a compressed body)"],
])("an error body is shown in words: %s", (_name, body, headers, expected) => {
  expect(textOf(body, headers)).toBe(expected);
});

test("nothing is shown of a body that was cut", () => {
  // The body may end within a key.
  expect(readError({}, undefined).text).toBe("(a body that was cut or too long)");
});

test("a long text is cut after 300 whole characters", () => {
  const text = textOf(JSON.stringify({ message: "😀".repeat(500) }));
  expect(text).toBe(`${"😀".repeat(300)}…`);
});

test.each([
  ["as it is", `key ${KEY_TEXT} refused`],
  ["as JSON with escapes", JSON.stringify({ message: KEY_TEXT }).replace("s", "\\u0073")],
  ["just before the cut", `${"x".repeat(290)}${KEY_TEXT}`],
  ...Object.entries(ENCODINGS).map(([name, encode]): [string, string] => [name, `Token ${encode(KEY_TEXT)} refused`]),
])("the key in use is hidden: %s", (_name, body) => {
  const text = textOf(body, {});
  expect(text).not.toContain("CANARY");
  expect(findSecrets(text, [KEY_TEXT])).toEqual([]);
  expect(text).not.toContain("012345");
});

test("a key that a control character splits is not shown joined", () => {
  expect(textOf(`${KEY_TEXT.slice(0, 10)}\u0000${KEY_TEXT.slice(10)}`, {})).not.toContain(KEY_TEXT);
});

test("the shown text has no line breaks, control characters or direction characters", () => {
  expect(textOf('first\r\n{"level":30}\u001b[31m\u202eevil\u2028end\u0085', {})).toBe(
    'first {"level":30} [31m evil end',
  );
});

test("an error body with invalid UTF-8 is shown", () => {
  expect(textOf(Buffer.from([0x61, 0xff, 0x62]), {})).toBe("a\ufffdb");
});

test.each<[string, ResponseHeaders, string, string | undefined]>([
  ["the header", { "dg-request-id": "r-header" }, '{"request_id":"r-body"}', "r-header"],
  ["the body", {}, '{"message":"x","request_id":"r-body"}', "r-body"],
  ["nowhere", {}, "plain", undefined],
  ["a header, in which the key is hidden", { "dg-request-id": KEY_TEXT }, "", "[secret]"],
])("the request id comes from %s", (_name, headers, body, expected) => {
  expect(readError(headers, body).requestId).toBe(expected);
});

test("the missing scope is read if the service quotes it", () => {
  const details = "Check that your account has the 'keys:write' scope for this project.";
  expect(readError({}, JSON.stringify({ details })).scope).toBe("keys:write");
  expect(readError({}, "it's not yours: don't").scope).toBeUndefined();
});
