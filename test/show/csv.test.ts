import { describe, expect, test } from "vitest";
import { csvHeader, csvLine, withoutFormula } from "../../src/show/csv.ts";
import { readCsv } from "./read-csv.ts";

const COLUMNS = [
  { name: "project", isText: true },
  { name: 'said "so"', isText: true },
  { name: "hours", isText: false },
];

/** As the only cell of a row. */
function dumpedText(text: string): string | undefined {
  return readCsv(csvLine([{ name: "project", isText: true }], [text]))[0]?.[0]?.text;
}

test("the header begins with the byte order mark that Excel needs, and ends with CR LF (RFC 4180)", () => {
  expect(csvHeader(COLUMNS)).toBe('\uFEFF"project","said ""so""","hours"\r\n');
});

test.each([
  [[null, "", null], ',"",\r\n'],
  [['say "hello", twice', "two\r\nlines", "-1.50"], '"say ""hello"", twice","two\r\nlines",-1.50\r\n'],
  [
    ["x", "NULL", "123456789012345678901234567890.000000000000000000000000000001"],
    '"x","NULL",123456789012345678901234567890.000000000000000000000000000001\r\n',
  ],
])("null and an empty text differ, quotes are doubled, a number is as it is: %j", (row, line) => {
  expect(csvLine(COLUMNS, row)).toBe(line);
});

describe("a text that a spreadsheet could take for a formula gets an apostrophe in front", () => {
  test.each([
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\ttext",
    "\rtext",
    "\ntext",
    "  =1",
    "\u00A0=1",
    "\u200B=1",
    "\u202E=1",
    "\uFEFF=1",
    '"=1"',
    "＝1",
    "＋1",
    "－1",
    "＠A1",
    "-",
    '=HYPERLINK("http://evil.example","x")',
    "=cmd|' /C calc'!A0",
  ])("%j", (text) => {
    expect(dumpedText(text)).toMatch(/^'/);
  });
});

test.each([
  ["a;=1", "a;'=1"],
  ['a;"=1"', `a;"'=1"`],
  ["a\n=1", "a\n'=1"],
  ["a\t@1", "a\t'@1"],
])(
  "a formula after a character that some spreadsheets take for the end of a cell gets an apostrophe too: %j",
  (text, safe) => {
    expect(dumpedText(text)).toBe(safe);
  },
);

test.each([
  "production",
  "a=b",
  "a - b",
  "you@example.com",
  "1-2",
  "'quoted'",
  '["=a"]',
  "2026-03-17",
  "a, -b",
  "a; b",
  "two\nlines",
])("any other text is not changed: %j", (text) => {
  expect(dumpedText(text)).toBe(text);
});

test("a text of 900,000 separators is handled within the time limit of a test", () => {
  const gaps = "\n; ".repeat(300_000);
  expect(withoutFormula(`a${gaps}`)).toBe(`a${gaps}`);
  expect(withoutFormula(`a${gaps}=1`)).toBe(`a${gaps}'=1`);
});
