// What keeps a rotation from making a key, or a key from being used. In each case the current key stays.

import { expect } from "vitest";
import { type RotationContext, rotationTest } from "./rotation-context.ts";

const test = await rotationTest();
const limitedTest = await rotationTest({ scopes: ["usage:read", "project:read", "keys:read"] });

const createCount = ({ proxy }: RotationContext) => proxy.creates.length;

async function failedAttempts({ db }: RotationContext): Promise<number | undefined> {
  const row = await db.selectFrom("usage_export.rotation").select("failed_attempts").executeTakeFirst();
  return row?.failed_attempts;
}

test("without a first key the error says where to create one", async ({ context }) => {
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
  expect(await context.ledgerRows()).toEqual([]);
  expect(await context.events()).toEqual(["intent", "not-created", "failed"]);
  expect(createCount(context)).toBe(1);
});

test("a first key that the service does not know is reported before a create is sent", async ({ context }) => {
  const result = await context.run(["rotate"], { USAGE_EXPORT_KEY: context.newSecret() });
  expect(result).toMatchObject({ status: 1, stdout: expect.stringContaining("it does not accept the key") });
  expect(await context.events()).toEqual(["failed"]);
  expect(createCount(context)).toBe(0);
});

test("a new key that the service refuses stays unused until the service accepts it", async ({ context }) => {
  await context.rotateOrThrow();
  const before = context.sinkSecret();
  const known = context.emulator.keys().map(({ apiKeyId }) => apiKeyId);
  context.emulator.fault = ({ keyId }) =>
    keyId !== undefined && !known.includes(keyId) ? { kind: "answer", status: 401 } : undefined;
  await context.ageKeys(30);
  const { status, stdout } = await context.run(["rotate"]);
  expect(status).toBe(1);
  expect(stdout).toContain("it does not accept the key");
  expect(context.sinkSecret()).toBe(before);
  expect(await context.ledgerRows()).toMatchObject([{ state: "active" }, { state: "pending", step: "stored" }]);
  expect(await failedAttempts(context)).toBe(1);

  context.emulator.fault = undefined;
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(createCount(context)).toBe(2);
  expect(await context.states()).toEqual(["draining", "active"]);
  expect(await failedAttempts(context)).toBe(0);
});

test("a new key that the service takes for another key is reported", async ({ context }) => {
  const [consoleKey] = context.emulator.keys();
  context.emulator.fault = ({ path, keyId }) =>
    path === "/v1/auth/token" && keyId !== consoleKey?.apiKeyId
      ? { kind: "body", change: (json) => ({ ...json, api_key_id: consoleKey?.apiKeyId }) }
      : undefined;
  expect(await context.run(["rotate"])).toMatchObject({
    status: 1,
    stdout: expect.stringMatching(/the service takes the key \S+ for /),
  });
});

test("a key with fewer scopes than requested stays unused", async ({ context }) => {
  await context.rotateOrThrow();
  const before = context.sinkSecret();
  await context.configure({ scopes: ["member", "billing:read"] });
  context.emulator.fault = ({ method }) =>
    method === "POST" ? { kind: "body", change: (json) => ({ ...json, scopes: ["member"] }) } : undefined;
  expect(await context.run(["rotate", "--now"])).toMatchObject({
    status: 1,
    stdout: expect.stringMatching(/was not granted billing:read; .*rotate --now/),
  });
  expect(await context.run(["rotate"])).toMatchObject({ status: 1 });
  expect(context.sinkSecret()).toBe(before);
  expect(createCount(context)).toBe(2);

  context.emulator.fault = undefined;
  expect(await context.run(["rotate", "--now"])).toMatchObject({ status: 0 });
  expect(createCount(context)).toBe(3);
  expect(await context.states()).toEqual(["draining", "draining", "active"]);
});

test("another master key than the ledger's is refused before the service is called", async ({ context }) => {
  await context.rotateOrThrow();
  const before = context.emulator.requests.length;
  const { status, stderr } = await context.run(["rotate", "--now"], {
    USAGE_EXPORT_MASTER_KEY: context.newMasterKey(),
  });
  expect(status).toBe(2);
  expect(stderr).toContain("USAGE_EXPORT_MASTER_KEY is not the master key that the ledger's keys were sealed with");
  expect(context.emulator.requests.length).toBe(before);
  expect(context.createdKeys()).toHaveLength(1);
});

test("after five failed attempts nothing is created until a person asks for it", async ({ context }) => {
  context.emulator.fault = ({ method }) => (method === "POST" ? { kind: "answer", status: 409 } : undefined);
  for (let i = 1; i <= 5; i++) {
    expect(await context.run(["rotate"])).toMatchObject({ status: 1 });
    expect(await context.run(["keys"])).toMatchObject({ status: i < 5 ? 0 : 1 });
  }
  expect(createCount(context)).toBe(5);

  context.emulator.fault = undefined;
  const blocked = /needs attention: 5 attempts failed, the last with: .*409.*nothing is created until rotate --now/;
  for (const args of [["rotate"], ["rotate", "--dry-run"], ["rotate", "--json"]]) {
    expect(await context.run(args)).toMatchObject({ status: 1, stdout: expect.stringMatching(blocked) });
  }
  expect(createCount(context)).toBe(5);
  for (const command of ["keys", "status"]) {
    const { status, stdout } = await context.run([command]);
    expect(stdout).toMatch(/5 failed attempts, the last: .*409/);
    expect(stdout).toContain("needs attention: nothing is created until rotate --now");
    expect(status).toBe(1);
  }

  expect(await context.run(["rotate", "--now"])).toMatchObject({ status: 0 });
  expect(createCount(context)).toBe(6);
  expect(await context.states()).toEqual(["active"]);
  expect(await context.run(["keys"])).toMatchObject({ status: 0, stdout: expect.not.stringContaining("attention") });
});
