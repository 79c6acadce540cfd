// A dump as lines of JSON, for programs: every digit and every text as it is stored.

import type { Batches, Column, Row, View } from "./view.ts";

export async function* jsonLinesOf({ columns }: View, batches: Batches): AsyncGenerator<string> {
  const names = columns.map(({ name }) => JSON.stringify(name));
  for await (const rows of batches) {
    yield rows.map((row) => `${lineOf(columns, names, row)}\n`).join("");
  }
}

function lineOf(columns: readonly Column[], names: readonly string[], row: Row): string {
  return `{${columns.map((column, at) => `${names[at]}:${jsonOf(column, row[at] ?? null)}`).join(",")}}`;
}

/** A number goes through as text: as a JavaScript number it would lose the digits behind the 17th. */
function jsonOf({ kind }: Column, text: string | null): string {
  if (text === null) return "null";
  return kind === "number" || kind === "integer" || kind === "json" ? text : JSON.stringify(text);
}
