import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { neededKeys, readSecret, secretProblems } from "../../src/config/secrets.ts";
import { SAMPLE } from "./sample-config.ts";

const KEY = "open-sesame-41";
const VARIABLE = { kind: "env", name: "USAGE_KEY" } as const;

const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-keys-"));
afterAll(() => rm(folder, { recursive: true }));

async function keyFile(name: string, content: string): Promise<{ kind: "file"; path: string }> {
  const file = path.join(folder, name);
  await writeFile(file, content);
  return { kind: "file", path: file };
}

test.each([KEY, `${KEY}\n`, `${KEY}\r\n`])(
  "the key is read from %j without the line break at its end",
  async (content) => {
    expect((await readSecret("key", VARIABLE, { USAGE_KEY: content })).reveal()).toBe(KEY);
    expect((await readSecret("key", await keyFile("good", content), {})).reveal()).toBe(KEY);
  },
);

test.each([
  ["", "is empty"],
  ["\n", "is empty"],
  ["  ", "is empty"],
  [`"${KEY}"`, "remove the quotes"],
  [`'${KEY}'\n`, "remove the quotes"],
  [`${KEY}"`, "remove the quotes"],
  [`Token ${KEY}`, 'begins with the word "Token": remove it'],
  [`bearer ${KEY}`, 'begins with the word "bearer": remove it'],
  [`${KEY} ${KEY}`, "holds a space or line break"],
  [` ${KEY}`, "holds a space or line break"],
  [`${KEY}\n\n`, "holds a space or line break"],
  [`${KEY}\n${KEY}\n`, "holds a space or line break"],
  [`${KEY}\u0000`, "holds a control character"],
  [`${KEY}é`, "outside ASCII"],
  [`\u200b${KEY}`, "outside ASCII"],
  ["x".repeat(4097), "holds 4097 characters"],
])("the content %j is refused and not repeated", async (content, says) => {
  const fromEnv = await message(readSecret("key", VARIABLE, { USAGE_KEY: content }));
  const fromFile = await message(readSecret("key", await keyFile("bad", content), {}));

  expect(fromEnv).toContain("environment variable USAGE_KEY ");
  expect(fromFile).toContain(`key file ${folder}`);
  for (const text of [fromEnv, fromFile]) {
    expect(text).toContain(says);
    expect(text).not.toContain(KEY);
  }
});

test("a variable that is not set is named, and the message says what to set it to", async () => {
  await expect(readSecret("key", VARIABLE, {})).rejects.toMatchObject({
    code: "config",
    message: "environment variable USAGE_KEY is not set: set it to the API key",
  });
});

test("the error for a key file that is missing, or is a folder, names it", async () => {
  const missing = { kind: "file", path: path.join(folder, "none") } as const;

  expect(await message(readSecret("key", missing, {}))).toContain(`key file ${missing.path} does not exist`);
  expect(await message(readSecret("key", { kind: "file", path: folder }, {}))).toContain(
    `key file ${folder} is a folder`,
  );
});

test("every key that can't be read is named with its path, before any call", async () => {
  const config = parseConfig(JSON.stringify(SAMPLE), { source: "jobs.config.json", baseDir: folder });

  expect(await secretProblems(neededKeys(config), { LAB_KEY: "" })).toEqual([
    "projects[0].key: environment variable PRODUCTION_KEY is not set: set it to the API key",
    expect.stringMatching(/^projects\[1\]\.key: key file .* does not exist/),
    "projects[2].key.first: environment variable LAB_KEY is empty: expected the API key",
  ]);
});

test("a project whose rotation has made a key does not need its first key", async () => {
  const config = parseConfig(JSON.stringify(SAMPLE), { source: "jobs.config.json", baseDir: folder });

  const problems = await secretProblems(neededKeys(config, new Set(["lab-key"])), { PRODUCTION_KEY: KEY });

  expect(problems).toEqual([expect.stringMatching(/^projects\[1\]\.key: /)]);
});

async function message(reading: Promise<unknown>): Promise<string> {
  return reading.then(
    () => "no error",
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}
