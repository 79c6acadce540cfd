import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { findSecrets } from "./leak-search.ts";

const SECRET = "sk_CANARY_Zx81_hJ7tQ2vLw9KdPe4RbN0sYf";

test("a text without the secret has no leak", () => {
  const noise = randomBytes(100_000);
  const text = noise.toString("base64") + noise.toString("hex") + noise.toString("latin1");
  expect(findSecrets(text, [SECRET])).toEqual([]);
});

test("at least sixteen characters of a secret are a leak, wherever they start", () => {
  for (let start = 0; start + 16 <= SECRET.length; start++) {
    expect(findSecrets(`..${SECRET.slice(start, start + 16)}..`, [SECRET])).toHaveLength(1);
    expect(findSecrets(`..${SECRET.slice(start, start + 15)}..`, [SECRET])).toEqual([]);
  }
});

test("sixteen characters are found in base64 wherever they start, after any number of other characters", () => {
  for (let start = 0; start + 16 <= SECRET.length; start++) {
    for (const before of ["", "k", "k=", "key", "key="]) {
      const packed = Buffer.from(`${before}${SECRET.slice(start, start + 16)}&more`).toString("base64");
      expect(findSecrets(packed, [SECRET]), `${before} ${start}`).toMatchObject([{ encoding: "base64" }]);
    }
  }
});

test.each<[text: string, secret: string, leaks: number]>([
  ["password=hunter2222;", "hunter2222", 1],
  ["password=hunter222;", "hunter2222", 0],
  [SECRET, SECRET, 1],
])("in %j the secret %s is found %i times", (text, secret, leaks) => {
  expect(findSecrets(text, [secret])).toHaveLength(leaks);
});

test("a secret that could be an ordinary word is refused", () => {
  expect(() => findSecrets("", ["hunter2"])).toThrow("at least 8 characters, got 7");
});

test("base64url is found where it differs from base64 in every few characters", () => {
  const secret = "?~>a?~>b?~>c?~>d?~>e?~>f";
  const packed = Buffer.from(secret).toString("base64url");
  expect(packed).toMatch(/^(?:[^-_]{0,8}[-_])+[^-_]{0,8}$/);
  expect(findSecrets(packed, [secret])).toEqual([{ secret, encoding: "base64url" }]);
});
