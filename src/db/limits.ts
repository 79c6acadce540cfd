// What is cut: texts of the service, and lists that are read a page at a time.

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

/** The page to show of a list of `found` entries: a list that has become shorter may end before `page`, and then shows its last one. From 1. */
export function existingPage(page: number, found: number, perPage: number): number {
  return Math.min(page, Math.max(1, Math.ceil(found / perPage)));
}
