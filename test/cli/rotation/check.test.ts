import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { rotationTest } from "./rotation-context.ts";

const test = await rotationTest();
const limitedTest = await rotationTest({ scopes: ["usage:read", "project:read"] });

test("check says that the key may create keys and that every sink can be written", async ({ context }) => {
  const { stdout } = await context.run(["check"]);
  expect(stdout).toContain("ok   rotation exporter: the key may create keys, and every sink can be written");
  expect(context.proxy.creates).toEqual([]);
});

limitedTest("check says which scope is missing for creating keys", async ({ context }) => {
  const { status, stdout } = await context.run(["check"]);
  expect(status).toBe(1);
  expect(stdout).toContain(
    "FAIL rotation exporter: the key may not create keys: it needs keys:write, and has project:read, usage:read",
  );
});

const creatingTest = await rotationTest({ scopes: ["keys:write"] });
const READING = ["project:read", "usage:read"];
const apartTest = await rotationTest({ scopes: READING, creatorScopes: ["keys:write"] });
const CREATOR = { createWith: { env: "USAGE_EXPORT_CREATOR_KEY" }, scopes: READING };

creatingTest("check accepts a key that may only create keys if no export reads its project", async ({ context }) => {
  const key = { env: "USAGE_EXPORT_KEY" };
  const projects = [{ id: "project-1", name: "production", key }];
  await context.configure({}, { projects, exports: [] });
  const { status, stdout } = await context.run(["check"]);
  expect(stdout).toContain(
    "ok   key: scopes keys:read, keys:write; it can't read usage, and no export reads this project",
  );
  expect(stdout).toContain("ok   rotation exporter: the key may create keys, and every sink can be written");
  expect(status).toBe(0);

  await context.configure({}, { projects });
  expect(await context.run(["check"])).toMatchObject({
    status: 1,
    stdout: expect.stringContaining(
      'FAIL key: the key of "production" has the scopes keys:read, keys:write; reading usage needs project:read',
    ),
  });
});

apartTest("a key that may only read is rotated with another key that may only create keys", async ({ context }) => {
  await context.configure({ ...CREATOR, graceDays: 0 });
  const [reader, creator] = context.emulator.keys().map(({ apiKeyId }) => apiKeyId);
  const { status, stdout } = await context.run(["check"]);
  expect(stdout).toContain(
    "ok   rotation exporter: the key of createWith may create keys, and every sink can be written",
  );
  expect(status).toBe(0);

  for (let n = 0; n < 2; n++) expect((await context.run(["rotate", "--now"])).stdout).toMatch(/promote/);
  const asked = context.emulator.requests.filter(({ method }) => method !== "GET");
  expect(asked.map(({ method, keyId }) => [method, keyId])).toEqual([
    ["POST", creator],
    ["POST", creator],
  ]);
  const made = context.emulator.keys().filter(({ origin }) => origin === "created");
  expect(made.map(({ scopes, state }) => ({ scopes, state }))).toEqual([
    { scopes: READING, state: "active" },
    { scopes: READING, state: "active" },
  ]);

  const since = context.emulator.requests.length;
  expect((await context.run(["export"], { USAGE_EXPORT_CREATOR_KEY: context.newSecret() })).status).toBe(0);
  const readers = context.emulator.requests.slice(since).map(({ keyId }) => keyId);
  expect(new Set(readers)).toEqual(new Set([made[1]?.apiKeyId]));
  expect(readers).not.toContain(reader);
});

test("check reports a folder that can't be created, and ends", async ({ context }) => {
  await writeFile(path.join(context.folder, "taken"), "");
  await context.configure({ deliver: [{ file: "taken/key" }] });
  const { status, stdout } = await context.run(["check"]);
  expect(status).toBe(1);
  expect(stdout).toContain(`FAIL rotation exporter: the key file ${context.folder}/taken/key can't be written: E`);
});

test("other files in the folder of a sink stay as they are", async ({ context }) => {
  for (const helper of ["next", "probe"]) await writeFile(`${context.sink}.${helper}`, "somebody's");
  expect((await context.run(["check"])).status).toBe(0);
  expect((await context.run(["rotate"])).status).toBe(0);
  for (const helper of ["next", "probe"])
    expect(await readFile(`${context.sink}.${helper}`, "utf8")).toBe("somebody's");
});

test("control characters in the service's answers are not printed", async ({ context }) => {
  const evil = "\u001b]0;owned\u0007\u009b2J\u202e\u0008";
  context.emulator.fault = ({ path }) => {
    if (path === "/v1/auth/token") return { kind: "body", change: (json) => ({ ...json, scopes: ["member", evil] }) };
    return path.includes("grouping=") ? { kind: "answer", status: 400, body: `no ${evil} such grouping` } : undefined;
  };
  for (const args of [["check"], ["check", "--json"], ["rotate"], ["status"]]) {
    const { stdout, stderr } = await context.run(args, { LOG_LEVEL: "debug" });
    expect(`${stdout}${stderr}`).not.toMatch(/[^\P{Cc}\n\t]|[\u202a-\u202e]/u);
  }
  expect((await context.run(["check"])).stdout).toContain("]0;owned");
});
