// A dump as CSV (RFC 4180), for spreadsheets. Numbers stay numbers there, and no text becomes a formula.

import { stringify } from "csv-stringify/sync";
import type { Batches, Column, ColumnKind, Row, View } from "./view.ts";

/**
 * Without it Excel takes UTF-8 for the code page of the machine, and shows names that are not English as other letters.
 * Who reads the file with a program is better served by the other formats, which also leave every text as it is.
 */
const BYTE_ORDER_MARK = "\uFEFF";

/** What has no formula in it, and must not be quoted, as a quoted number is text to some programs. */
const UNQUOTED_KINDS: ReadonlySet<ColumnKind> = new Set<ColumnKind>(["integer", "number", "day", "instant"]);

/** Signs that begin a formula, the full-width ones in some programs only. */
const SIGN = /[=+\-@＝＋－＠]/;
/** What may stand before the sign and changes nothing about it: spaces, quotes, invisible characters. */
const BEGINS_FORMULA = new RegExp(`^(?:[\\t\\r\\n]|[\\s"\\p{Cc}\\p{Cf}]*${SIGN.source})`, "u");
/** The same, with what begins a new cell to a spreadsheet that parts lines at another character than the comma. */
const GAPS = /[\s;"\p{Cc}\p{Cf}]+/gu;
const NEW_CELL = /[;\t\r\n]/;

/** csv-stringify quotes the texts it is given, and leaves the text of an object as it is. */
type UnquotedCell = { readonly plain: string };

const OPTIONS = {
  record_delimiter: "windows",
  // An empty text is "", so that it is another thing than nothing at all.
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

/** A spreadsheet takes what begins with an apostrophe for text. Takes time by the length of the text, whatever is in it. */
export function withoutFormula(text: string): string {
  const parted = text.replaceAll(GAPS, (gap: string, at: number) =>
    NEW_CELL.test(gap) && SIGN.test(text.charAt(at + gap.length)) ? `${gap}'` : gap,
  );
  return BEGINS_FORMULA.test(text) ? `'${parted}` : parted;
}
