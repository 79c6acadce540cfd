import { expect, test } from "vitest";
import { remembered } from "../../src/usage/remembered.ts";

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
  { what: "very long text", texts: ["x".repeat(201)] },
  { what: "text after half a million characters", texts: Array.from({ length: 2_501 }, (_, i) => `${i}`.padEnd(200)) },
  { what: "text after twenty thousand others", texts: Array.from({ length: 20_001 }, (_, i) => `${i}`) },
])("the result for a $what is computed again, so that a process does not grow", ({ texts }) => {
  const { lengthOf, computed } = openCounted();
  for (const text of texts) lengthOf(text);
  lengthOf(texts[0] ?? "");
  expect(computed()).toBe(texts.length + 1);
});
