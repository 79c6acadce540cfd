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

const open = (sealed: string, apiKeyId: string, masterKeys: MasterKeys) =>
  openSealedKey({ sealed, apiKeyId }, masterKeys, new Scrubber());

const revealed = async (...args: Parameters<typeof open>) => (await open(...args)).reveal();

test("a sealed key opens with the same master key", async () => {
  const sealed = await sealKey(KEY, "key-1", masterKeysOf(FIRST));
  expect(await revealed(sealed, "key-1", masterKeysOf(FIRST))).toBe(KEY.reveal());
});

test("a sealed key opens if its master key is given as the previous one", async () => {
  const sealed = await sealKey(KEY, "key-1", masterKeysOf(FIRST));
  expect(await revealed(sealed, "key-1", masterKeysOf(SECOND, FIRST))).toBe(KEY.reveal());
});

test("sealing a key twice gives two different texts, and neither contains the key", async () => {
  const sealed = await Promise.all([1, 2].map(() => sealKey(KEY, "key-1", masterKeysOf(FIRST))));
  expect(new Set(sealed).size).toBe(2);
  const parts = sealed.flatMap((text) => text.split("."));
  for (const part of parts) expect(Buffer.from(part, "base64url").toString("latin1")).not.toContain(KEY.reveal());
});

test("without its master key a sealed key does not open, and the error names the missing one", async () => {
  const sealed = await sealKey(KEY, "key-1", masterKeysOf(FIRST));
  const { id } = masterKeysOf(FIRST).current;
  await expect(open(sealed, "key-1", masterKeysOf(SECOND))).rejects.toMatchObject({
    code: "config",
    message: `no master key ${id} is given`,
  });
});

test("a sealed key in the row of another key does not open", async () => {
  const sealed = await sealKey(KEY, "key-1", masterKeysOf(FIRST));
  await expect(open(sealed, "key-2", masterKeysOf(FIRST))).rejects.toThrow(
    "the sealed key key-2 does not open: it was changed, is that of another key",
  );
});

test("a damaged sealed key is told from one whose master key is missing", async () => {
  const sealed = await sealKey(KEY, "key-1", masterKeysOf(FIRST));
  const errors = await Promise.all(
    [open(`${sealed}AA`, "key-1", masterKeysOf(FIRST)), open(sealed, "key-1", masterKeysOf(SECOND))].map((opening) =>
      opening.then(String, (error: unknown) => error),
    ),
  );
  expect(errors.map(isDamaged)).toEqual([true, false]);
});

test("a sealed key whose header was changed to another id does not open", async () => {
  const sealed = await sealKey(KEY, "key-1", masterKeysOf(FIRST));
  const [, ...rest] = sealed.split(".");
  const header = { ...decodeProtectedHeader(sealed), api_key_id: "key-2" };
  const forged = [Buffer.from(JSON.stringify(header)).toString("base64url"), ...rest].join(".");
  await expect(open(forged, "key-2", masterKeysOf(FIRST))).rejects.toThrow("the sealed key key-2 does not open");
});

test.each([0, 1, 2, 3, 4])("a sealed text that was changed in part %i does not open", async (part) => {
  const parts = (await sealKey(KEY, "key-1", masterKeysOf(FIRST))).split(".");
  // Changes the first letter: the last letter of a part has unused bits, and a change of only those changes nothing.
  const other = (text: string) => (text === "" ? "AA" : `${text.startsWith("A") ? "B" : "A"}${text.slice(1)}`);
  const changed = parts.map((text, i) => (i === part ? other(text) : text)).join(".");
  await expect(open(changed, "key-1", masterKeysOf(FIRST))).rejects.toMatchObject({ name: "AppError" });
});

test("no error contains the key or a master key", async () => {
  const sealed = await sealKey(KEY, "key-1", masterKeysOf(FIRST));
  const errors = await Promise.all(
    [
      open(`${sealed}AA`, "key-1", masterKeysOf(FIRST)),
      open(sealed, "key-2", masterKeysOf(FIRST)),
      open(sealed, "key-1", masterKeysOf(SECOND)),
    ].map((opening) => opening.then(String, (error) => `${error.stack} ${JSON.stringify(error)}`)),
  );
  for (const text of errors) for (const secret of [KEY.reveal(), FIRST, SECOND]) expect(text).not.toContain(secret);
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
])("a master key that is %s is refused, and the error does not repeat it", (_, value, message) => {
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

test("a ledger sealed with a master key that is not given is refused, with both fixes", () => {
  const sealedWith = [masterKeysOf(FIRST).current.id];
  expect(() => requireMasterKeys(masterKeysOf(SECOND), sealedWith)).toThrow(/is not the master key .* keys rewrap/);
  expect(() => requireMasterKeys(masterKeysOf(SECOND, FIRST), sealedWith)).not.toThrow();
  expect(() => requireMasterKeys(masterKeysOf(FIRST), sealedWith)).not.toThrow();
  expect(() => requireMasterKeys(masterKeysOf(FIRST), [])).not.toThrow();
});
