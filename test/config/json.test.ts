// The text of the configuration file: an error names the line of a mistake, and never repeats a key that was written into the file.

import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJson } from "../../src/config/json.ts";
import { messageFor, SAMPLE, sampleWith } from "./sample-config.ts";

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

test("a repeated field is reported at any depth", () => {
  const text = '{\n "a": 1,\n "b": [{ "c": 1 },\n { "c": 1,\n "c": 2 }],\n "\\u0061": 3 }';
  const { value, duplicateIssues, offsetOf, lineOf } = parseJson(text, "x");

  expect(value).toEqual({ a: 3, b: [{ c: 1 }, { c: 2 }] });
  expect(duplicateIssues.map(({ path, message }) => [path, lineOf(offsetOf(path)), message])).toEqual([
    [["b", 1, "c"], 4, expect.stringContaining("again in line 5")],
    [["a"], 2, expect.stringContaining("again in line 6")],
  ]);
});

test("a missing path has the offset of the innermost value around it", () => {
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

test("whatever JSON.parse accepts, parseJson gives the same value", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), (text) => {
      expect(withNumbers(parseJson(text, "x").value)).toEqual(withNumbers(JSON.parse(text)));
    }),
    { numRuns: 200 },
  );
});

/** Replaces each text that is a number by the number, at any depth. */
function withNumbers(value: unknown): unknown {
  if (typeof value === "string" && value.trim() !== "" && !Number.isNaN(Number(value))) return Number(value);
  if (Array.isArray(value)) return value.map(withNumbers);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withNumbers(inner)]));
}

const HEX = "3f9a0c7be1d24568a0b1c2d3e4f5061728394a5b";
const WORD = "open-sesame";

test.each([
  ["projects[0].key", WORD],
  ["projects[0].key", { value: WORD }],
  ["projects[0].key", { [HEX]: true }],
  ["projects[0].key", { env: "A", secret: WORD }],
  ["projects[0].key", { env: HEX }],
  ["projects[0].key", { env: `Token ${WORD}` }],
  ["projects[0].key", { env: { value: WORD } }],
  ["projects[0].key", { file: HEX }],
  ["projects[2].key", { rotation: WORD, first: { env: "A" } }],
  ["projects[2].key", { rotation: "lab-key", first: WORD }],
  ["projects[2].key", { rotation: "lab-key", first: { file: HEX } }],
  ["rotations[0].createWith", WORD],
  ["rotations[0].createWith", { env: HEX }],
  ["rotations[0].createWith", { rotation: WORD, first: { env: "A" } }],
  ["projects[0].apiKey", WORD],
  ["service.headers", { authorization: `Token ${WORD}` }],
  ["service.authScheme", `Token ${WORD}`],
  ["service.baseUrl", `https://user:${WORD}@api.example.com`],
  ["service.baseUrl", `https://api.example.com?token=${WORD}`],
  ["projects[0].id", `${HEX}.`],
  ["exports[0].projects[0]", HEX],
  ["rotations[0].deliver[1].command", `curl -H ${HEX}`],
  ["monitor.access", { bearer: WORD }],
  ["monitor.access", { bearer: { env: HEX } }],
  ["monitor.access", { bearer: { file: `https://${WORD}` } }],
  ["monitor.access", { basic: `ops:${WORD}` }],
  ["monitor.access.basic.password", WORD],
  ["monitor.access.basic.username", `ops:${WORD}`],
  ["notify.webhook", `https://hooks.example.com/${WORD}`],
  ["notify.webhook.env", `https://hooks.example.com/${WORD}`],
  ["notify.deadMan.file", `https://hooks.example.com/${WORD}`],
])("at %s, %j is refused without being repeated", (place, value) => {
  const message = messageFor(sampleWith(place, value));
  expect(message).toContain(`- ${place}`);
  expect(message).not.toMatch(new RegExp(`${WORD}|${HEX.slice(0, 8)}`));
});

test.each(["projects[0].key", "projects[2].key.first", "rotations[0].createWith"])(
  "the message about a literal key at %s says what to write instead",
  (place) => {
    expect(messageFor(sampleWith(place, WORD))).toMatch(
      /never write the key itself into this file.*use \{ "env": "NAME" \}/,
    );
  },
);

test.each([
  `{ "key": "${WORD}" x }`,
  `{ "key": "${WORD} }`,
  `{ "key": '${WORD}' }`,
  `{ "key": ${WORD} }`,
  `{ "key": "${WORD}\\q" }`,
])("the broken text %s is not quoted", (text) => {
  const message = messageFor(text);
  expect(message).toMatch(/line 1, column \d+/);
  expect(message).not.toMatch(new RegExp(`${WORD}|${HEX.slice(0, 8)}`));
});

test("the message about a repeated field does not contain its value", () => {
  const twice = sampleWith("projects[0].key", { env: "A" }).replace('"env": "A"', `"env": "${WORD}", "env": "A"`);
  expect(messageFor(twice)).toContain("- projects[0].key.env (line");
  expect(messageFor(twice)).not.toContain(WORD);
});
