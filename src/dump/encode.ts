// The encoders of a dump. JSON lines, for programs, is here: each digit and text as stored.

import { csvOf } from "./csv.ts";
import { parquetOf } from "./parquet.ts";
import type { Batches, Column, DumpFormat, Row, View } from "./view.ts";

/** An encoder takes rows only as fast as its output is read. */
export const ENCODERS: Readonly<
  Record<DumpFormat, (view: View, batches: Batches) => AsyncIterable<string | Uint8Array>>
> = {
  csv: csvOf,
  jsonl: jsonLinesOf,
  parquet: parquetOf,
};

export async function* jsonLinesOf({ columns }: View, batches: Batches): AsyncGenerator<string> {
  const names = columns.map(({ name }) => JSON.stringify(name));
  for await (const rows of batches) {
    yield rows.map((row) => `${lineOf(columns, names, row)}\n`).join("");
  }
}

function lineOf(columns: readonly Column[], names: readonly string[], row: Row): string {
  return `{${columns.map((column, at) => `${names[at]}:${jsonOf(column, row[at] ?? null)}`).join(",")}}`;
}

/** A number is written with the digits of its text: a JavaScript number would lose the digits after the 17th. */
function jsonOf({ kind }: Column, text: string | null): string {
  if (text === null) return "null";
  return kind === "number" || kind === "integer" || kind === "json" ? text : JSON.stringify(text);
}
