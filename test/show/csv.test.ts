import { expect, test } from "vitest";
import { answerCsv, chargebackCsv, csvHeader, csvLine, withoutFormula } from "../../src/show/csv.ts";
import { makeAnswer } from "../facts/sample-facts.ts";
import { readCsv } from "./read-csv.ts";

const COLUMNS = [
  { name: "project", isText: true },
  { name: 'said "so"', isText: true },
  { name: "hours", isText: false },
];

/** Writes the text as the only cell of a row, and reads it back. */
function readBack(text: string): string | undefined {
  return readCsv(csvLine([{ name: "project", isText: true }], [text]))[0]?.[0]?.text;
}

test("the header has the byte order mark for Excel and the line end of RFC 4180", () => {
  expect(csvHeader(COLUMNS)).toBe('\uFEFF"project","said ""so""","hours"\r\n');
});

test.each([
  [[null, "", null], ',"",\r\n'],
  [['say "hello", twice', "two\r\nlines", "-1.50"], '"say ""hello"", twice","two\r\nlines",-1.50\r\n'],
  [
    ["x", "NULL", "123456789012345678901234567890.000000000000000000000000000001"],
    '"x","NULL",123456789012345678901234567890.000000000000000000000000000001\r\n',
  ],
])("a row is written so that a reader gets the same values: %j", (row, line) => {
  expect(csvLine(COLUMNS, row)).toBe(line);
});

test.each([
  ...[..."=+-@＝＋－＠\t\r\n"].map((beginning) => `${beginning}1`),
  ...["  ", "\t", "\r", "\u00A0", "\u200B", "\u202E", "\uFEFF", '"'].map((before) => `${before}=1`),
  ...["-", '=HYPERLINK("http://evil.example","x")', "=cmd|' /C calc'!A0"],
])("a text that a spreadsheet could take for a formula gets an apostrophe in front: %j", (text) => {
  expect(readBack(text)).toMatch(/^'/);
});

test.each([
  ["a;=1", "a;'=1"],
  ['a;"=1"', `a;"'=1"`],
  ["a\n=1", "a\n'=1"],
  ["a\t@1", "a\t'@1"],
])(
  "a formula after a character that some spreadsheets take for the end of a cell gets an apostrophe too: %j",
  (text, safe) => {
    expect(readBack(text)).toBe(safe);
  },
);

test.each([
  ...["production", "a=b", "a - b", "you@example.com", "1-2", "'quoted'", '["=a"]'],
  ...["2026-03-17", "a, -b", "a; b", "a; b=1", "two\nlines"],
])("any other text is not changed: %j", (text) => {
  expect(readBack(text)).toBe(text);
});

test("a text of 900,000 separators is handled within the time limit of a test", () => {
  const gaps = "\n; ".repeat(300_000);
  expect(withoutFormula(`a${gaps}`)).toBe(`a${gaps}`);
  expect(withoutFormula(`a${gaps}=1`)).toBe(`a${gaps}'=1`);
});

/** The rows without the byte order mark. A text keeps its quotes. */
const rowsOf = (csv: string) =>
  readCsv(csv.slice(1)).map((cells) => cells.map(({ text, quoted }) => (quoted ? `"${text}"` : text)).join());

const ANSWER = {
  ...makeAnswer({ period: { start: "2026-03-08", end: "2026-03-09" }, groups: [{ group: "nova-3" }, { group: null }] }),
  ...{ other: { groups: 2, amount: "3", before: null, change: "3" }, otherByDay: ["1", null], complete: false },
};
const [NOVA, NO_VALUE] = ANSWER.groups;

// The amounts are those of makeAnswer.
test("by group, the answer has a row for each group, for the others and for the total", () => {
  const costs = { ...ANSWER, question: { ...ANSWER.question, currency: "USD" } };
  expect(rowsOf(answerCsv(costs, "groups"))).toEqual([
    '"part","group","amount","amount_before","change","complete","currency"',
    '"group","nova-3",1100,1000,100,"false","USD"',
    '"group",,550,0,100,"false","USD"',
    '"other",,3,,3,"false","USD"',
    '"total",,1619.7242069444444,1480.25,139.4742069444444,"false","USD"',
  ]);
  expect(rowsOf(answerCsv({ ...costs, other: null, total: null }, "groups"))).toHaveLength(3);
});

test("by day, the answer has a row a day for each drawn group and for the others", () => {
  const notDrawn = { rank: 9, group: "small", label: null, amount: "1", before: null, change: null };
  const rows = rowsOf(answerCsv({ ...ANSWER, groups: [...ANSWER.groups, notDrawn] }, "days"));
  expect(rows.slice(1)).toEqual([
    `2026-03-08,"final","group","nova-3",${NOVA?.byDay?.[0]},"false",`,
    `2026-03-08,"final","group",,${NO_VALUE?.byDay?.[0]},"false",`,
    '2026-03-08,"final","other",,1,"false",',
    `2026-03-09,"final","group","nova-3",${NOVA?.byDay?.[1]},"false",`,
    `2026-03-09,"final","group",,${NO_VALUE?.byDay?.[1]},"false",`,
    '2026-03-09,"final","other",,,"false",',
  ]);
  expect(rowsOf(answerCsv({ ...ANSWER, otherByDay: null }, "days"))).toHaveLength(5);
});

test("a charge has its amount in the column of its kind, beside its share of the total", () => {
  const charge = {
    ...{ projectId: "p", project: "production", group: null, currency: null },
    ...{ amount: "1", total: "3", isComplete: true },
  };
  const csv = chargebackCsv(
    [
      { ...charge, metric: "hours" },
      { ...charge, metric: "estimated_cost", currency: "USD" },
      { ...charge, metric: "billed_cost", currency: "USD", group: "k", isComplete: false },
    ],
    { start: "2026-03-01", end: "2026-03-31" },
  );
  expect(rowsOf(csv).slice(1)).toEqual([
    '2026-03-01,2026-03-31,"p","production",,"hours",1,,,,0.333333,"true"',
    '2026-03-01,2026-03-31,"p","production",,"estimated_cost",,1,,"USD",0.333333,"true"',
    '2026-03-01,2026-03-31,"p","production","k","billed_cost",,,1,"USD",0.333333,"false"',
  ]);
});
