import { expect } from "vitest";
import { rotationTest } from "./rotation-world.ts";

const test = rotationTest();
const limitedTest = rotationTest({ scopes: ["usage:read", "project:read"] });

test("check says that the key may create keys and that every sink can be written", async ({ world }) => {
  const { stdout } = await world.run(["check"]);
  expect(stdout).toContain("ok   rotation exporter: the key may create keys, and every sink can be written");
  expect(world.proxy.creates).toEqual([]);
});

limitedTest("check says which scope is missing for creating keys", async ({ world }) => {
  const { status, stdout } = await world.run(["check"]);
  expect(status).toBe(1);
  expect(stdout).toContain(
    "FAIL rotation exporter: the key may not create keys: it needs keys:write, and has project:read, usage:read",
  );
});

test("check says which sink can't be written", async ({ world }) => {
  await world.configure({ deliver: [{ command: ["no-such-program"] }] });
  const { status, stdout } = await world.run(["check"]);
  expect(status).toBe(1);
  expect(stdout).toContain('FAIL rotation exporter: the command "no-such-program" is not there, or may not be run');
});

test("check looks at the rotated key once there is one", async ({ world }) => {
  await world.prepare();
  const { stdout } = await world.run(["check"], { USAGE_EXPORT_KEY: undefined });
  expect(stdout).toContain("ok   rotation exporter");
});

const creatingTest = rotationTest({ scopes: ["keys:write"] });
const READING = ["project:read", "usage:read"];
const apartTest = rotationTest({ scopes: READING, creatorScopes: ["keys:write"] });
const CREATOR = { createWith: { env: "USAGE_EXPORT_CREATOR_KEY" }, scopes: READING };

creatingTest(
  "check is content with a key that may only create keys, where no export reads the project",
  async ({ world }) => {
    const key = { env: "USAGE_EXPORT_KEY" };
    const projects = [{ id: "project-1", name: "production", key }];
    await world.configure({}, { projects, exports: [] });
    const { status, stdout } = await world.run(["check"]);
    expect(stdout).toContain(
      "ok   key: scopes keys:read, keys:write; it can't read usage, and no export reads this project",
    );
    expect(stdout).toContain("ok   rotation exporter: the key may create keys, and every sink can be written");
    expect(status).toBe(0);

    await world.configure({}, { projects });
    expect(await world.run(["check"])).toMatchObject({
      status: 1,
      stdout: expect.stringContaining(
        'FAIL key: the key of "production" has the scopes keys:read, keys:write; reading usage needs project:read',
      ),
    });
  },
);

apartTest("a key that only reads is renewed by another that only creates", async ({ world }) => {
  await world.configure({ ...CREATOR, graceDays: 0, retire: { delete: "by-age" } });
  const [reader, creator] = world.emulator.keys().map(({ apiKeyId }) => apiKeyId);
  const { status, stdout } = await world.run(["check"]);
  expect(stdout).toContain(
    "ok   rotation exporter: the key of createWith may create keys, and every sink can be written",
  );
  expect(status).toBe(0);

  for (let n = 0; n < 2; n++) expect((await world.run(["rotate", "--now"])).stdout).toMatch(/promote/);
  const asked = world.emulator.requests.filter(({ method }) => method !== "GET");
  expect(asked.map(({ method, keyId }) => [method, keyId])).toEqual([
    ["POST", creator],
    ["POST", creator],
    ["DELETE", creator],
  ]);
  const made = world.emulator.keys().filter(({ origin }) => origin === "created");
  expect(made.map(({ scopes, state }) => ({ scopes, state }))).toEqual([
    { scopes: READING, state: "deleted" },
    { scopes: READING, state: "active" },
  ]);

  const since = world.emulator.requests.length;
  expect((await world.run(["export"], { USAGE_EXPORT_CREATOR_KEY: world.newSecret() })).status).toBe(0);
  const readers = world.emulator.requests.slice(since).map(({ keyId }) => keyId);
  expect(new Set(readers)).toEqual(new Set([made[1]?.apiKeyId]));
  expect(readers).not.toContain(reader);
});

apartTest("a creating key that is not there is a mistake of the configuration", async ({ world }) => {
  await world.configure(CREATOR);
  const { status, stderr } = await world.run(["rotate"], { USAGE_EXPORT_CREATOR_KEY: undefined });
  expect(status).toBe(2);
  expect(stderr).toContain("rotations[0].createWith: environment variable USAGE_EXPORT_CREATOR_KEY is not set");
  expect(world.emulator.requests).toEqual([]);
});

apartTest("check says of the creating key what it lacks", async ({ world }) => {
  await world.configure({ ...CREATOR, createWith: { env: "USAGE_EXPORT_KEY" } });
  const { status, stdout } = await world.run(["check"]);
  expect(status).toBe(1);
  expect(stdout).toContain("FAIL rotation exporter: the key of createWith may not create keys: it needs keys:write");
});
