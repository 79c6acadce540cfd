// Chooses what writes a format.

import { csvOf } from "./csv.ts";
import type { Format } from "./format.ts";
import { jsonLinesOf } from "./jsonl.ts";
import { parquetOf } from "./parquet.ts";
import type { Batches, View } from "./view.ts";

const ENCODERS: Readonly<Record<Format, (view: View, batches: Batches) => AsyncIterable<string | Uint8Array>>> = {
  csv: csvOf,
  jsonl: jsonLinesOf,
  parquet: parquetOf,
};

/** Takes rows as fast as what comes out is taken, and no faster. */
export function encode(format: Format, view: View, batches: Batches): AsyncIterable<string | Uint8Array> {
  return ENCODERS[format](view, batches);
}
