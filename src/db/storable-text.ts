// Makes a reason for a person fit for a column: it may quote what a service sent, of any length.

const LENGTH_MAX = 1_000;

/** Postgres takes no NUL in a text, and half of a character that was cut in two would become another one. */
export function storableText(text: string): string {
  return text
    .replaceAll("\0", "")
    .slice(0, LENGTH_MAX)
    .replace(/[\ud800-\udbff]$/, "");
}
