// What keeps a rotation from making a key, or a key from being used. In each case the current key stays.

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { expect } from "vitest";
import {
  ageKeys,
  createdKeys,
  events,
  ledgerRows,
  PROJECT_ID,
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

test("once there is a rotated key the first one is not needed", async ({ context }) => {
  await context.prepare();
  expect((await context.run(["rotate", "--now"], { USAGE_EXPORT_KEY: undefined })).status).toBe(0);
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

test.for([401, 429])("a create that is answered %i made no key", async (status, { context }) => {
  context.emulator.fault = ({ method }) => (method === "POST" ? { kind: "answer", status } : undefined);
  expect((await context.run(["rotate"])).status).toBe(1);
  expect(await ledgerRows(context.db)).toEqual([]);
  expect(postsOf(context)).toBe(1);
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

test("a pause that the service asks for with a new key is one of the rotation's key alone", async ({ context }) => {
  const key = { rotation: "exporter", first: { env: "USAGE_EXPORT_KEY" } };
  const other = { id: "project-2", name: "other", key: { env: "USAGE_EXPORT_CREATOR_KEY" } };
  await context.configure({}, { projects: [{ id: PROJECT_ID, name: "production", key }, other] });
  const known = context.emulator.keys().map(({ apiKeyId }) => apiKeyId);
  let isPaused = false;
  context.emulator.fault = ({ keyId }) => {
    if (isPaused || keyId === undefined || known.includes(keyId)) return undefined;
    isPaused = true;
    return { kind: "answer", status: 429, headers: { "retry-after": "6" } };
  };
  const { status, stderr } = await context.run(["rotate"]);
  expect(status).toBe(0);
  const waits = stderr.split("\n").filter((line) => line.includes("calls to the service wait"));
  expect(waits.map((line) => JSON.parse(line).key)).toEqual(["rotation exporter"]);
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

test.for([
  [
    ["usage:read"],
    "rotations[0].scopes: expected keys:write, or a role with it, because each key creates the next one",
  ],
] as const)(
  "scopes that can't work, %j, are refused before the service is called",
  async ([scopes, message], { context }) => {
    await context.configure({ scopes });
    const { status, stderr } = await context.run(["rotate"]);
    expect(status).toBe(2);
    expect(stderr).toContain(message);
    expect(context.emulator.requests).toEqual([]);
  },
);

test("a rotation that was given to another project is refused, and its keys stay", async ({ context }) => {
  await context.prepare();
  const key = { env: "USAGE_EXPORT_KEY" };
  await context.configure({}, { projects: [{ id: "project-2", name: "production", key }] });
  const { status, stderr } = await context.run(["rotate", "--now"]);
  expect(status).toBe(2);
  expect(stderr).toContain("the rotation exporter has keys of another project (production, project-1)");
  expect(await ledgerRows(context.db)).toMatchObject([{ state: "active" }]);
});

test("the name of a rotation that is not configured is reported as an error of the command line", async ({
  context,
}) => {
  const { status, stderr } = await context.run(["rotate", "--job", "exportr"]);
  expect(status).toBe(2);
  expect(stderr).toContain('--job: "exportr" is not configured (there is "exporter"); did you mean "exporter"?');
});
