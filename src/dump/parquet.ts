// A dump as Parquet, one group of rows after the other, so that only one is ever in memory.

import { ByteWriter, ParquetWriter, type SchemaElement } from "hyparquet-writer";
import { AppError } from "../errors.ts";
import { DECIMAL_PRECISION, DECIMAL_SCALE, parquetValue } from "./parquet-values.ts";
import type { Batches, Column, ColumnKind, Row, View } from "./view.ts";

/** A group ends at the first of the two: few groups make a small file that is fast to read, long texts fill memory. */
const GROUP_ROWS_MAX = 20_000;
const GROUP_CHARACTERS_MAX = 16_000_000;

const TEXT = { type: "BYTE_ARRAY", converted_type: "UTF8" } as const;

const TYPES: Readonly<Record<ColumnKind, Omit<SchemaElement, "name">>> = {
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

type Value = ReturnType<typeof parquetValue> | null;

/** Throws `bad_answer` at a number with more digits than the type holds: a sum over rounded ones would be another. */
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
    yield take(bytes);
    group = emptyGroup(columns);
    rowCount = 0;
    characterCount = 0;
  }
  if (rowCount > 0) await writeGroup(file, columns, group);
  await file.finish();
  yield take(bytes);
}

function schemaOf({ columns }: View): SchemaElement[] {
  const elements = columns.map(
    ({ name, kind }): SchemaElement => ({ name, repetition_type: "OPTIONAL", ...TYPES[kind] }),
  );
  return [{ name: "root", num_children: columns.length }, ...elements];
}

function meaningsOf({ name, meaning, columns }: View): { key: string; value: string }[] {
  const view = { key: `bi.${name}`, value: meaning };
  return [view, ...columns.map((column) => ({ key: `bi.${name}.${column.name}`, value: column.meaning }))];
}

function emptyGroup(columns: readonly Column[]): Value[][] {
  return columns.map(() => []);
}

/** Returns how many characters the row has. */
function addRow({ name: viewName, columns }: View, group: readonly Value[][], row: Row): number {
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

async function writeGroup(file: ParquetWriter, columns: readonly Column[], group: readonly Value[][]): Promise<void> {
  await file.write({
    columnData: columns.map(({ name }, at) => ({ name, data: group[at] ?? [] })),
    rowGroupSize: GROUP_CHARACTERS_MAX,
  });
}

/** What was written since the last time. The writer goes on in the same memory, so it is copied. */
function take(writer: ByteWriter): Uint8Array {
  const bytes = writer.getBytes().slice();
  writer.index = 0;
  return bytes;
}
