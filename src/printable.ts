// Text from elsewhere, made fit for a line of a log or a terminal. Pure.

/** One line without control or direction characters, which could forge lines, or do things to a terminal. */
export function printable(text: string): string {
  // A space takes the place of what is removed, so that the two halves of a split key are not joined.
  return text
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}

/**
 * Control and direction characters as escapes of JSON, so that they do nothing to a terminal and an answer in JSON means the same.
 * Line ends and tabs stay.
 */
export function visible(text: string): string {
  return text.replaceAll(
    /[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
