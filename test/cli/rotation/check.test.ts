// What `check` says about the rights of a rotation's keys and about its sinks, how `rotate` works with them, and what neither prints.

import { expect } from "vitest";
import { PRODUCTION } from "../small-config.ts";
import { rotationTest } from "./rotation-context.ts";

const READING = ["project:read", "usage:read"];
const test = await rotationTest();
const readOnlyKeyTest = await rotationTest({ scopes: READING });
/** The emulator adds keys:read to keys:write. */
const createOnlyKeyTest = await rotationTest({ scopes: ["keys:write"] });
const twoKeysTest = await rotationTest({ scopes: READING, creatorScopes: ["keys:write"] });

const fineLine = (key: string) => `ok   rotation exporter: ${key} may create keys, and every sink can be written`;

test("check says that the key may create keys and that every sink can be written", async ({ context }) => {
  expect((await context.run(["check"])).stdout).toContain(fineLine("the key"));
  expect(context.proxy.creates).toEqual([]);
});

readOnlyKeyTest("check says which scope is missing for creating keys", async ({ context }) => {
  const says =
    "FAIL rotation exporter: the key may not create keys: it has the scopes project:read, usage:read; add keys:write";
  expect(await context.run(["check"])).toMatchObject({ status: 1, stdout: expect.stringContaining(says) });
});

createOnlyKeyTest("a key whose project no export reads needs only the right to create keys", async ({ context }) => {
  await context.configure({}, { projects: [PRODUCTION], exports: [] });
  const { status, stdout } = await context.run(["check"]);
  expect(stdout).toContain("ok   key: scopes keys:read, keys:write; no export reads this project");
  expect(stdout).toContain(fineLine("the key"));
  expect(status).toBe(0);

  await context.configure({}, { projects: [PRODUCTION] });
  const says =
    'FAIL key: the key of "production" has the scopes keys:read, keys:write; reading usage needs project:read';
  expect(await context.run(["check"])).toMatchObject({ status: 1, stdout: expect.stringContaining(says) });
});

twoKeysTest("a key that may only read is rotated with another key that may only create keys", async ({ context }) => {
  const { emulator } = context;
  await context.configure({ createWith: { env: "USAGE_EXPORT_CREATOR_KEY" }, scopes: READING, graceDays: 0 });
  const [_readingKey, creatorKey] = emulator.keys();
  const says = expect.stringContaining(fineLine("the key of createWith"));
  expect(await context.run(["check"])).toMatchObject({ status: 0, stdout: says });

  for (let n = 0; n < 2; n++) expect((await context.run(["rotate", "--now"])).stdout).toMatch(/promote/);
  const writes = emulator.requests.filter(({ method }) => method !== "GET");
  expect(writes.map(({ method, keyId }) => [method, keyId])).toEqual([
    ["POST", creatorKey?.apiKeyId],
    ["POST", creatorKey?.apiKeyId],
  ]);
  const made = emulator.keys().filter(({ origin }) => origin === "created");
  const active = { scopes: READING, state: "active" };
  expect(made).toMatchObject([active, active]);

  // An export works with a wrong key in createWith, because it does not use that key.
  const since = emulator.requests.length;
  const result = await context.run(["export"], { USAGE_EXPORT_CREATOR_KEY: context.newSecret() });
  expect(result).toMatchObject({ status: 0 });
  expect(new Set(emulator.requests.slice(since).map(({ keyId }) => keyId))).toEqual(new Set([made[1]?.apiKeyId]));
});

test("control characters in the service's answers are not printed", async ({ context }) => {
  const evil = "\u001b]0;owned\u0007\u009b2J\u202e\u0008";
  context.emulator.fault = ({ path }) => {
    if (path === "/v1/auth/token") return { kind: "body", change: (json) => ({ ...json, scopes: ["member", evil] }) };
    return path.includes("grouping=") ? { kind: "answer", status: 400, body: `no ${evil} such grouping` } : undefined;
  };
  for (const args of [["check"], ["check", "--json"], ["rotate"], ["status"]]) {
    const { stdout, stderr } = await context.run(args, { LOG_LEVEL: "debug" });
    expect(`${stdout}${stderr}`).not.toMatch(/(?![\n\t])\p{Cc}|[\u202a-\u202e]/u);
  }
  expect((await context.run(["check"])).stdout).toContain("]0;owned");
});
