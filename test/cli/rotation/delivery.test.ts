// How keys get to their sinks and stay there, how a refused key is replaced, and how a person goes back to the previous one.

import { chmod, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { makeKeys, ROTATION, type RotationContext, rotationTest } from "./rotation-context.ts";

const test = await rotationTest();

/** Writes a program that runs the shell commands of `script` and then stores its input in a file. `stored` returns what is in the file. */
async function storingCommand({ folder, allowedFiles }: RotationContext, script = "") {
  const program = path.join(folder, "store-key");
  const file = path.join(folder, "stored.key");
  allowedFiles.push(file);
  await writeFile(program, `#!/bin/sh\ncd '${folder}'\n${script}\ncat > stored.key\n`);
  await chmod(program, 0o700);
  return { program, stored: async () => (await readFile(file, "utf8")).trim() };
}

test("a key becomes active when every sink has it, even if a sink fails three times first", async ({ context }) => {
  await context.rotateOrThrow();
  await context.ageKeys(30);
  const script = 'echo x >> tries; [ "$(wc -l < tries)" -le 3 ] && { echo "vault is sealed"; exit 1; }';
  const { program, stored } = await storingCommand(context, script);
  await context.configure({ deliver: [{ command: [program] }, { file: context.sink }] });
  for (let i = 0; i < 3; i++) {
    const { status, stdout } = await context.run(["rotate"]);
    expect(status).toBe(1);
    expect(stdout).toContain("ended with 1");
    expect(await context.ledgerRows()).toMatchObject([{ state: "active" }, { state: "pending", step: "verified" }]);
    // The file has the new key from the first attempt on. Only the command lacks it.
    const delivered = await context.db.selectFrom("usage_export.key_delivery").select("sink").execute();
    expect(delivered).toMatchObject([{ sink: expect.stringMatching(/^file /) }]);
    expect(context.sinkKeyWorks()).toBe(true);
  }
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(context.proxy.creates).toHaveLength(2);
  expect(await stored()).toBe(context.sinkSecret());
  const events = (await context.events()).filter((event) => event === "delivered" || event === "active");
  expect(events).toEqual(["delivered", "active", "delivered", "delivered", "active"]);
});

test.for<readonly [name: string, harm: (file: string) => Promise<void>, words: string]>([
  ["is gone", (file) => rm(file), "is gone"],
  ["holds another key", (file) => writeFile(file, "another\n"), "holds something other than the key in use"],
])("a delivered file that %s is delivered again", async ([, harm, words], { context }) => {
  // The rotation checks the file even if no export uses the key.
  await context.configure({}, { exports: [] });
  await context.rotateOrThrow();
  const before = await readFile(context.sink, "utf8");
  await harm(context.sink);
  // The first success after failed attempts is recorded as `recovered`.
  await sql`update usage_export.rotation set failed_attempts = 2`.execute(context.db);
  expect(await context.run(["rotate"])).toMatchObject({
    status: 0,
    stdout: expect.stringContaining(`: the delivered file ${context.sink} ${words}`),
  });
  expect(await readFile(context.sink, "utf8")).toBe(before);
  expect((await context.events()).slice(-2)).toEqual(["delivered", "recovered"]);
  expect(context.createdKeys()).toHaveLength(1);
  expect((await context.run(["rotate"])).stdout).not.toContain("deliver");
});

test("a key in use that the service refuses is replaced at once", async ({ context }) => {
  await context.rotateOrThrow();
  await context.deleteKey(context.createdKeys()[0]);
  expect(await context.run(["rotate"])).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("create: the service refuses the key in use"),
  });
  expect(await context.states()).toEqual(["draining", "active"]);
  expect(context.sinkKeyWorks()).toBe(true);
  expect((await context.run(["rotate"])).stdout).toBe("exporter\n  the active key is 0 days old; due in 30 days\n");
});

test("if both keys are refused, the next one is created with the configured `first` key", async ({ context }) => {
  await context.rotateOrThrow();
  await context.rotateOrThrow("--now");
  for (const id of context.createdKeys()) await context.deleteKey(id);
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(context.createdKeys()).toHaveLength(1);
  expect(context.sinkKeyWorks()).toBe(true);
});

test("a key is verified by a call that its scopes allow", async ({ context }) => {
  // The service neither describes the key nor lists projects for it. The key's scopes allow reading usage, so that is tried.
  context.emulator.fault = ({ path }) => {
    if (path === "/v1/auth/token") return { kind: "answer", status: 404 };
    return path === "/v1/projects" ? { kind: "answer", status: 401 } : undefined;
  };
  await context.rotateOrThrow();
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(context.proxy.creates).toHaveLength(1);
});

test("if the service does not say whether the key works, no other key is made", async ({ context }) => {
  await context.rotateOrThrow();
  context.emulator.fault = () => ({ kind: "answer", status: 403 });
  expect(await context.run(["rotate"])).toMatchObject({
    status: 0,
    stderr: expect.stringContaining("could not find out whether the key in use works"),
  });
  expect(context.proxy.creates).toHaveLength(1);
});

test("--rollback verifies the previous key, delivers it and makes it active", async ({ context }) => {
  const [first] = await makeKeys(context, 2);
  const { status, stdout } = await context.run(["rotate", "--rollback"]);
  expect(status).toBe(0);
  expect(stdout).toMatch(/rollback .*\n.*deliver .*\n.*promote .*\n.*due in 30 days/);
  expect(context.sinkSecret()).toBe(first);
  expect(await context.states()).toEqual(["active", "draining"]);
  expect((await context.events()).slice(-3)).toEqual(["rollback", "delivered", "active"]);
});

test("a rollback to a key that does not work any more fails", async ({ context }) => {
  const [, second] = await makeKeys(context, 2);
  await context.deleteKey(context.createdKeys()[0]);
  expect(await context.run(["rotate", "--rollback"])).toMatchObject({
    status: 1,
    stdout: expect.stringContaining("does not accept the key"),
  });
  expect(context.sinkSecret()).toBe(second);
  expect(await context.states()).toEqual(["draining", "active"]);
});

test("--rollback is refused for several rotations at once and together with --now", async ({ context }) => {
  await context.configure({}, { rotations: ["exporter", "other"].map((name) => ({ ...ROTATION, name })) });
  const several = await context.run(["rotate", "--rollback"]);
  expect(several).toMatchObject({ status: 2, stderr: expect.stringContaining("--rollback needs --job") });
  const both = await context.run(["rotate", "--rollback", "--now"]);
  expect(both).toMatchObject({ status: 2, stderr: expect.stringContaining("exclude each other") });
});
