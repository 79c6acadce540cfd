import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { isFreeOfSecret } from "../src/secret.ts";

const KEY = randomBytes(20).toString("hex");
const MIXED = randomBytes(30).toString("base64url");

const base64 = (text: string) => Buffer.from(text).toString("base64");
const hex = (text: string) => Buffer.from(text).toString("hex");
const percent = (text: string) => hex(text).replaceAll(/../g, "%$&");
const base32 = (text: string) =>
  [...Buffer.from(text)]
    .map((byte) => byte.toString(2).padStart(8, "0"))
    .join("")
    .replaceAll(/.{1,5}/g, (five) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[Number.parseInt(five.padEnd(5, "0"), 2)] ?? "");

const ENCODINGS: Readonly<Record<string, (key: string) => string>> = {
  "as it is": (key) => key,
  "in capitals": (key) => key.toUpperCase(),
  reversed: (key) => [...key].toReversed().join(""),
  "half of it": (key) => key.slice(12, 24),
  "with a space after every character": (key) => [...key].join(" "),
  "on several lines": (key) => key.replaceAll(/.{6}/g, "$&\n"),
  "in base64": base64,
  "in base64 with a line end": (key) => base64(`${key}\n`),
  "in base64 with text after it": (key) => base64(`${key}", "id": 1}`),
  "in base64 after one byte": (key) => base64(`:${key}`),
  "in base64 after two bytes": (key) => base64(`k=${key}\n`),
  "in base64 after many bytes": (key) => base64(`Authorization: Token ${key}`),
  "in base64url": (key) => Buffer.from(`>>>${key}???`).toString("base64url"),
  "in base64 in small letters": (key) => base64(`${key}\n`).toLowerCase(),
  "in base64 in capitals": (key) => base64(`${key}\n`).toUpperCase(),
  "in base64, reversed": (key) => [...base64(key)].toReversed().join(""),
  "reversed, in base64": (key) => base64([...key].toReversed().join("")),
  "in base64 that is broken into lines": (key) => base64(`${key}\n`).replaceAll(/.{20}/g, "$&\n"),
  "in base64 glued to a word": (key) => `token${base64(key)}`,
  "in base64 twice": (key) => base64(base64(`${key}\n`)),
  "in base32": base32,
  "in base32 in small letters": (key) => base32(`${key}\n`).toLowerCase(),
  "in hex": hex,
  "in hex in capitals": (key) => hex(`x${key}`).toUpperCase(),
  "in hex with colons": (key) => hex(key).replaceAll(/..(?!$)/g, "$&:"),
  "as xxd prints it": (key) => hex(key).replaceAll(/.{4}/g, "$& "),
  "as escapes in hex": (key) => hex(key).replaceAll(/../g, "\\x$&"),
  "as a list of bytes": (key) => [...Buffer.from(key)].join(", "),
  "in octal": (key) => [...Buffer.from(key)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join(""),
  "as JSON escapes": (key) => hex(key).replaceAll(/../g, "\\u00$&"),
  "as HTML entities": (key) => [...key].map((char) => `&#${char.charCodeAt(0)};`).join(""),
  "in percent encoding": percent,
  "in percent encoding in capitals": (key) => percent(key).toUpperCase(),
  "in base64, percent-encoded": (key) => percent(base64(`${key}\n`)),
  "in base64, then in hex": (key) => hex(base64(`${key}\n`)),
};

test.each(Object.entries(ENCODINGS))("a key %s is found", (_, encode) => {
  for (const key of [KEY, MIXED]) {
    expect(isFreeOfSecret(`curl: refused "${encode(key)}" (403)`, key)).toBe(false);
    expect(isFreeOfSecret(encode(key), key)).toBe(false);
  }
});

test.each([
  "permission denied",
  "curl: (22) The requested URL returned error: 403",
  "Error: connect ECONNREFUSED 127.0.0.1:8200 at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1494:16)",
  "vault kv put: Code: 503. Errors: * Vault is sealed, request 6e2f9a52-4b1c-4f68-9d0e-0d6a5f0f7c11",
  randomBytes(30).toString("base64"),
  randomBytes(30).toString("hex"),
  "",
])("nothing is found in %j", (text) => {
  expect(isFreeOfSecret(text, KEY)).toBe(true);
  expect(isFreeOfSecret(text, MIXED)).toBe(true);
});
