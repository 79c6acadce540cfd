import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { neededAddresses, readSecret, secretProblems } from "../../src/config/secrets.ts";

const VARIABLE = { kind: "env", name: "NOTICES_URL" } as const;
const ADDRESS = "https://hooks.example.com/services/open-sesame";

const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-addresses-"));
afterAll(() => rm(folder, { recursive: true }));

test.each([
  ADDRESS,
  `${ADDRESS}\n`,
  "HTTPS://hooks.example.com:8443/a?b=c",
  "http://127.0.0.1:8080/x",
  "http://[::1]:8080/x",
])("the address %j is read from a variable and from a file", async (content) => {
  const file = path.join(folder, "good");
  await writeFile(file, content);

  expect((await readSecret("address", VARIABLE, { NOTICES_URL: content })).reveal()).toBe(content.trim());
  expect((await readSecret("address", { kind: "file", path: file }, {})).reveal()).toBe(content.trim());
});

test.each([
  ["", "is empty: expected the address"],
  ["open-sesame", "expected an https address alone"],
  [`"${ADDRESS}"`, "remove the quotes"],
  [`${ADDRESS}\n${ADDRESS}`, "expected an https address alone"],
  ["ftp://hooks.example.com/open-sesame", "expected an https address alone"],
  ["https://open sesame", "expected an https address alone"],
  ["https://[open-sesame", "expected an https address alone"],
  ["http://hooks.example.com/open-sesame", "expected https"],
  ["http://127.0.0.1.example.com/open-sesame", "expected https"],
  ["https://me:open-sesame@hooks.example.com", "a name or password before an @"],
  ["https://open-sesame@hooks.example.com", "a name or password before an @"],
  [`${ADDRESS}/${"x".repeat(4096)}`, "characters: expected at most 4096"],
])("the content %j is refused and not repeated", async (content, says) => {
  const [problem = ""] = await secretProblems(neededAddresses({ webhook: VARIABLE }), { NOTICES_URL: content });

  expect(problem).toContain("notify.webhook: environment variable NOTICES_URL ");
  expect(problem).toContain(says);
  expect(problem).not.toMatch(/sesame|hooks/);
});

test("each address that can't be read is named with its path", async () => {
  const missing = path.join(folder, "none");

  expect(
    await secretProblems(neededAddresses({ webhook: VARIABLE, deadMan: { kind: "file", path: missing } }), {}),
  ).toEqual([
    "notify.webhook: environment variable NOTICES_URL is not set: set it to the address",
    `notify.deadMan: address file ${missing} does not exist: expected a file with the address alone`,
  ]);
});

test("without notifications no secret is read", async () => {
  expect(await secretProblems(neededAddresses({}), {})).toEqual([]);
});
