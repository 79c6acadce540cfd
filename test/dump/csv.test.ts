import { describe, expect, test } from "vitest";
import { csvOf, withoutFormula } from "../../src/dump/csv.ts";
import type { Row } from "../../src/dump/view.ts";
import { type Cell, readCsv } from "./read-csv.ts";
import { inBatches, ROWS, textOf, VIEW } from "./sample-view.ts";

async function dumped(rows: readonly Row[]): Promise<readonly (readonly Cell[])[]> {
  const text = await textOf(csvOf(VIEW, inBatches(rows)));
  return readCsv(text.slice(1));
}

async function dumpedText(text: string): Promise<string | undefined> {
  const [, record] = await dumped([[text, null, null, null, null, null]]);
  return record?.[0]?.text;
}

test("every value is read back in its column", async () => {
  const [names, ...records] = await dumped(ROWS);
  expect(names?.map(({ text }) => text)).toEqual(VIEW.columns.map(({ name }) => name));
  expect(records.map((record) => record.map(({ text, quoted }) => (text === "" && !quoted ? null : text)))).toEqual(
    ROWS,
  );
});

test("null and an empty text are written differently", async () => {
  const text = await textOf(
    csvOf(
      VIEW,
      inBatches([
        [null, null, null, null, null, null],
        ["", null, null, null, null, null],
      ]),
    ),
  );
  expect(text.split("\r\n").slice(1)).toEqual([",,,,,", '"",,,,,', ""]);
});

test("a dump begins with the byte order mark that Excel needs, and its lines end with CR LF (RFC 4180)", async () => {
  expect(await textOf(csvOf(VIEW, inBatches([])))).toBe(
    '\uFEFF"project","usage_date","hours","revision","extra_metrics","seen_at"\r\n',
  );
});

test("numbers, days and instants are not quoted, and a negative number is no formula", async () => {
  const [, record] = await dumped([["p", "2026-03-17", "-1.5", "-2", null, "2026-03-18T02:15:00.123456Z"]]);
  expect(record?.filter(({ quoted }) => !quoted).map(({ text }) => text)).toEqual([
    ...["2026-03-17", "-1.5", "-2", ""],
    "2026-03-18T02:15:00.123456Z",
  ]);
});

test("a number keeps all its digits and gets no exponent", async () => {
  const [, record] = await dumped([
    [null, null, "123456789012345678901234567890.000000000000000000000000000001", null, null, null],
  ]);
  expect(record?.[2]?.text).toBe("123456789012345678901234567890.000000000000000000000000000001");
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
  ])("%j", async (text) => {
    expect(await dumpedText(text)).toMatch(/^'/);
  });
});

test.each([
  ["a;=1", "a;'=1"],
  ['a;"=1"', `a;"'=1"`],
  ["a\n=1", "a\n'=1"],
  ["a\t@1", "a\t'@1"],
])(
  "a formula after a character that some spreadsheets take for the end of a cell gets an apostrophe too: %j",
  async (text, safe) => {
    expect(await dumpedText(text)).toBe(safe);
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
])("any other text is not changed: %j", async (text) => {
  expect(await dumpedText(text)).toBe(text);
});

test("a text of 900,000 separators is handled within the time limit of a test", () => {
  const gaps = "\n; ".repeat(300_000);
  expect(withoutFormula(`a${gaps}`)).toBe(`a${gaps}`);
  expect(withoutFormula(`a${gaps}=1`)).toBe(`a${gaps}'=1`);
});
