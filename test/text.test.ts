import { expect, test } from "vitest";
import { storableText } from "../src/text.ts";

test.each([
  ["a NUL is left out", "a\0b", "ab"],
  ["half a character is replaced", "a\ud83db", "a\ufffdb"],
  ["a thousand characters are kept", "x".repeat(1_000), "x".repeat(1_000)],
  ["further characters are cut off", "x".repeat(1_001), "x".repeat(1_000)],
  ["a character is not cut in two", `${"x".repeat(999)}😀`, "x".repeat(999)],
])("in a stored text %s", (_, text, stored) => {
  expect(storableText(text)).toBe(stored);
});
