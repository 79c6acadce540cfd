import fc from "fast-check";
import { expect, test } from "vitest";
import { ExactNumber } from "../../src/decimal.ts";
import { combinedGroup, groupOf } from "../../src/usage/normalise.ts";
import { anyText } from "../support/any-text.ts";

const keyOf = (value: unknown) => groupOf("tags", value, 0).key;
const shown = (value: unknown) => groupOf("model", value, 0).display;

test("the order and the repetition of values make no difference", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(anyText(), fc.constant(null))), (values) => {
      expect(keyOf([...values].reverse())).toBe(keyOf(values));
      expect(keyOf([...values, ...values])).toBe(keyOf(values));
    }),
  );
});

test("different sets of texts are different groups", () => {
  const aSet = fc.uniqueArray(anyText({ minLength: 1, maxLength: 3 }), { maxLength: 4 });
  fc.assert(
    fc.property(aSet, aSet, (one, other) => {
      const same = JSON.stringify([...one].sort()) === JSON.stringify([...other].sort());
      expect(keyOf(one) === keyOf(other)).toBe(same);
    }),
  );
});

test("all shapes of no value are one group, whose key is not empty", () => {
  const groups = [null, "", [], undefined, [""], [null]].map((value) => groupOf("tags", value, 0));
  expect(new Set(groups.map(({ key }) => key))).toEqual(new Set(["null"]));
  expect(new Set(groups.map(({ unmergedKey }) => unmergedKey)).size).toBe(groups.length);
});

test("a list of one text is the group of that text", () => {
  expect(keyOf("x")).toBe(keyOf(["x"]));
});

test("an empty text counts as null", () => {
  expect(keyOf(["", "a"])).toBe(keyOf(["a", null]));
});

test.each<[unknown, unknown]>([
  ["null", null],
  ["absent", undefined],
  ["[]", []],
  ["all", null],
  [[null], ["null"]],
  [[null, "a"], ["a"]],
  [["a,b"], ["a", "b"]],
  ['["a","b"]', ["a", "b"]],
  ["\u0000", ""],
  ["\u0000", "\\u0000"],
  // One letter to a person, but two different texts: composed and decomposed Unicode.
  ["\u00e9", "e\u0301"],
])("%j and %j are two groups", (one, other) => {
  expect(keyOf(one)).not.toBe(keyOf(other));
});

test.each<[string, unknown, string | null]>([
  ["a text as it is", "nova-3", "nova-3"],
  ["an array of one as its text", ["nova-3"], "nova-3"],
  ["several as a sorted array", ["nova-3", "aura-2"], '["aura-2","nova-3"]'],
  ["null as no value", null, null],
  ["an absent value as no value", undefined, null],
  ["an empty array as no value", [], null],
  ["an array of nothing but null as no value", [null], null],
  ["null among others", ["nova-3", null], '["nova-3",null]'],
  ["an empty text as no value", "", null],
  ["the text null as a text", "null", "null"],
  ["NUL as JSON writes it", "a\u0000b", "a\\u0000b"],
])("a group is displayed as text: %s", (_, value, display) => {
  expect(shown(value)).toBe(display);
});

test.each<[unknown, string]>([
  [3, "got the number 3"],
  [new ExactNumber("9007199254740993"), "got the number 9007199254740993"],
  [{ name: "x" }, "got an object"],
  [["a", 3], "got the number 3"],
  [[["a"]], "got an array"],
])("%j is not the value of a dimension", (value, reason) => {
  expect(() => groupOf("tags", value, 7)).toThrow(
    `results[7].tags: expected a text, an array of texts or null, ${reason}`,
  );
});

const DIMENSIONS = ["line_item", "tags"] as const;

function combined(lineItem: unknown, tags: unknown) {
  return combinedGroup(DIMENSIONS, [groupOf("line_item", lineItem, 0), groupOf("tags", tags, 0)]);
}

test("groups by several dimensions are the same only if they are the same by each dimension", () => {
  const value = fc.oneof(
    fc.constantFrom<unknown>(null, undefined, "", [], "absent", "null", '["a"]'),
    fc.array(fc.constantFrom("a", "b", "a,b", "\0"), { maxLength: 3 }),
  );
  fc.assert(
    fc.property(value, value, value, value, (a, b, c, d) => {
      const isSame = groupOf("line_item", a, 0).key === groupOf("line_item", c, 0).key && keyOf(b) === keyOf(d);
      expect(combined(a, b).key === combined(c, d).key).toBe(isSame);
    }),
    { numRuns: 1000 },
  );
});

test("a group by several dimensions is shown as a JSON object in which each has its value", () => {
  fc.assert(
    fc.property(anyText(), fc.array(anyText()), (lineItem, tags) => {
      const { display } = combined(lineItem, tags);
      const withoutNul = (text: string) => text.replaceAll("\0", "\\u0000");
      const named = [...new Set(tags)].filter(Boolean).sort().map(withoutNul);
      const expected = {
        line_item: withoutNul(lineItem) || null,
        tags: named.length === 0 ? null : tags.includes("") ? [...named, null] : named,
      };
      expect(JSON.parse(display ?? "")).toEqual(expected);
      expect(display?.replaceAll("\\\\u0000", "")).not.toContain("\\u0000");
    }),
  );
  expect(combined(undefined, null).display).toBe('{"line_item":null,"tags":null}');
});
