// Makes texts of the service storable.

const TEXT_LENGTH_MAX = 1_000;

/**
 * Cuts a text, which may quote the service, and removes what Postgres does not accept in it: NUL, and the half of a surrogate pair that
 * the cut leaves.
 */
export function storableText(text: string): string {
  return storableStart(text, TEXT_LENGTH_MAX);
}

/** The same for another length. No parameter of storableText, which is passed to `map`: that would pass an index as the length. */
export function storableStart(text: string, lengthMax: number): string {
  return text
    .replaceAll("\0", "")
    .slice(0, lengthMax)
    .replace(/[\ud800-\udbff]$/, "");
}
