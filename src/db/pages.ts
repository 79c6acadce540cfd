// Lists that are read a page at a time.

/** The page to show of a list of `found` entries: a list that has become shorter may end before `page`, and then shows its last one. From 1. */
export function existingPage(page: number, found: number, perPage: number): number {
  return Math.min(page, Math.max(1, Math.ceil(found / perPage)));
}
