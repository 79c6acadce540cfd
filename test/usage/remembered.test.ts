import { expect, test } from "vitest";
import { remembered } from "../../src/usage/rows.ts";

function openCounted() {
  let computed = 0;
  const lengthOf = remembered((text) => {
    computed++;
    return { length: text.length };
  });
  return { lengthOf, computed: () => computed };
}

test("the result for a text is computed once", () => {
  const { lengthOf, computed } = openCounted();
  expect(lengthOf("abc")).toBe(lengthOf("abc"));
  expect(computed()).toBe(1);
});

test.each([
  ["very long text", ["x".repeat(101)]],
  ["text after ten thousand others", Array.from({ length: 10_001 }, (_, i) => `${i}`)],
])("the result for a %s is computed again, so that a process does not grow", (_, texts) => {
  const { lengthOf, computed } = openCounted();
  for (const text of texts) lengthOf(text);
  lengthOf(texts[0] ?? "");
  expect(computed()).toBe(texts.length + 1);
});
