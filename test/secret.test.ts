import { format, inspect } from "node:util";
import { expect, test } from "vitest";
import { Scrubber, Secret } from "../src/secret.ts";
import { html } from "../src/show/html.ts";
import { findSecrets } from "./support/leak-search.ts";

const TEXT = 'open "sesame" 41/ä';
const SECRET = new Secret(TEXT);

test.each<[string, () => string]>([
  ["as a text", () => `${SECRET}`],
  ["as JSON", () => JSON.stringify({ key: SECRET })],
  ["by console.log", () => format("%s %o %O %j", SECRET, SECRET, SECRET, SECRET)],
  ["by inspect with hidden fields", () => inspect({ key: SECRET }, { showHidden: true, depth: 9 })],
  ["by its fields", () => JSON.stringify([Object.entries(SECRET), { ...SECRET }])],
  ["as the cause of an error", () => inspect(new Error("refused", { cause: SECRET }))],
])("printing a secret does not show it: %s", (_, printed) => {
  expect(printed()).not.toContain("sesame");
});

test.each([
  TEXT,
  JSON.stringify(TEXT),
  encodeURIComponent(TEXT),
  Buffer.from(TEXT).toString("base64"),
  Buffer.from(`:${TEXT}\n`).toString("base64"),
  Buffer.from(`u:${TEXT}\n`).toString("base64url"),
  Buffer.from(TEXT).toString("hex"),
  TEXT.toUpperCase(),
  [...TEXT].toReversed().join(""),
  `${html`${TEXT}`}`,
])("every form of a secret is hidden in a text: %s", (form) => {
  const scrubber = new Scrubber();
  scrubber.add(SECRET);
  const scrubbed = scrubber.scrub(`refused ${form}, twice: ${form}`);
  expect(scrubbed).toMatch(/^refused .*\[secret\].*, twice: .*\[secret\]/);
  expect(findSecrets(scrubbed, [TEXT])).toEqual([]);
});

test.each([
  ["after a letter whose lower case is longer (İ)", "AbCdEfGhIjKlMnOp", "İstanbul: refused AbCdEfGhIjKlMnOp"],
  ["with such a letter in the secret", "AbCdİEfGhIjKl", "refused AbCdİEfGhIjKl"],
])("a secret with capitals is hidden: %s", (_, secret, text) => {
  const scrubber = new Scrubber();
  scrubber.add(new Secret(secret));
  expect(scrubber.scrub(text)).toBe(text.replace(secret, "[secret]"));
});

test("secrets that overlap in a text are replaced together, and of two with the same beginning the longer one", () => {
  const scrubber = new Scrubber();
  for (const text of ["alpha-bravo-charlie", "charlie-delta-echo", "alpha-bravo"]) scrubber.add(new Secret(text));
  expect(scrubber.scrub("x alpha-bravo-charlie-delta-echo y alpha-bravo z")).toBe("x [secret] y [secret] z");
});
