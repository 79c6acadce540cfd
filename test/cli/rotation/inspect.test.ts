// A rotation that is not due looks whether the key in use works, and is where it was delivered.

import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { createdKeys, events, ledgerRows, type RotationWorld, rotationTest, sinkSecret } from "./rotation-world.ts";

const test = rotationTest();

async function deleteAtService({ emulator, firstKey }: RotationWorld, apiKeyId = ""): Promise<void> {
  const url = `${emulator.url}/v1/projects/project-1/keys/${apiKeyId}`;
  const { status } = await fetch(url, { method: "DELETE", headers: { authorization: `Token ${firstKey}` } });
  expect(status).toBe(200);
}

test("a key in use that the service refuses is replaced at once, and delivered", async ({ world }) => {
  await world.prepare();
  await deleteAtService(world, createdKeys(world)[0]);
  const { status, stdout } = await world.run(["rotate"]);
  expect(stdout).toContain("create: the service refuses the key in use");
  expect(status).toBe(0);
  expect(await ledgerRows(world.db)).toMatchObject([{ state: "draining" }, { state: "active" }]);
  expect(world.emulator.secretWorks(sinkSecret(world) ?? "")).toBe(true);
  expect((await world.run(["rotate"])).stdout).toBe("exporter\n  the active key is 0 days old; due in 30 days\n");
});

test("where the key before it is refused as well, the first one makes the next", async ({ world }) => {
  await world.prepare();
  await world.prepare({ now: true });
  for (const id of createdKeys(world)) await deleteAtService(world, id);
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(createdKeys(world)).toHaveLength(1);
  expect(world.emulator.secretWorks(sinkSecret(world) ?? "")).toBe(true);
});

test("a service that refuses every key is asked for a new one as often as after any failure, and not more", async ({
  world,
}) => {
  await world.prepare();
  const { creates } = world.proxy;
  const before = creates.length;
  world.emulator.fault = ({ path }) => (path === "/v1/auth/token" ? undefined : { kind: "answer", status: 401 });
  await deleteAtService(world, createdKeys(world)[0]).catch(() => undefined);
  world.emulator.fault = ({ method, keyId }) =>
    method === "POST" || keyId !== world.emulator.keys()[0]?.apiKeyId ? { kind: "answer", status: 401 } : undefined;
  for (let runs = 0; runs < 5; runs++) expect((await world.run(["rotate"])).status).toBe(1);
  expect(creates.length - before).toBe(5);
  const { status, stdout } = await world.run(["rotate"]);
  expect(status).toBe(1);
  expect(stdout).toContain("needs attention: 5 attempts failed");
  expect(creates.length - before).toBe(5);
});

test("a key is asked by what it is for: what the service refuses to its scopes is no reason to make another", async ({
  world,
}) => {
  await world.prepare();
  world.emulator.fault = ({ path }) => {
    if (path === "/v1/auth/token") return { kind: "answer", status: 404 };
    return path === "/v1/projects" ? { kind: "answer", status: 401 } : undefined;
  };
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(world.proxy.creates).toHaveLength(1);
});

test("a service that does not say whether the key works is no reason to make another", async ({ world }) => {
  await world.prepare();
  world.emulator.fault = () => ({ kind: "answer", status: 403 });
  const { status, stderr } = await world.run(["rotate"]);
  expect(status).toBe(0);
  expect(stderr).toContain("not known whether the key in use works");
  expect(world.proxy.creates).toHaveLength(1);
});

test.for<readonly [name: string, harm: (file: string) => Promise<void>, words: string]>([
  ["is gone", (file) => rm(file), "is gone"],
  ["holds another key", (file) => writeFile(file, "another\n"), "holds something else than the key in use"],
  ["is empty", (file) => writeFile(file, ""), "holds something else than the key in use"],
])("a delivered file that %s is noticed by status, and delivered again", async ([, harm, words], { world }) => {
  const jobs = { exports: [] };
  await world.configure({}, jobs);
  await world.prepare();
  const before = await readFile(world.sink, "utf8");
  await harm(world.sink);
  const ill = await world.run(["status"]);
  expect(ill).toMatchObject({
    status: 1,
    stdout: expect.stringContaining(`the delivered file ${world.sink} ${words}`),
  });
  expect((await world.run(["rotate", "--dry-run"])).stdout).toContain(`: the delivered file ${world.sink} ${words}`);

  const { status, stdout } = await world.run(["rotate"]);
  expect(status).toBe(0);
  expect(stdout).toContain(`: the delivered file ${world.sink} ${words}`);
  expect(await readFile(world.sink, "utf8")).toBe(before);
  expect((await events(world.db)).at(-1)).toBe("delivered");
  expect(createdKeys(world)).toHaveLength(1);
  expect((await world.run(["rotate"])).stdout).not.toContain("deliver");
  expect((await world.run(["status"])).stdout).not.toContain("delivered file");
});

test("without the master key status still sees that a delivered file is gone", async ({ world }) => {
  await world.prepare();
  await rm(world.sink);
  const { stdout } = await world.run(["status"], { USAGE_EXPORT_MASTER_KEY: undefined });
  expect(stdout).toContain(`the delivered file ${world.sink} is gone`);
});

test("a folder that is not there is missed only on the machine that delivered into it", async ({ world }) => {
  const folder = path.join(world.folder, "elsewhere");
  await mkdir(folder);
  const file = path.join(folder, "exporter.key");
  await world.configure({ deliver: [{ file }] });
  await world.prepare();
  await rm(folder, { recursive: true });
  // The rotation to begin with was run by "the test", which is no machine.
  expect((await world.run(["status"])).stdout).not.toContain("delivered file");
  world.sinks.push(file);
  expect((await world.run(["rotate"])).status).toBe(0);
  await rm(folder, { recursive: true });
  expect((await world.run(["status"])).stdout).toContain(`the delivered file ${file} is gone`);
});
