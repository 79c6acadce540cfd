// Reads CSV as RFC 4180 defines it, and records for each cell whether it was quoted.

export type Cell = { readonly text: string; readonly quoted: boolean };

/** Returns the records; throws if the text is not CSV. */
export function readCsv(text: string): readonly (readonly Cell[])[] {
  const records: Cell[][] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy;
  let record: Cell[] = [];
  while (field.lastIndex < text.length) {
    const at = field.lastIndex;
    const [, quoted, plain, end] = field.exec(text) ?? [];
    if (end === undefined) throw new Error(`no CSV at ${JSON.stringify(text.slice(at, at + 40))}`);
    record.push({ text: quoted?.replaceAll('""', '"') ?? plain ?? "", quoted: quoted !== undefined });
    if (end === ",") continue;
    records.push(record);
    record = [];
  }
  return records;
}
