// What keeps a rotation from making a key, or a key from being used. In each case the current key stays.

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { expect } from "vitest";
import {
  ageKeys,
  createdKeys,
  events,
  ledgerRows,
  type RotationContext,
  rotationTest,
  sinkSecret,
} from "./rotation-context.ts";

const test = await rotationTest();
const limitedTest = await rotationTest({ scopes: ["usage:read", "project:read", "keys:read"] });

const postsOf = ({ proxy }: RotationContext) => proxy.creates.length;

async function failuresOf({ db }: RotationContext): Promise<number | undefined> {
  const row = await db.selectFrom("usage_export.rotation").select("failed_attempts").executeTakeFirst();
  return row?.failed_attempts;
}

test("without a first key the error says where to create one, and the service is not called", async ({ context }) => {
  const { status, stderr } = await context.run(["rotate"], { USAGE_EXPORT_KEY: undefined });
  expect(status).toBe(2);
  expect(stderr).toContain("projects[0].key.first: environment variable USAGE_EXPORT_KEY is not set");
  expect(stderr).toContain("create it in the service's web console");
  expect(context.emulator.requests).toEqual([]);
});

limitedTest("if the calling key may not create keys, the error names the missing scope", async ({ context }) => {
  const { status, stdout } = await context.run(["rotate"]);
  expect(status).toBe(1);
  expect(stdout).toMatch(/the service answered 403.*the key needs the scope keys:write/);
  expect(await ledgerRows(context.db)).toEqual([]);
  expect(await events(context.db)).toEqual(["intent", "not-created", "failed"]);
  expect(postsOf(context)).toBe(1);
});

test("a first key that the service does not know is reported before a create is sent", async ({ context }) => {
  const { status, stdout } = await context.run(["rotate"], { USAGE_EXPORT_KEY: context.newSecret() });
  expect(status).toBe(1);
  expect(stdout).toContain("it does not accept the key");
  expect(await events(context.db)).toEqual(["failed"]);
  expect(postsOf(context)).toBe(0);
});

test("an unavailable service is reported before a create is sent, and leaves no orphan", async ({ context }) => {
  context.emulator.fault = () => ({ kind: "answer", status: 503, headers: { "retry-after": "9999" } });
  const { status } = await context.run(["rotate"]);
  expect(status).toBe(1);
  expect(await ledgerRows(context.db)).toEqual([]);
  expect(postsOf(context)).toBe(0);
});

test("a sink that can't be delivered to is reported before the service is called", async ({ context }) => {
  await context.configure({ deliver: [{ file: context.sink }, { command: ["no-such-program"] }] });
  const { status, stdout } = await context.run(["rotate"]);
  expect({ status, stdout }).toEqual({
    status: 1,
    stdout: 'exporter\n  failed: the command "no-such-program" does not exist, or may not be run\n',
  });
  expect(context.emulator.requests).toEqual([]);
  expect(existsSync(context.sink)).toBe(false);
});

test("a new key that the service refuses stays unused, and the current key stays", async ({ context }) => {
  await context.prepare();
  const before = sinkSecret(context);
  const known = context.emulator.keys().map(({ apiKeyId }) => apiKeyId);
  context.emulator.fault = ({ keyId }) =>
    keyId !== undefined && !known.includes(keyId) ? { kind: "answer", status: 401 } : undefined;
  await ageKeys(context.db, 30);
  const { status, stdout } = await context.run(["rotate"]);
  expect(status).toBe(1);
  expect(stdout).toContain("it does not accept the key");
  expect(sinkSecret(context)).toBe(before);
  expect(await ledgerRows(context.db)).toMatchObject([{ state: "active" }, { state: "pending", step: "stored" }]);
  expect(await failuresOf(context)).toBe(1);

  context.emulator.fault = undefined;
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(postsOf(context)).toBe(2);
  expect(await ledgerRows(context.db)).toMatchObject([{ state: "draining" }, { state: "active" }]);
  expect(await failuresOf(context)).toBe(0);
});

test("a new key that the service takes for another key stays unused", async ({ context }) => {
  const [console] = context.emulator.keys();
  context.emulator.fault = ({ path, keyId }) =>
    path === "/v1/auth/token" && keyId !== console?.apiKeyId
      ? { kind: "body", change: (json) => ({ ...json, api_key_id: console?.apiKeyId }) }
      : undefined;
  const { status, stdout } = await context.run(["rotate"]);
  expect(status).toBe(1);
  expect(stdout).toMatch(/the service takes the key \S+ for /);
});

test("a key with fewer scopes than requested stays unused, and rotate --now makes another", async ({ context }) => {
  await context.prepare();
  const before = sinkSecret(context);
  await context.configure({ scopes: ["member", "billing:read"] });
  context.emulator.fault = ({ method }) =>
    method === "POST" ? { kind: "body", change: (json) => ({ ...json, scopes: ["member"] }) } : undefined;
  const first = await context.run(["rotate", "--now"]);
  expect(first).toMatchObject({
    status: 1,
    stdout: expect.stringMatching(/was not granted billing:read; .*rotate --now/),
  });
  expect((await context.run(["rotate"])).status).toBe(1);
  expect(sinkSecret(context)).toBe(before);
  expect(postsOf(context)).toBe(2);

  context.emulator.fault = undefined;
  expect((await context.run(["rotate", "--now"])).status).toBe(0);
  expect(postsOf(context)).toBe(3);
  expect(await ledgerRows(context.db)).toMatchObject([
    { state: "draining" },
    { state: "draining" },
    { state: "active" },
  ]);
});

test("a rotation works with a service that does not have /v1/auth/token", async ({ context }) => {
  context.emulator.fault = ({ path }) => (path === "/v1/auth/token" ? { kind: "answer", status: 404 } : undefined);
  expect((await context.run(["rotate"])).status).toBe(0);
});

test("another master key than the ledger's is refused before the service is called", async ({ context }) => {
  await context.prepare();
  const before = context.emulator.requests.length;
  const { status, stderr } = await context.run(["rotate", "--now"], {
    USAGE_EXPORT_MASTER_KEY: randomBytes(32).toString("base64"),
  });
  expect(status).toBe(2);
  expect(stderr).toContain("USAGE_EXPORT_MASTER_KEY is not the master key that the ledger's keys were sealed with");
  expect(context.emulator.requests.length).toBe(before);
  expect(createdKeys(context)).toHaveLength(1);
});
