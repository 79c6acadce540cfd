import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { neededForAccess, readSecret, secretProblems } from "../../src/config/secrets.ts";

const VARIABLE = { kind: "env", name: "MONITOR_SECRET" } as const;
const BEARER = { kind: "bearer", token: VARIABLE } as const;
const BASIC = { kind: "basic", username: "ops", password: VARIABLE } as const;
const AT = { host: "127.0.0.1", port: 0 };
const SIXTEEN = "open-sesame-open";

const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-access-"));
afterAll(() => rm(folder, { recursive: true }));

test.each([SIXTEEN, `${SIXTEEN}\n`])("the token %j is read from a variable and from a file", async (content) => {
  const file = path.join(folder, "token");
  await writeFile(file, content);
  for (const token of [VARIABLE, { kind: "file", path: file } as const]) {
    expect((await readSecret("token", token, { MONITOR_SECRET: content })).reveal()).toBe(SIXTEEN);
  }
});

test("a password may contain spaces, quotes and non-ASCII characters, which a token may not", async () => {
  const content = 'ä "pass: phrase" of words';
  expect((await readSecret("password", VARIABLE, { MONITOR_SECRET: content })).reveal()).toBe(content);
});

test.each([
  [BEARER, "", "is empty: expected the token"],
  [
    BEARER,
    "open-sesame-ope",
    "is too short to be safe: expected at least 16 characters, such as `openssl rand -hex 32`",
  ],
  [BEARER, `"${SIXTEEN}"`, "remove the quotes"],
  [BEARER, `Bearer ${SIXTEEN}`, 'begins with the word "Bearer": remove it'],
  [BEARER, `Basic ${SIXTEEN}`, 'begins with the word "Basic": remove it'],
  [BEARER, `${SIXTEEN} ${SIXTEEN}`, "expected the token alone"],
  [BEARER, `${SIXTEEN}ä`, "expected the token alone"],
  [BEARER, SIXTEEN.repeat(300), "holds 4800 characters: expected at most 4096"],
  [BASIC, "", "is empty: expected the password"],
  [BASIC, "open-sesame-ope", "is too short to be safe"],
  [BASIC, `${SIXTEEN}\n${SIXTEEN}`, "expected the password alone, on one line"],
])(
  "%o with the secret %j is refused, and the message has the path and not the secret",
  async (access, content, says) => {
    const [problem = ""] = await secretProblems(neededForAccess({ ...AT, access }), { MONITOR_SECRET: content });
    const place = access.kind === "bearer" ? "bearer" : "basic.password";
    expect(problem).toContain(`monitor.access.${place}: environment variable MONITOR_SECRET `);
    expect(problem).toContain(says);
    expect(problem).not.toContain("sesame");
  },
);

test("a secret that is missing is named with its path", async () => {
  const missing = path.join(folder, "none");
  const access = { ...BASIC, password: { kind: "file", path: missing } } as const;
  expect(await secretProblems(neededForAccess({ ...AT, access }), {})).toEqual([
    `monitor.access.basic.password: password file ${missing} does not exist: expected a file with the password alone`,
  ]);
  expect(await secretProblems(neededForAccess({ ...AT, access: BEARER }), {})).toEqual([
    "monitor.access.bearer: environment variable MONITOR_SECRET is not set: set it to the token",
  ]);
});

test("without monitor.access no secret is read", async () => {
  expect(await secretProblems(neededForAccess(AT), {})).toEqual([]);
});
