// The rows and columns of a dump before they are encoded, and the names of the formats. Pure.

/** A number can have more digits than a JavaScript number holds, an integer fits 64 bits; json is text that holds JSON. */
export type ColumnKind = "text" | "integer" | "number" | "day" | "instant" | "json";

export type Column = { readonly name: string; readonly kind: ColumnKind; readonly meaning: string };

export type View = { readonly name: string; readonly meaning: string; readonly columns: readonly Column[] };

/**
 * The values in the order of the view's columns, as exact text: numbers as Postgres writes them, never with an exponent; a day
 * as YYYY-MM-DD; an instant in UTC with six digits of a second, `2026-03-17T02:15:00.000000Z`.
 */
export type Row = readonly (string | null)[];

/** Some rows at a time: all rows of a view need not fit into memory. */
export type Batches = AsyncIterable<readonly Row[]>;

/** Not in encode.ts, so that naming the formats does not load the encoders. */
export const DUMP_FORMATS = ["csv", "jsonl", "parquet"] as const;
export type DumpFormat = (typeof DUMP_FORMATS)[number];
