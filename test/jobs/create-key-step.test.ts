// The calls that create a key, in order; the create can't be repeated. A process that has lost its lease must neither create nor deliver a key.

import { pino } from "pino";
import { expect, test } from "vitest";
import type { KeyLedger } from "../../src/db/keys/ledger.ts";
import { AppError } from "../../src/errors.ts";
import { type RotationRun, takeStep } from "../../src/jobs/rotation-steps.ts";
import type { RotationStep } from "../../src/keys/rotation-plan.ts";
import { Scrubber, Secret } from "../../src/secret.ts";
import type { Service } from "../../src/service/client-types.ts";
import { COMMAND, JOB, pending } from "../keys/sample-ledger.ts";

const KEY = new Secret("a".repeat(40));
const CREATE: RotationStep = { kind: "create", reason: "there is no active key" };
const LOST = new AppError("stopped", "another process has taken over the rotation");
const CREATED = { api_key_id: "key-1", key: "b".repeat(40), scopes: ["member"] };

/** A rotation without sinks, which records its calls. Each call takes `permits` permits before it is sent. `create` answers the POST. */
function openRotation(create: () => unknown = () => CREATED, ledgerPart: Partial<KeyLedger> = {}, permits = 1) {
  const done: string[] = [];
  const never = async () => {
    throw new Error("not expected");
  };
  const call: Service["call"] = async ({ operation = "", beforeAttempt }) => {
    for (let permit = 1; permit <= permits; permit++) await beforeAttempt?.();
    done.push(operation);
    const value = operation === "create_key" ? create() : { api_key_id: "caller" };
    return { status: 200, value };
  };
  const controller = new AbortController();
  const app = { signal: controller.signal, scrubber: new Scrubber(), log: pino({ level: "silent" }) };
  const context = {
    app,
    service: { call },
    keyRing: { useCreatorKey: (_: unknown, use: (key: Secret) => unknown) => use(KEY) },
  };
  const ledger: KeyLedger = {
    read: never,
    openKey: never,
    write: async ({ kind }) => void done.push(`write ${kind}`),
    confirmLease: async () => void done.push("confirm lease"),
    ...ledgerPart,
  };
  const run = { context, rotation: { ...JOB, deliver: [] }, ledger } as unknown as RotationRun;
  return { done, controller, take: (step = CREATE) => takeStep(run, step) };
}

test("the create is sent between recording its intent and storing the new key", async () => {
  const { done, take } = openRotation();
  await take();
  expect(done).toEqual(["token", "write intent", "confirm lease", "create_key", "write stored"]);
});

test.each<[string, Error, number]>([
  ["lease", LOST, 1],
  ["lease", LOST, 2],
  ["database", new Error("Connection terminated unexpectedly"), 1],
])("a process that loses its %s while it waits for a permit takes its intent back", async (_, error, permits) => {
  let left = permits;
  const confirmLease = async () => {
    if (--left === 0) throw error;
  };
  const { done, take } = openRotation(undefined, { confirmLease }, permits);
  await expect(take()).rejects.toThrow(error.message);
  expect(done).toEqual(["token", "write intent", "write not-created"]);
});

test("a create that a signal stops while it waits for another permit takes its intent back", async () => {
  // A POST under way is never aborted, so the client throws an abort's reason only while the create waits.
  const stop = new AppError("stopped", "stopped by SIGTERM");
  const { done, take, controller } = openRotation(() => {
    controller.abort(stop);
    throw stop;
  });
  await expect(take()).rejects.toBe(stop);
  expect(done.at(-1)).toBe("write not-created");
});

test("if the intent can't be recorded, no create is sent", async () => {
  const { done, take } = openRotation(undefined, { write: () => Promise.reject(LOST) });
  await expect(take()).rejects.toThrow("another process");
  expect(done).toEqual(["token"]);
});

test("a create of a process that died counts as a failed attempt", async () => {
  const { done, take } = openRotation();
  await take({ kind: "mark-orphan", key: pending("intent"), reason: "it may have been created" });
  expect(done).toEqual(["write orphan", "write failed"]);
});

test("a process that has lost its lease delivers nothing", async () => {
  const openKey = async () => ({ apiKeyId: "key-1", key: KEY, scopesGranted: [] });
  const { take } = openRotation(undefined, { openKey, confirmLease: () => Promise.reject(LOST) });
  const step = { kind: "deliver", key: pending("verified"), sinks: [COMMAND], reason: "the key works" } as const;
  await expect(take(step)).rejects.toBe(LOST);
});

test.each<[string, Error, string]>([
  ["without an answer leaves an orphan", new AppError("unavailable", ""), "orphan"],
  ["that was refused leaves nothing", new AppError("rejected", "", { details: { status: 422 } }), "not-created"],
  ["that fails because of a bug leaves an orphan", new TypeError("no function"), "orphan"],
])("a create %s", async (_, error, kind) => {
  const { done, take } = openRotation(() => {
    throw error;
  });
  await expect(take()).rejects.toThrow(error.message);
  expect(done.slice(-2)).toEqual(["create_key", `write ${kind}`]);
});
