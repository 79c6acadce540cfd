// Projects whose keys come from files with the project's id in their path, or from commands.

import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect } from "vitest";
import { PROGRAM, PROJECT_ID, type RotationContext, rotationTest } from "../rotation/rotation-context.ts";

const test = await rotationTest();

/** The project's key comes from a vault, which is a script here. Returns the file that the script prints. */
async function configureVault({ configure, folder, proxy, sinks }: RotationContext, rest: object = {}) {
  mkdirSync(path.join(folder, "keys"), { mode: 0o700 });
  const key = path.join(folder, "keys", PROJECT_ID);
  const script = path.join(folder, "vault");
  writeFileSync(script, '#!/bin/sh\necho run >> "$0.runs"\ncat "$1" && echo "read $1 for $VAULT_USER" >&2\n');
  chmodSync(script, 0o700);
  sinks.push(key);
  await configure(
    {},
    {
      service: { baseUrl: proxy.urlOf(PROGRAM), dialect: "interface", requestsPerSecond: 100 },
      rotations: [],
      projects: [
        {
          id: PROJECT_ID,
          name: "production",
          key: { command: [script, path.join(folder, "keys", "{id}")], variables: ["VAULT_USER"] },
        },
      ],
      ...rest,
    },
  );
  return key;
}

test("an export calls with the key that the command prints, and check says that it works", async ({ context }) => {
  writeFileSync(await configureVault(context), `${context.firstKey}\n`);
  const check = await context.run(["check"], { USAGE_EXPORT_KEY: undefined, VAULT_USER: "ann" });
  expect(check.stdout).toMatch(/project production\n {2}ok {3}key/);
  expect((await context.run(["export"], { USAGE_EXPORT_KEY: undefined, LOG_LEVEL: "trace" })).status).toBe(0);
  expect(context.emulator.requests.some(({ path, keyId }) => path.includes("/usage/breakdown") && keyId)).toBe(true);
});

test("while the command fails the days fail, with a reason and without its output", async ({ context }) => {
  await configureVault(context);
  const run = await context.run(["export"]);
  expect(run.status).toBe(1);
  expect(run.stderr + run.stdout).toContain("the key command");
  expect(run.stderr + run.stdout).not.toContain("No such file");
  expect(context.emulator.requests).toEqual([]);
  const status = await context.run(["status"]);
  expect(status.stdout).toMatch(/readings fail since .*the key command ".*vault" ended with 1/);
});

test("a command that does not exist is named before anything is called", async ({ context }) => {
  const key = { command: ["no-such-vault", "{id}"] };
  await configureVault(context, { projects: [{ id: PROJECT_ID, name: "production", key }] });
  const run = await context.run(["export"]);
  expect(run.status).toBe(2);
  expect(run.stderr).toContain('projects[0].key.command[0]: the program "no-such-vault" does not exist');
});

test("a project's key is read from the file with its id", async ({ context }) => {
  const file = await configureVault(context, {
    projects: [{ id: PROJECT_ID, name: "production", key: { file: "keys/{id}" } }],
  });
  writeFileSync(file, context.firstKey);
  expect((await context.run(["export"], { USAGE_EXPORT_KEY: undefined })).status).toBe(0);
});
