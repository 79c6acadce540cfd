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
