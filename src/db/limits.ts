// Texts of the service that are stored are cut.

const TEXT_LENGTH_MAX = 1_000;

/**
 * Cuts a text, which may quote the service, and removes what Postgres does not accept in it: NUL, and the half of a surrogate pair that
 * the cut leaves.
 */
export function storableText(text: string): string {
  return text
    .replaceAll("\0", "")
    .slice(0, TEXT_LENGTH_MAX)
    .replace(/[\ud800-\udbff]$/, "");
}
