import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJson } from "../../src/config/json.ts";
import { messageFor, SAMPLE } from "./sample-config.ts";

test.each([
  ["", "jobs.config.json is empty"],
  ["// a note", "line 1, column 10: value expected, found the end of the file"],
  ["{", "line 1, column 2: close brace expected, found the end of the file"],
  ['{\n  "a": 1\n  "b": 2\n}', 'line 3, column 3: comma expected, found "\\""'],
  ["{ 'a': 1 }", `invalid symbol, found "'"; names and text are written in double quotes`],
  ['{ "a": yes }', 'line 1, column 8: invalid symbol, found "y"; names and text are written in double quotes'],
  ['{ "a": "C:\\secrets" }', "line 1, column 8: invalid escape character"],
  ['{ "a": 1 } {}', 'line 1, column 12: end of file expected, found "{"'],
  ["💥", 'line 1, column 1: invalid symbol, found "💥"'],
])("the text %j is refused with its line and column", (text, says) => {
  expect(messageFor(text)).toContain(says);
});

test("the place of an error is also in its details", () => {
  expect(() => parseJson('{\n "a": }', "x")).toThrow(expect.objectContaining({ details: { line: 2, column: 7 } }));
});

test.each(["5", '"text"', "null", "[]", "true"])("%s in place of the top-level object is refused", (text) => {
  expect(messageFor(text)).toContain("- the top level (line 1): expected an object { … }; got ");
});

test("comments, trailing commas and a byte order mark are allowed", () => {
  const text = `\uFEFF// note\n${JSON.stringify(SAMPLE).replace(/\}$/, ", /* note */ }")}\n// note`;
  expect(messageFor(text)).toBe("");
});

test("a repeated field is found at any depth, with the lines of both, and the last counts", () => {
  const text = '{\n "a": 1,\n "b": [{ "c": 1 },\n { "c": 1,\n "c": 2 }],\n "\\u0061": 3 }';
  const { value, duplicates, offsetOf, lineOf } = parseJson(text, "x");

  expect(value).toEqual({ a: 3, b: [{ c: 1 }, { c: 2 }] });
  expect(duplicates.map(({ path, message }) => [path, lineOf(offsetOf(path)), message])).toEqual([
    [["b", 1, "c"], 4, expect.stringContaining("again in line 5")],
    [["a"], 2, expect.stringContaining("again in line 6")],
  ]);
});

test("a missing path has the place of what is around it", () => {
  const text = '{\n  "a": [\n    1,\n    { "b": 2 }\n  ]\n}';
  const { offsetOf } = parseJson(text, "x");

  expect(text.slice(offsetOf(["a"]))).toMatch(/^\[/);
  expect(text.slice(offsetOf(["a", 1]))).toMatch(/^\{ "b"/);
  expect(text.slice(offsetOf(["a", 1, "b"]))).toMatch(/^2 \}/);
  expect(offsetOf(["a", 1, "missing", 3])).toBe(offsetOf(["a", 1]));
  expect(offsetOf(["missing"])).toBe(0);
});

test("a number that a double can't hold comes back as its text, all others as numbers", () => {
  const text = "[0.1, 1.50, 25e-4, 9007199254740993, 0.12345678901234567890]";
  expect(parseJson(text, "x").value).toEqual([0.1, 1.5, 0.0025, "9007199254740993", "0.12345678901234567890"]);
});

test("whatever JSON.parse accepts has the same value here", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), (text) => {
      expect(withNumbers(parseJson(text, "x").value)).toEqual(withNumbers(JSON.parse(text)));
    }),
    { numRuns: 200 },
  );
});

/** Makes texts of numbers and numbers equal. */
function withNumbers(value: unknown): unknown {
  if (typeof value === "string" && value.trim() !== "" && !Number.isNaN(Number(value))) return Number(value);
  if (Array.isArray(value)) return value.map(withNumbers);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withNumbers(inner)]));
}
