// Seals API keys for the ledger. A sealed key is a JWE that opens only with its master key, and only in the ledger row it was made for.

import { createHash } from "node:crypto";
import { CompactEncrypt, compactDecrypt } from "jose";
import { AppError } from "../errors.ts";
import { type Scrubber, Secret } from "../secret.ts";

/** The environment variables of the master keys. Keys are sealed with the current one, and opened with either. */
const CURRENT_VARIABLE = "USAGE_EXPORT_MASTER_KEY";
const PREVIOUS_VARIABLE = "USAGE_EXPORT_MASTER_KEY_PREVIOUS";
const MASTER_KEY_BYTES = 32;

type MasterKey = { readonly id: string; readonly bytes: Uint8Array };
export type MasterKeys = { readonly current: MasterKey; readonly all: readonly MasterKey[] };

/** Throws an AppError with the code `config`. Its messages contain no part of a master key. */
export function readMasterKeys(env: Readonly<Record<string, string | undefined>>): MasterKeys {
  const current = readMasterKey(CURRENT_VARIABLE, env[CURRENT_VARIABLE]);
  if (!current) {
    const hint = "a rotation seals its keys with it; make one with: openssl rand -base64 32";
    throw new AppError("config", `environment variable ${CURRENT_VARIABLE} is not set: ${hint}`);
  }
  const previous = readMasterKey(PREVIOUS_VARIABLE, env[PREVIOUS_VARIABLE]);
  return { current, all: previous ? [current, previous] : [current] };
}

function readMasterKey(name: string, value: string | undefined): MasterKey | undefined {
  if (value === undefined || value === "") return undefined;
  const bytes = Buffer.from(value, "base64");
  // Buffer.from skips characters that are not base64 without an error.
  const isBase64 = /^[A-Za-z0-9+/_-]+={0,2}$/.test(value.trim());
  if (bytes.length !== MASTER_KEY_BYTES || !isBase64) {
    const found = isBase64 ? `${bytes.length} bytes` : "other characters";
    throw new AppError("config", `environment variable ${name}: expected 32 bytes in base64, got ${found}`);
  }
  // The id is stored beside the sealed text, so it must not reveal anything of the master key.
  const digest = createHash("sha256").update("usage-export master key id").update(bytes).digest("hex");
  return { id: digest.slice(0, 16), bytes };
}

/** Throws an AppError `config` if something in the ledger is sealed with a master key that is not given. */
export function requireMasterKeys(masterKeys: MasterKeys, sealedWith: readonly string[]): void {
  const unknown = sealedWith.filter((id) => !masterKeys.all.some((masterKey) => masterKey.id === id));
  if (unknown.length === 0) return;
  throw new AppError(
    "config",
    `${CURRENT_VARIABLE} is not the master key that the ledger's keys were sealed with (expected id ${unknown.join(", ")}, got id ${masterKeys.current.id}); set it to the master key with that id, or set ${PREVIOUS_VARIABLE} to that master key and run: usage-export keys rewrap`,
  );
}

/** The API key's id is authenticated together with the key: a sealed key that is moved to another row does not open. */
export async function sealKey(key: Secret, apiKeyId: string, { current }: MasterKeys): Promise<string> {
  return new CompactEncrypt(new TextEncoder().encode(key.reveal()))
    .setProtectedHeader({ alg: "dir", enc: "A256GCM", kid: current.id, api_key_id: apiKeyId })
    .encrypt(current.bytes);
}

/** Throws an AppError `config` if the master key is not given. If the text is damaged or from another row, `isDamaged` is true of the error. */
export async function openSealedKey(
  { sealed, apiKeyId }: { readonly sealed: string; readonly apiKeyId: string },
  masterKeys: MasterKeys,
  scrubber: Pick<Scrubber, "add">,
): Promise<Secret> {
  try {
    const { plaintext, protectedHeader } = await compactDecrypt(sealed, ({ kid }) => {
      const masterKey = masterKeys.all.find(({ id }) => id === kid);
      if (!masterKey) throw new AppError("config", `no master key ${kid} is given`);
      return masterKey.bytes;
    });
    if (protectedHeader.api_key_id !== apiKeyId) throw new Error("it belongs to another row");
    return scrubber.add(new Secret(new TextDecoder().decode(plaintext)));
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError(
      "database",
      `the sealed key ${apiKeyId} does not open: it was altered or was made for another key; the next run of the rotation replaces the key; to do so now, run: usage-export rotate`,
      { details: { sealed: "damaged" } },
    );
  }
}

export function isDamaged(error: unknown): error is AppError {
  return error instanceof AppError && error.details.sealed === "damaged";
}
