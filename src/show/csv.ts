// CSV (RFC 4180) for spreadsheets: numbers stay numbers there, and no text becomes a formula. Pure.

export type CsvColumn = {
  readonly name: string;
  /** Not so for numbers, days and times: they can't hold a formula, and some programs take a quoted number for text. */
  readonly isText: boolean;
};

/** Without this mark Excel reads UTF-8 in the code page of the machine, and shows wrong letters. */
const BYTE_ORDER_MARK = "\uFEFF";

/** A formula begins with one of the first four; some programs also accept the full-width ones. */
const SIGN = /[=+\-@＝＋－＠]/;
/** Spaces, quotes and invisible characters before the sign do not prevent a formula. */
const BEGINS_FORMULA = new RegExp(`^(?:[\\t\\r\\n]|[\\s"\\p{Cc}\\p{Cf}]*${SIGN.source})`, "u");
/** The same characters, and ";", which begins a new cell in a spreadsheet that does not separate cells by the comma. */
const GAPS = /[\s;"\p{Cc}\p{Cf}]+/gu;
const NEW_CELL = /[;\t\r\n]/;

export function csvHeader(columns: readonly CsvColumn[]): string {
  return `${BYTE_ORDER_MARK}${columns.map(({ name }) => quoted(name)).join(",")}\r\n`;
}

/** The row has a text or null for each column. An empty text is written as "", which tells it from null. */
export function csvLine(columns: readonly CsvColumn[], row: readonly (string | null)[]): string {
  const cells = columns.map(({ isText }, at) => {
    const text = row[at] ?? null;
    if (text === null) return "";
    return isText ? quoted(withoutFormula(text)) : text;
  });
  return `${cells.join(",")}\r\n`;
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

/** A spreadsheet takes a cell that begins with an apostrophe for text. The time is linear in the length of the text. */
export function withoutFormula(text: string): string {
  const parted = text.replaceAll(GAPS, (gap: string, at: number) =>
    NEW_CELL.test(gap) && SIGN.test(text.charAt(at + gap.length)) ? `${gap}'` : gap,
  );
  return BEGINS_FORMULA.test(text) ? `'${parted}` : parted;
}
