import { expect, test } from "vitest";
import { jsonLinesOf } from "../../src/dump/encode.ts";
import { inBatches, ROWS, textOf, VIEW } from "./sample-view.ts";

/** The fields of a line. A number is the text "number " and its digits as written. */
function readLine(line: string): Readonly<Record<string, unknown>> {
  return JSON.parse(line, keepDigits);
}

function keepDigits(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === "number" ? `number ${context?.source}` : value;
}

const text = await textOf(jsonLinesOf(VIEW, inBatches(ROWS)));
const lines = text.split("\n");

test("each row is a line, and the last line also ends with a line break", () => {
  expect(lines).toHaveLength(ROWS.length + 1);
  expect(lines.at(-1)).toBe("");
});

test("texts, days and instants are read back unchanged", () => {
  const read = lines.slice(0, -1).map(readLine);
  expect(read.map(({ project, usage_date, seen_at }) => [project, usage_date, seen_at])).toEqual(
    ROWS.map((row) => [row[0], row[1], row[5]]),
  );
});

test("numbers are numbers, with every digit", () => {
  const read = lines.slice(0, -1).map(readLine);
  expect(read.map(({ hours, revision }) => [hours, revision])).toEqual(
    ROWS.map((row) => [row[2], row[3]].map((digits) => (digits === null ? null : `number ${digits}`))),
  );
});

test("a JSON value is part of the line, with every digit", () => {
  expect(lines[3]).toContain('"extra_metrics":{"big": 123456789012345678901234567890}');
  expect(readLine(lines[2] ?? "")).toMatchObject({ extra_metrics: ["a"] });
});

test("a view without rows is an empty text", async () => {
  expect(await textOf(jsonLinesOf(VIEW, inBatches([])))).toBe("");
});
