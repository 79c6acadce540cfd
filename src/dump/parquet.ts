// A dump as Parquet, one row group after the other, so that only one is in memory at a time. Pure.

import { ByteWriter, ParquetWriter, type SchemaElement } from "hyparquet-writer";
import { AppError } from "../errors.ts";
import { DAY_MS } from "../usage/days.ts";
import type { Batches, Column, ColumnKind, Row, View } from "./view.ts";

/**
 * One type for every number in every file: a program that reads several files together takes the type of the first, and would
 * silently round numbers of the others. The service sends hours with up to 17 digits: those of a single millisecond fit into 24
 * digits after the point. A decimal of Parquet has at most 38 digits.
 */
const DECIMAL_PRECISION = 38;
const DECIMAL_SCALE = 24;

/** Undefined if the number has more digits than the type holds. */
function parquetValue(kind: ColumnKind, text: string): string | number | bigint | undefined {
  switch (kind) {
    case "integer":
      return BigInt(text);
    case "number":
      return unscaled(text);
    case "day":
      return Date.parse(`${text}T00:00:00Z`) / DAY_MS;
    case "instant":
      return microseconds(text);
    case "text":
    case "json":
      return text;
  }
}

/** The number times ten to the power of DECIMAL_SCALE: 1.5 is 15 and 23 zeros. */
function unscaled(text: string): bigint | undefined {
  const [whole = "", fraction = ""] = text.split(".");
  const digits = fraction.length > DECIMAL_SCALE ? fraction.replace(/0+$/, "") : fraction;
  if (digits.length > DECIMAL_SCALE) return undefined;
  if (whole.replace("-", "").length > DECIMAL_PRECISION - DECIMAL_SCALE) return undefined;
  return BigInt(whole + digits.padEnd(DECIMAL_SCALE, "0"));
}

/** Microseconds since 1970. The text has six digits of a second, of which a JavaScript date keeps three. */
function microseconds(text: string): bigint {
  const digits = "2026-03-17T02:15:00.123".length;
  return BigInt(Date.parse(`${text.slice(0, digits)}Z`)) * 1000n + BigInt(text.slice(digits, digits + 3));
}

/** A group ends at the first of the two limits: few groups make a small file that is fast to read; long texts fill memory. */
const GROUP_ROWS_MAX = 20_000;
const GROUP_CHARACTERS_MAX = 16_000_000;

const TEXT = { type: "BYTE_ARRAY", converted_type: "UTF8" } as const;

const COLUMN_TYPES: Readonly<Record<ColumnKind, Omit<SchemaElement, "name">>> = {
  text: TEXT,
  json: TEXT,
  integer: { type: "INT64" },
  number: {
    type: "FIXED_LEN_BYTE_ARRAY",
    type_length: 16,
    converted_type: "DECIMAL",
    precision: DECIMAL_PRECISION,
    scale: DECIMAL_SCALE,
  },
  day: { type: "INT32", converted_type: "DATE" },
  instant: {
    type: "INT64",
    converted_type: "TIMESTAMP_MICROS",
    logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MICROS" },
  },
};

type ParquetValue = ReturnType<typeof parquetValue> | null;

/** Throws `bad_answer` at a number with more digits than the type holds: sums of rounded numbers would be wrong. */
export async function* parquetOf(view: View, batches: Batches): AsyncGenerator<Uint8Array> {
  const bytes = new ByteWriter();
  const file = new ParquetWriter({ writer: bytes, schema: schemaOf(view), kvMetadata: meaningsOf(view) });
  const { columns } = view;
  let group = emptyGroup(columns);
  let rowCount = 0;
  let characterCount = 0;

  for await (const rows of batches) {
    for (const row of rows) characterCount += addRow(view, group, row);
    rowCount += rows.length;
    if (rowCount < GROUP_ROWS_MAX && characterCount < GROUP_CHARACTERS_MAX) continue;
    await writeGroup(file, columns, group);
    yield takeBytes(bytes);
    group = emptyGroup(columns);
    rowCount = 0;
    characterCount = 0;
  }
  if (rowCount > 0) await writeGroup(file, columns, group);
  await file.finish();
  yield takeBytes(bytes);
}

function schemaOf({ columns }: View): SchemaElement[] {
  const elements = columns.map(
    ({ name, kind }): SchemaElement => ({ name, repetition_type: "OPTIONAL", ...COLUMN_TYPES[kind] }),
  );
  return [{ name: "root", num_children: columns.length }, ...elements];
}

function meaningsOf({ name, meaning, columns }: View): { key: string; value: string }[] {
  const view = { key: `bi.${name}`, value: meaning };
  return [view, ...columns.map((column) => ({ key: `bi.${name}.${column.name}`, value: column.meaning }))];
}

function emptyGroup(columns: readonly Column[]): ParquetValue[][] {
  return columns.map(() => []);
}

/** Returns how many characters the row has. */
function addRow({ name: viewName, columns }: View, group: readonly ParquetValue[][], row: Row): number {
  let characterCount = 0;
  for (const [at, { name, kind }] of columns.entries()) {
    const text = row[at] ?? null;
    const value = text === null ? null : parquetValue(kind, text);
    if (value === undefined) {
      const digits = `${DECIMAL_PRECISION - DECIMAL_SCALE} digits before the point and ${DECIMAL_SCALE} behind it`;
      throw new AppError(
        "bad_answer",
        `bi.${viewName} can't be dumped as parquet: expected at most ${digits} in ${name}, got ${text}; csv and jsonl keep every digit`,
      );
    }
    group[at]?.push(value);
    characterCount += text?.length ?? 0;
  }
  return characterCount;
}

async function writeGroup(
  file: ParquetWriter,
  columns: readonly Column[],
  group: readonly ParquetValue[][],
): Promise<void> {
  await file.write({
    columnData: columns.map(({ name }, at) => ({ name, data: group[at] ?? [] })),
    rowGroupSize: GROUP_CHARACTERS_MAX,
  });
}

/** The bytes written since the last call, copied because the writer reuses its memory. */
function takeBytes(writer: ByteWriter): Uint8Array {
  const bytes = writer.getBytes().slice();
  writer.index = 0;
  return bytes;
}
