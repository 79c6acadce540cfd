// Secrets are read from where the configuration says, and no message has any part of one.

import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { openApp } from "../../src/app.ts";
import { neededKeys, readSecret, requireReadable, secretOf } from "../../src/config/secrets.ts";
import { withFileLimit } from "../../src/files.ts";
import { readMonitorSecrets } from "../../src/worker/monitor-secrets.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { parseText, SAMPLE } from "./sample-config.ts";

const VARIABLE = { env: "SECRET" } as const;
const WORD = "open-sesame-open";
const ADDRESS = `https://hooks.example.com/services/${WORD}`;

const folder = temporaryFolder(afterAll);

test.each([
  ["key", WORD, "\n"],
  ["key", WORD, "\r\n"],
  ["key", "x".repeat(4096), "\n"],
  ["token", WORD, "\n"],
  ["password", 'ä "pass: phrase" of words', ""],
  ["address", ADDRESS, "\n"],
  ["address", "HTTPS://hooks.example.com:8443/a?b=c", ""],
  ["address", "http://[::1]:8080/x", ""],
] as const)("the %s %j is read from a variable and from a file, without %j at its end", async (kind, secret, end) => {
  const file = path.join(folder, "good");
  await writeFile(file, `${secret}${end}`);
  expect((await readSecret(kind, VARIABLE, { SECRET: `${secret}${end}` })).reveal()).toBe(secret);
  expect((await readSecret(kind, { file }, {})).reveal()).toBe(secret);
});

test.each([
  ["key", "", "is empty: expected the API key"],
  ["key", " \n", "is empty"],
  ["key", `"${WORD}"`, "does not hold the API key alone: expected it on one line, without spaces, quotes or a word"],
  ["key", `${WORD}'`, "alone"],
  ["key", `bearer ${WORD}`, "alone"],
  ["key", `${WORD}\n\n`, "alone"],
  ["key", `${WORD}\u0000`, "alone"],
  ["key", `\u200b${WORD}`, "alone"],
  ["key", "x".repeat(4097), "holds 4097 characters"],
  ["token", "open-sesame-ope", "is too short to be safe: expected at least 16 characters, such as `openssl rand -hex"],
  ["token", `${WORD} ${WORD}`, "does not hold the token alone"],
  ["password", "", "is empty: expected the password"],
  ["password", "open-sesame-ope", "is too short to be safe"],
  ["password", `${WORD}\n${WORD}`, "does not hold the password alone: expected it on one line"],
  ["address", WORD, "expected an https address alone"],
  ["address", `${ADDRESS}\n${ADDRESS}`, "expected an https address alone"],
  ["address", `ftp://hooks.example.com/${WORD}`, "expected an https address alone"],
  ["address", "https://[open-sesame", "expected an https address alone"],
  ["address", `http://127.0.0.1.example.com/${WORD}`, "expected https"],
  ["address", `${ADDRESS}/${"x".repeat(4096)}`, "characters: expected at most 4096"],
] as const)("the %s %j is refused without being quoted", (kind, content, says) => {
  const read = () => secretOf(kind, content, "environment variable SECRET");
  expect(read).toThrow(says);
  expect(read).toThrow(/^environment variable SECRET /);
  expect(read).not.toThrow(/sesame|hooks/);
});

test("the error names every secret that can't be read, with its place", async () => {
  const config = parseText(JSON.stringify(SAMPLE), folder);
  const problemsOf = async (needed: Parameters<typeof requireReadable>[0]) => {
    const error = await requireReadable(needed, { LAB_KEY: "" }).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "config" });
    return error.message.split("\n");
  };
  const consoleHint =
    "The first key of a project can't be created through the API: create it in the service's web console.";
  expect(await problemsOf(neededKeys(config, new Set()))).toEqual([
    "projects[0].key: environment variable PRODUCTION_KEY is not set: set it to the API key",
    `projects[1].key: key file ${folder}/secrets/staging.key does not exist: expected a file with the API key alone`,
    "projects[2].key.first: environment variable LAB_KEY is empty: expected the API key",
    `rotations[2].createWith: key file ${folder}/creators/project_b does not exist: expected a file with the API key alone`,
    consoleHint,
  ]);
  // The first key of lab is not needed once its rotation has made one.
  expect(await problemsOf(neededKeys(config, new Set(["lab-key"])))).toHaveLength(4);
  await expect(readSecret("key", { file: folder }, {})).rejects.toThrow(`key file ${folder} is a folder`);
});

test("a secret of the monitor that can't be read is named with its place", async () => {
  const app = await openApp({}, "jobs.config.json", new AbortController().signal);
  const config = parseText(JSON.stringify(SAMPLE), folder);
  await expect(readMonitorSecrets(app, { ...config, notify: {} })).rejects.toThrow(
    `monitor.access.basic.password: password file ${folder}/secrets/monitor.password does not exist: expected a file`,
  );
  await expect(readMonitorSecrets(app, config)).rejects.toThrow(
    "notify.webhook: environment variable NOTICES_URL is not set: set it to the address",
  );
});

test("a key file that fails with EIO makes the secret unavailable", async ({ skip }) => {
  skip(process.platform !== "linux", "needs /proc");
  const broken = { file: "/proc/self/mem" } as const;
  const message = "key file /proc/self/mem could not be read (EIO)";
  await expect(readSecret("key", broken, {})).rejects.toMatchObject({ code: "unavailable", message });
});

test("a secret in a folder that does not answer is unavailable, not missing", async () => {
  const file = path.join(folder, "share", "token");
  const { promise: answer, resolve } = Promise.withResolvers<void>();
  await expect(withFileLimit(file, 1, () => answer)).rejects.toThrow("does not answer");
  await expect(readSecret("token", { file }, {})).rejects.toMatchObject({ code: "unavailable" });
  resolve();
});

test("if the file of a secret is a pipe or the like, the error names the place of the secret", async () => {
  const file = path.join(folder, "pipe");
  spawnSync("mkfifo", [file]);
  const needed = { path: ["notify", "webhook"], kind: "address", reference: { file } } as const;
  const message = `notify.webhook: address file ${file} is not a regular file: expected a file with the address alone`;
  await expect(requireReadable([needed], {})).rejects.toMatchObject({ code: "config", message });
});
