// A rotation that is not due checks whether the key in use works and is still where it was delivered.

import { readFile, rm, writeFile } from "node:fs/promises";
import { expect } from "vitest";
import { createdKeys, events, ledgerRows, type RotationContext, rotationTest, sinkSecret } from "./rotation-context.ts";

const test = await rotationTest();

async function deleteAtService({ emulator, firstKey }: RotationContext, apiKeyId = ""): Promise<void> {
  const url = `${emulator.url}/v1/projects/project-1/keys/${apiKeyId}`;
  const { status } = await fetch(url, { method: "DELETE", headers: { authorization: `Token ${firstKey}` } });
  expect(status).toBe(200);
}

test("a key in use that the service refuses is replaced at once, and delivered", async ({ context }) => {
  await context.prepare();
  await deleteAtService(context, createdKeys(context)[0]);
  const { status, stdout } = await context.run(["rotate"]);
  expect(stdout).toContain("create: the service refuses the key in use");
  expect(status).toBe(0);
  expect(await ledgerRows(context.db)).toMatchObject([{ state: "draining" }, { state: "active" }]);
  expect(context.emulator.secretWorks(sinkSecret(context) ?? "")).toBe(true);
  expect((await context.run(["rotate"])).stdout).toBe("exporter\n  the active key is 0 days old; due in 30 days\n");
});

test("if the previous key is refused as well, the next key is created with the first one", async ({ context }) => {
  await context.prepare();
  await context.prepare({ now: true });
  for (const id of createdKeys(context)) await deleteAtService(context, id);
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(createdKeys(context)).toHaveLength(1);
  expect(context.emulator.secretWorks(sinkSecret(context) ?? "")).toBe(true);
});

test("a key is verified by a call that its scopes allow: that the service refuses other calls is no reason to make another", async ({
  context,
}) => {
  await context.prepare();
  context.emulator.fault = ({ path }) => {
    if (path === "/v1/auth/token") return { kind: "answer", status: 404 };
    return path === "/v1/projects" ? { kind: "answer", status: 401 } : undefined;
  };
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(context.proxy.creates).toHaveLength(1);
});

test("if the service does not say whether the key works, no other key is made", async ({ context }) => {
  await context.prepare();
  context.emulator.fault = () => ({ kind: "answer", status: 403 });
  const { status, stderr } = await context.run(["rotate"]);
  expect(status).toBe(0);
  expect(stderr).toContain("not known whether the key in use works");
  expect(context.proxy.creates).toHaveLength(1);
});

test.for<readonly [name: string, harm: (file: string) => Promise<void>, words: string]>([
  ["is gone", (file) => rm(file), "is gone"],
  ["holds another key", (file) => writeFile(file, "another\n"), "holds something else than the key in use"],
])("a delivered file that %s is delivered again", async ([, harm, words], { context }) => {
  const jobs = { exports: [] };
  await context.configure({}, jobs);
  await context.prepare();
  const before = await readFile(context.sink, "utf8");
  await harm(context.sink);
  const { status, stdout } = await context.run(["rotate"]);
  expect(status).toBe(0);
  expect(stdout).toContain(`: the delivered file ${context.sink} ${words}`);
  expect(await readFile(context.sink, "utf8")).toBe(before);
  expect((await events(context.db)).at(-1)).toBe("delivered");
  expect(createdKeys(context)).toHaveLength(1);
  expect((await context.run(["rotate"])).stdout).not.toContain("deliver");
});
