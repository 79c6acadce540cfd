// Text from elsewhere, made fit for a line of a log or a terminal. Pure.

/** One line without control or direction characters, which could forge lines, or do things to a terminal. */
export function printable(text: string): string {
  // A space takes the place of what is removed, so that the two halves of a split key are not joined.
  return text
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}
