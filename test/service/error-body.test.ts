import { expect, test } from "vitest";
import { Secret } from "../../src/secret.ts";
import { type ResponseHeaders, readErrorBody, redactorFor } from "../../src/service/errors.ts";
import { ENCODINGS } from "../support/encodings.ts";
import { findSecrets } from "../support/leak-search.ts";

const KEY_TEXT = "sk_CANARY_0123456789abcdef";
const hide = redactorFor(new Secret(KEY_TEXT), (text) => text);
const JSON_TYPE = { "content-type": "application/json" };

function read(headers: ResponseHeaders, body: string | Uint8Array | undefined) {
  return readErrorBody({ status: 400, headers, body: body === undefined ? undefined : Buffer.from(body) }, hide);
}

function textOf(body: string | Uint8Array, headers: ResponseHeaders = JSON_TYPE): string {
  return read(headers, body).text;
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
  ["an error alone", '{"error":"Project is suspended."}', JSON_TYPE, "Project is suspended."],
  ["an error of another type", '{"error":7}', JSON_TYPE, "(a body without a message)"],
  ["a message alone", '{"message":"Later."}', JSON_TYPE, "Later."],
  ["members of other types", '{"err_code":7,"message":{"a":1},"err_msg":"Later."}', JSON_TYPE, "Later."],
  ["plain text", "Invalid credentials.", { "content-type": "text/plain" }, "Invalid credentials."],
  ["plain text without a type", "Invalid credentials.", {}, "Invalid credentials."],
  ["JSON of another shape", '{"key":"abcdefgh"}', JSON_TYPE, "(a body without a message)"],
  ["JSON that is cut", '{"key":"abcdefgh', JSON_TYPE, "(a body without a message)"],
  ["an empty body", "", JSON_TYPE, "(no body)"],
  ["HTML", "<html><body>[]</body></html>", { "content-type": "text/html; charset=utf-8" }, "(an HTML page)"],
  ["HTML sent as JSON", "<!DOCTYPE html><title>502</title>", JSON_TYPE, "(an HTML page)"],
  ["a compressed body", "\x1f\x8b", { "content-encoding": "gzip" }, "(a compressed body)"],
])("the text that is shown for %s", (_name, body, headers, expected) => {
  expect(textOf(body, headers)).toBe(expected);
});

test("nothing is shown of a body that was cut, because it could end within a key", () => {
  expect(read({}, undefined).text).toBe("(a body that was cut or too long)");
});

test("a long text is cut to 300 characters, and never within a character", () => {
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
  ["a header with the key in it", { "dg-request-id": KEY_TEXT }, "", "[secret]"],
])("the request id comes from %s", (_name, headers, body, expected) => {
  expect(read(headers, body).requestId).toBe(expected);
});

test("the missing scope is read if the service quotes it", () => {
  const details = "Check that your account has the 'keys:write' scope for this project.";
  expect(read({}, JSON.stringify({ details })).scope).toBe("keys:write");
  expect(read({}, "it's not yours: don't").scope).toBeUndefined();
});
