import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJson } from "../../src/config/json.ts";
import { messageFor, SAMPLE } from "./sample-config.ts";

test.each([
  ["", "jobs.config.json is empty"],
  [" \n\t", "jobs.config.json is empty"],
  ["\uFEFF", "jobs.config.json is empty"],
  ["{", "line 1, column 2: expected a name in double quotes, found the end of the file"],
  ['{\n  "a": 1,\n}', 'line 3, column 1: expected a name in double quotes, found "}"; remove the comma before it'],
  ["[1, 2,]", 'line 1, column 7: expected a value, found "]"; remove the comma before it'],
  ['{\n  "a": 1\n  "b": 2\n}', 'line 3, column 3: expected "," or "}", found "\\""; a comma is missing before it'],
  ['{ "a" 1 }', 'line 1, column 7: expected ":", found "1"'],
  ['{ "a": }', 'line 1, column 8: expected a value, found "}"'],
  [
    "{ 'a': 1 }",
    'line 1, column 3: expected a name in double quotes, found "\'"; strings and names are written in double quotes',
  ],
  ["{ a: 1 }", 'found "a"; text is written in double quotes'],
  ['{ "a": yes }', 'line 1, column 8: expected a value, found "y"; text is written in double quotes'],
  ['{ "a": trueish }', 'line 1, column 8: expected a value, found "t"'],
  ['{ "a": 1 } // note', 'line 1, column 12: expected the end of the file, found "/"; JSON has no comments: remove it'],
  [
    '{ "a": "C:\\secrets" }',
    'column 8: expected a value, found "\\""; this string is not closed on its line, or holds a wrong escape',
  ],
  ['{ "a": "two\nlines" }', "this string is not closed on its line"],
  ['{ "a": 01 }', 'line 1, column 8: expected a value, found "0"'],
  ['{ "a": 1 } {}', 'line 1, column 12: expected the end of the file, found "{"'],
  ["[1}", 'line 1, column 3: expected "," or "]", found "}"'],
  ['{ "__proto__": {} }', 'expected a name other than "__proto__"'],
  ["💥", 'line 1, column 1: expected a value, found "💥"'],
])("the text %j is refused with its line and column", (text, says) => {
  expect(messageFor(text)).toContain(says);
});

test("a text with more than 50 levels is refused", () => {
  expect(messageFor("[".repeat(100_000))).toContain("line 1, column 52: expected at most 50 levels");
});

test.each(["5", '"text"', "null", "[]", "true"])("%s in place of the top-level object is refused", (text) => {
  expect(messageFor(text)).toContain("- the top level (line 1): expected an object { … }; got ");
});

test("a byte order mark is no error", () => {
  expect(messageFor(`\uFEFF${JSON.stringify(SAMPLE)}`)).toBe("");
});

test("a repeated field is found at any depth, with the line of its first occurrence", () => {
  const { value, duplicates } = parseJson(
    '{\n "a": 1,\n "b": [{ "c": 1 },\n { "c": 1,\n "c": 2 }],\n "\\u0061": 3 }',
    "x",
  );

  expect(value).toEqual({ a: 3, b: [{ c: 1 }, { c: 2 }] });
  expect(duplicates).toEqual([
    { path: ["b", 1, "c"], firstLine: 4 },
    { path: ["a"], firstLine: 2 },
  ]);
});

test("a repeated field is one error among the others", () => {
  const message = messageFor('{ "service": {},\n "service": {},\n "projects": [] }');

  expect(message).toContain("- service (line 2): is given twice, first in line 1, and only the second would count");
  expect(message).toContain("- projects (line 3): expected at least one entry");
});

test("a path has a line and column, and a missing path has those of its parent", () => {
  const { positionOf } = parseJson('{\n  "a": [\n    1,\n    { "b": 2 }\n  ]\n}', "x");

  expect(positionOf(["a"])).toEqual({ line: 2, column: 3 });
  expect(positionOf(["a", 1])).toEqual({ line: 4, column: 5 });
  expect(positionOf(["a", 1, "b"])).toEqual({ line: 4, column: 7 });
  expect(positionOf(["a", 1, "missing", 3])).toEqual({ line: 4, column: 5 });
  expect(positionOf(["missing"])).toEqual({ line: 1, column: 1 });
});

test("a number that a double can't hold comes back as its text, all others as numbers", () => {
  const text = "[0.1, 1.50, 25e-4, 9007199254740993, 0.12345678901234567890]";
  expect(parseJson(text, "x").value).toEqual([0.1, 1.5, 0.0025, "9007199254740993", "0.12345678901234567890"]);
});

test("parseJson accepts the same texts as JSON.parse, with the same values", () => {
  const spoiledJson = fc
    .tuple(
      fc.json({ maxDepth: 4 }),
      fc.nat(),
      fc.constantFrom("", ",", "]", "}", '"', "\\", "0", "-", " ", "e", "\u0001", "\u007f"),
    )
    .map(([text, at, inserted]) => text.slice(0, at % text.length) + inserted + text.slice((at % text.length) + 1));

  fc.assert(
    fc.property(fc.oneof(fc.json({ maxDepth: 4 }), spoiledJson), (text) => {
      fc.pre(!text.includes("__proto__"));
      expect(taken(() => parseJson(text, "x").value)).toEqual(taken(() => JSON.parse(text)));
    }),
    { numRuns: 500 },
  );
});

function taken(parse: () => unknown): unknown {
  try {
    return { value: withNumbers(parse()) };
  } catch {
    return "refused";
  }
}

/** Makes texts of numbers and numbers equal. */
function withNumbers(value: unknown): unknown {
  if (typeof value === "string" && value.trim() !== "" && !Number.isNaN(Number(value))) return Number(value);
  if (Array.isArray(value)) return value.map(withNumbers);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withNumbers(inner)]));
}
