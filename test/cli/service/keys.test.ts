// A project's key is read from a variable, from a file or from the output of a command. A refused key is not sent again before it is read
// anew. Once the key works, the days that failed are read, and `status` no longer says that the key is refused.

import { mkdir, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { coverage, waitForRuns } from "../evidence.ts";
import { ALL_GROUPINGS } from "../numbers.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";
import { PRODUCTION, PROJECT_ID } from "../small-config.ts";

const { test, db } = await databaseTest();

test("after a 401 the key file is read again", async ({ context }) => {
  const renewed = context.newSecret({ allowedIn: "exporter.key" });
  const file = path.join(context.folder, "exporter.key");
  await writeFile(file, context.newSecret({ allowedIn: "exporter.key" }));
  const sync = { name: "sync", dimensions: { method: "sync" } };
  const emulator = await context.setUp(
    {
      projects: [{ ...PRODUCTION, key: { file: "exporter.key" } }],
      exports: [{ groupings: ALL_GROUPINGS, checkFeatures: "off", filters: [{ name: "all" }, sync] }],
    },
    { consoleKeys: [{ secret: renewed, projectId: PROJECT_ID, scopes: ["member"] }] },
  );
  let replaced: Promise<void> | undefined;
  const replace = async () => {
    // A file that is being written is empty for a moment, so a finished one is renamed into its place.
    await writeFile(`${file}.new`, renewed);
    await rename(`${file}.new`, file);
  };
  emulator.fault = ({ keyId }) => {
    // The emulator knows only the renewed key. The answer to another key waits until the renewed one is in the file.
    if (keyId !== undefined) return undefined;
    replaced ??= replace();
    return { kind: "hold", until: replaced };
  };
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  // Four calls may be in flight with the old key.
  expect(emulator.requests.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(4);
});

const REFUSED = /the service refuses the API key of production \(401\)/;

/** Job a reads the total of two days; job b reads it, too, and two other series. Then both run with a wrong key, so that all six slices fail. */
async function failAll(context: ProgramContext): Promise<void> {
  await context.setUp({ exports: [{ name: "a" }, { name: "b", groupings: ["none", "model", "tags"] }] });
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await context.run(["export"], { USAGE_EXPORT_KEY: context.newSecret() })).toMatchObject({ status: 1 });
  expect(await coverage(db)).toEqual({ failed: 6 });
  const { stdout } = await context.run(["status"]);
  expect(stdout).toMatch(REFUSED);
  expect(stdout).toContain("usage-export export --project production reads them at once");
}

test("once an export succeeds with the project's key, status no longer calls the key refused", async ({ context }) => {
  await failAll(context);
  const wrong = { USAGE_EXPORT_KEY: context.newSecret() };
  expect(await context.run(["export", "--job", "a"], wrong)).toMatchObject({ status: 1 });
  expect((await context.run(["status"])).stdout).not.toContain("works since");

  expect(await context.run(["export", "--job", "a"])).toMatchObject({ status: 0 });
  expect(await coverage(db)).toEqual({ complete: 2, failed: 4 });
  const { stdout } = await context.run(["status"]);
  expect(stdout).not.toMatch(REFUSED);
  expect(stdout).toContain("the key was refused, and works since: the day is read again");
});

test("a worker that starts tries at once what a refused key could not read", async ({ context }) => {
  await failAll(context);
  context.work();
  await expect.poll(() => coverage(db)).toEqual({ complete: 6 });
  expect((await context.run(["status"])).stdout).not.toMatch(REFUSED);
});

test("a worker sends a refused key once a run, however many projects have it", async ({ context }) => {
  const names = Array.from({ length: 6 }, (_, i) => `p${i}`);
  const emulator = await context.setUp({
    // With more calls at once, several would be sent before the first one is refused.
    service: { maxConcurrent: 1 },
    projects: names.map((name) => ({ ...PRODUCTION, id: name, name })),
    exports: [{ projects: names }],
  });
  context.work({ USAGE_EXPORT_KEY: context.newSecret() });
  expect(await waitForRuns(db, 1)).toMatchObject([{ status: "failed", failed: 12 }]);
  expect(emulator.requests).toHaveLength(1);
});

const KEY_FILE = `keys/${PROJECT_ID}`;

/** Configures `key`, or else the command of a vault: a script that prints the key file. */
async function setUpVault(context: ProgramContext, key?: object) {
  await mkdir(path.join(context.folder, "keys"), { mode: 0o700 });
  const vault = path.join(context.folder, "vault");
  await writeFile(vault, '#!/bin/sh\ncat "$1" && echo "read $1 for $VAULT_USER" >&2\n', { mode: 0o700 });
  const command = [vault, path.join(context.folder, "keys", "{id}")];
  const secret = context.newSecret({ allowedIn: KEY_FILE });
  const emulator = await context.setUp(
    { projects: [{ ...PRODUCTION, key: key ?? { command, variables: ["VAULT_USER"] } }] },
    { consoleKeys: [{ secret, projectId: PROJECT_ID, scopes: ["member"] }] },
  );
  return { emulator, storeKey: () => writeFile(path.join(context.folder, KEY_FILE), `${secret}\n`) };
}

test("an export calls with the key that the command prints", async ({ context }) => {
  const { emulator, storeKey } = await setUpVault(context);
  await storeKey();
  const env = { USAGE_EXPORT_KEY: undefined, VAULT_USER: "ann" };
  expect((await context.run(["check"], env)).stdout).toMatch(/project production\n {2}ok {3}key/);
  // With the most detailed log, which must not contain the key either.
  expect(await context.run(["export"], { ...env, LOG_LEVEL: "trace" })).toMatchObject({ status: 0 });
  expect(emulator.requests.some(({ path, keyId }) => path.includes("/usage/breakdown") && keyId)).toBe(true);
});

test("while the key command fails, days fail with a reason that leaves out its output", async ({ context }) => {
  const { emulator } = await setUpVault(context);
  const { status, stdout, stderr } = await context.run(["export"]);
  expect(status).toBe(1);
  expect(stderr + stdout).toContain("the key command");
  expect(stderr + stdout).not.toContain("No such file");
  expect(emulator.requests).toEqual([]);
  expect((await context.run(["status"])).stdout).toMatch(/readings fail, .*the key command ".*vault" ended with 1/);
});

test("a command that does not exist is named before anything is called", async ({ context }) => {
  await setUpVault(context, { command: ["no-such-vault", "{id}"] });
  const says = 'projects[0].key.command[0]: the program "no-such-vault" does not exist';
  expect(await context.run(["export"])).toMatchObject({ status: 2, stderr: expect.stringContaining(says) });
});

test("a project's key is read from the file with its id", async ({ context }) => {
  const { storeKey } = await setUpVault(context, { file: "keys/{id}" });
  await storeKey();
  expect(await context.run(["export"], { USAGE_EXPORT_KEY: undefined })).toMatchObject({ status: 0 });
});
