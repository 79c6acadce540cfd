import { randomBytes } from "node:crypto";
import { decodeProtectedHeader } from "jose";
import { expect, test } from "vitest";
import {
  isDamaged,
  type MasterKeys,
  openSealedKey,
  readMasterKeys,
  requireMasterKeys,
  sealKey,
} from "../../src/keys/seal.ts";
import { Scrubber, Secret } from "../../src/secret.ts";

const newMasterKey = () => randomBytes(32).toString("base64");
const masterKeysOf = (current: string, previous?: string) =>
  readMasterKeys({ USAGE_EXPORT_MASTER_KEY: current, USAGE_EXPORT_MASTER_KEY_PREVIOUS: previous });

const FIRST = newMasterKey();
const SECOND = newMasterKey();
const KEY = new Secret(randomBytes(20).toString("hex"));

const OURS = masterKeysOf(FIRST);
const sealed = await sealKey(KEY, "key-1", OURS);

const open = (apiKeyId: string, masterKeys: MasterKeys, text = sealed) =>
  openSealedKey({ sealed: text, apiKeyId }, masterKeys, new Scrubber());
const failureOf = (opening: Promise<unknown>) => opening.then(String, (error: unknown) => error);

test.each([
  ["the same master key", OURS],
  ["its master key as the previous one", masterKeysOf(SECOND, FIRST)],
])("a sealed key opens with %s", async (_, masterKeys) => {
  expect((await open("key-1", masterKeys)).reveal()).toBe(KEY.reveal());
});

test("sealing a key hides it in a different text each time", async () => {
  const texts = [sealed, await sealKey(KEY, "key-1", OURS)];
  expect(new Set(texts).size).toBe(2);
  const parts = texts.flatMap((text) => text.split("."));
  for (const part of parts) expect(Buffer.from(part, "base64url").toString("latin1")).not.toContain(KEY.reveal());
});

test("the error about a missing master key names the id of that key", async () => {
  const message = `no master key ${OURS.current.id} is given`;
  await expect(open("key-1", masterKeysOf(SECOND))).rejects.toMatchObject({ code: "config", message });
});

test("a sealed key in the row of another key does not open, even if its header names that key", async () => {
  const failure = "the sealed key key-2 does not open: it was altered or was made for another key";
  await expect(open("key-2", OURS)).rejects.toThrow(failure);
  const [, ...rest] = sealed.split(".");
  const header = { ...decodeProtectedHeader(sealed), api_key_id: "key-2" };
  const forged = [Buffer.from(JSON.stringify(header)).toString("base64url"), ...rest].join(".");
  await expect(open("key-2", OURS, forged)).rejects.toThrow(failure);
});

test("a sealed key whose master key is missing does not count as damaged", async () => {
  const damaged = await failureOf(open("key-1", OURS, `${sealed}AA`));
  expect([damaged, await failureOf(open("key-1", masterKeysOf(SECOND)))].map(isDamaged)).toEqual([true, false]);
});

test.each([0, 1, 2, 3, 4])("a sealed text that was changed in part %i does not open", async (part) => {
  const parts = sealed.split(".");
  // Changes the first letter: the last letter of a part has unused bits, and a change of only those changes nothing.
  const other = (text: string) => (text === "" ? "AA" : `${text.startsWith("A") ? "B" : "A"}${text.slice(1)}`);
  const changed = parts.map((text, i) => (i === part ? other(text) : text)).join(".");
  await expect(open("key-1", OURS, changed)).rejects.toMatchObject({ name: "AppError" });
});

test("no error contains the key or a master key", async () => {
  const opened = [open("key-1", OURS, `${sealed}AA`), open("key-2", OURS), open("key-1", masterKeysOf(SECOND))];
  for (const error of (await Promise.all(opened.map(failureOf))) as Error[])
    for (const secret of [KEY.reveal(), FIRST, SECOND])
      expect(`${error} ${error.stack} ${JSON.stringify(error)}`).not.toContain(secret);
});

test.each([
  ["not set", undefined, /USAGE_EXPORT_MASTER_KEY is not set: .* openssl rand -base64 32/],
  ["empty", "", /is not set/],
  ["31 bytes", randomBytes(31).toString("base64"), /expected 32 bytes in base64, got 31 bytes/],
  ["33 bytes", randomBytes(33).toString("base64"), /expected 32 bytes in base64, got 33 bytes/],
  ["not base64", "!".repeat(44), /expected 32 bytes in base64, got other characters/],
  ["32 bytes after a quote", `"${newMasterKey()}`, /expected 32 bytes in base64, got other characters/],
  ["32 bytes before a quote", `${newMasterKey()}"`, /expected 32 bytes in base64, got other characters/],
  ["hexadecimal", randomBytes(32).toString("hex"), /expected 32 bytes in base64, got 48 bytes/],
])("a master key that is %s is refused without being quoted", (_, value, message) => {
  const read = () => readMasterKeys({ USAGE_EXPORT_MASTER_KEY: value });
  expect(read).toThrow(message);
  if (value) expect(read).not.toThrow(value);
});

test.each([
  ["in base64url", (bytes: Buffer) => bytes.toString("base64url")],
  ["with a line break at its end", (bytes: Buffer) => `${bytes.toString("base64")}\n`],
])("a master key %s is read as the same key", (_, encode) => {
  const bytes = randomBytes(32);
  expect(masterKeysOf(encode(bytes)).current.id).toBe(masterKeysOf(bytes.toString("base64")).current.id);
});

test("sealed keys without their master key are an error that names both ways to fix it", () => {
  const sealedWith = [OURS.current.id];
  expect(() => requireMasterKeys(masterKeysOf(SECOND), sealedWith)).toThrow(/not the .* set it to .* or .* rewrap$/);
  expect(() => requireMasterKeys(masterKeysOf(SECOND, FIRST), sealedWith)).not.toThrow();
  expect(() => requireMasterKeys(OURS, sealedWith)).not.toThrow();
  expect(() => requireMasterKeys(OURS, [])).not.toThrow();
});
