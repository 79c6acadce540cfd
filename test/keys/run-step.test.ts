// The order of the calls in the create, the only step that can't be repeated.

import { pino } from "pino";
import { expect, test } from "vitest";
import { AppError } from "../../src/errors.ts";
import { runStep } from "../../src/keys/rotate.ts";
import type { KeyLedger, RotationDeps } from "../../src/keys/rotation-deps.ts";
import { Secret } from "../../src/secret.ts";
import { JOB, ledger, NOW } from "./sample-ledger.ts";

const NEVER = new AbortController().signal;
const KEY = new Secret("a".repeat(40));

/** Deps that record their calls. */
function openContext(part: Partial<RotationDeps> = {}, ledgerPart: Partial<KeyLedger> = {}) {
  const done: string[] = [];
  const deps: RotationDeps = {
    ledger: {
      read: async () => ({ ledger: ledger([]), now: NOW }),
      write: async ({ kind }) => void done.push(`write ${kind}`),
      openKey: async () => ({ apiKeyId: "key-1", key: KEY }),
      confirmLease: async () => void done.push("confirm lease"),
      ...ledgerPart,
    },
    newIntentId: () => "ue-1",
    testSink: async () => void done.push("test sink"),
    deliver: async () => void done.push("deliver"),
    inspect: async ({ intentId }) => ({ intentId, refusal: undefined, stale: new Map() }),
    findCaller: async () => {
      done.push("find caller");
      return KEY;
    },
    create: async () => {
      done.push("create");
      return { apiKeyId: "key-1", key: KEY, scopes: ["member"] };
    },
    verify: async () => void done.push("verify"),
    list: async () => [],
    callerIds: async () => [],
    clocks: async () => ({ database: NOW, machine: NOW, service: NOW }),
    remove: async () => "deleted",
    lastUse: async () => ({ seen: "no", text: "" }),
    log: pino({ level: "silent" }),
    ...part,
  };
  const create = () => runStep({ job: JOB, deps, signal: NEVER }, { kind: "create", reason: "there is no active key" });
  return { done, create };
}

test("the create is sent after its intent is recorded, and the new key is stored directly after it", async () => {
  const { done, create } = openContext();
  await create();
  expect(done).toEqual(["test sink", "find caller", "write intent", "confirm lease", "create", "write stored"]);
});

test("if the intent can't be recorded, no create is sent", async () => {
  const { done, create } = openContext(
    {},
    {
      write: async () => {
        throw new AppError("stopped", "another process has taken over the rotation");
      },
    },
  );
  await expect(create()).rejects.toThrow("another process");
  expect(done).not.toContain("create");
});

test.each<[string, Error, string]>([
  [
    "without an answer leaves an orphan",
    new AppError("unavailable", "", { details: { created: "unknown" } }),
    "orphan",
  ],
  ["that was refused leaves nothing", new AppError("rejected", "", { details: { created: "no" } }), "not-created"],
  ["that fails because of a bug leaves an orphan", new TypeError("no function"), "orphan"],
])("a create %s", async (_, error, kind) => {
  const { done, create } = openContext({
    create: async () => {
      throw error;
    },
  });
  await expect(create()).rejects.toBe(error);
  expect(done.at(-1)).toBe(`write ${kind}`);
});
