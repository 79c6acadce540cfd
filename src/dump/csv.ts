// A dump as CSV (RFC 4180), for spreadsheets. Numbers stay numbers there, and no text becomes a formula.

import { stringify } from "csv-stringify/sync";
import type { Batches, Column, ColumnKind, Row, View } from "./view.ts";

/** Without this mark Excel reads UTF-8 in the code page of the machine, and shows wrong letters. Programs should read another format. */
const BYTE_ORDER_MARK = "\uFEFF";

/** These can't contain a formula, and are not quoted because some programs take a quoted number for text. */
const UNQUOTED_KINDS: ReadonlySet<ColumnKind> = new Set<ColumnKind>(["integer", "number", "day", "instant"]);

/** A formula begins with one of the first four; some programs also accept the full-width ones. */
const SIGN = /[=+\-@＝＋－＠]/;
/** Spaces, quotes and invisible characters before the sign do not prevent a formula. */
const BEGINS_FORMULA = new RegExp(`^(?:[\\t\\r\\n]|[\\s"\\p{Cc}\\p{Cf}]*${SIGN.source})`, "u");
/** The same characters, and ";", which begins a new cell in a spreadsheet that does not separate cells by the comma. */
const GAPS = /[\s;"\p{Cc}\p{Cf}]+/gu;
const NEW_CELL = /[;\t\r\n]/;

/** csv-stringify quotes a string, and writes the result of the cast below for an object without quotes. */
type UnquotedCell = { readonly plain: string };

const OPTIONS = {
  record_delimiter: "windows",
  // An empty text is written as "", which tells it from null.
  quoted_string: true,
  cast: { object: (cell: Record<string, unknown>) => String(cell.plain) },
} as const;

export async function* csvOf({ columns }: View, batches: Batches): AsyncGenerator<string> {
  yield BYTE_ORDER_MARK + stringify([columns.map(({ name }) => name)], OPTIONS);
  for await (const rows of batches) {
    yield stringify(
      rows.map((row) => cellsOf(columns, row)),
      OPTIONS,
    );
  }
}

function cellsOf(columns: readonly Column[], row: Row): (string | UnquotedCell | null)[] {
  return columns.map(({ kind }, at) => {
    const text = row[at] ?? null;
    if (text === null) return null;
    return UNQUOTED_KINDS.has(kind) ? { plain: text } : withoutFormula(text);
  });
}

/** A spreadsheet takes a cell that begins with an apostrophe for text. The time is linear in the length of the text. */
export function withoutFormula(text: string): string {
  const parted = text.replaceAll(GAPS, (gap: string, at: number) =>
    NEW_CELL.test(gap) && SIGN.test(text.charAt(at + gap.length)) ? `${gap}'` : gap,
  );
  return BEGINS_FORMULA.test(text) ? `'${parted}` : parted;
}
