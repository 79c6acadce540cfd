import { expect, test } from "vitest";
import { parquetOf } from "../../src/dump/parquet.ts";
import type { Row } from "../../src/dump/view.ts";
import { readParquet } from "./read-parquet.ts";
import { inBatches, ROWS, VIEW } from "./sample-view.ts";

const file = await readParquet(VIEW, parquetOf(VIEW, inBatches(ROWS)));

test("every value is read back from the file with every digit", () => {
  expect(file.rows).toEqual(ROWS);
});

test("days, instants, integers and numbers have types of their own, the same in every file", () => {
  expect(file.types).toMatchObject({
    project: { converted_type: "UTF8" },
    usage_date: { type: "INT32", converted_type: "DATE" },
    hours: { type: "FIXED_LEN_BYTE_ARRAY", converted_type: "DECIMAL", precision: 38, scale: 24 },
    revision: { type: "INT64" },
    seen_at: { logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MICROS" } },
  });
});

test("the file's metadata says what the view and its columns mean", () => {
  expect(file.keyValues).toMatchObject({ "bi.sample": "A sample", "bi.sample.hours": "Hours" });
});

test("a view without rows has its columns", async () => {
  const empty = await readParquet(VIEW, parquetOf(VIEW, inBatches([])));
  expect(empty.rows).toEqual([]);
  expect(Object.keys(empty.types)).toEqual(VIEW.columns.map(({ name }) => name));
});

function numbered(count: number, text = "p"): Row[] {
  return Array.from({ length: count }, (_, at) => [text, null, String(at), null, null, null]);
}

test("rows are written while they are read, in row groups of the same size", async () => {
  let takenRows = 0;
  async function* counting() {
    for await (const rows of inBatches(numbered(25_000), 1_000)) {
      takenRows += rows.length;
      yield rows;
    }
  }
  const pieces = parquetOf(VIEW, counting());
  const { value: first } = await pieces.next();
  expect(takenRows).toBe(20_000);
  async function* all() {
    yield first;
    yield* pieces;
  }
  const { groupSizes, rows } = await readParquet(VIEW, all());
  expect(groupSizes).toEqual([20_000, 5_000]);
  expect(rows.map((row) => row[2])).toEqual(numbered(25_000).map((row) => row[2]));
});

test("long texts make smaller row groups", async () => {
  const { groupSizes, rows } = await readParquet(VIEW, parquetOf(VIEW, inBatches(numbered(20, "x".repeat(1_000_000)))));
  expect(groupSizes).toEqual([16, 4]);
  expect(rows).toHaveLength(20);
});

test("zeros at the end of a number do not count as digits", async () => {
  const row: Row = [null, null, "0.5000000000000000000000000000000000", null, null, null];
  expect((await readParquet(VIEW, parquetOf(VIEW, inBatches([row])))).rows[0]?.[2]).toBe("0.5");
});

test.each(["100000000000000", "-100000000000000", "0.0000000000000000000000001"])(
  "a number with more digits than the type has fails the dump, because rounding it would change sums: %s",
  async (number) => {
    const pieces = parquetOf(VIEW, inBatches([[null, null, number, null, null, null]]));
    await expect(Array.fromAsync(pieces)).rejects.toMatchObject({
      code: "bad_answer",
      message: `bi.sample can't be dumped as parquet: expected at most 14 digits before the point and 24 behind it in hours, got ${number}; csv and jsonl keep every digit`,
    });
  },
);
