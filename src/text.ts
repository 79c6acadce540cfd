// Makes text from elsewhere safe for a log, a terminal or an HTML page; shortens and joins texts. Pure.

/** One line without control or direction characters, which could forge log lines or control a terminal. */
export function toPrintableLine(text: string): string {
  // One of these may split a secret, which the scrubber then misses. Removing the character would join the secret again; a space does not.
  return text
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}

/** Turns control and direction characters, except line ends and tabs, into JSON escapes: a terminal is safe, and JSON keeps its meaning. */
export function escapeControlCharacters(text: string): string {
  return text.replaceAll(
    /[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

const HTML_ENTITIES = new Map(Object.entries({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" }));

/** For the content of a page and for values of attributes. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => HTML_ENTITIES.get(char) ?? char);
}

/** Cuts the text to at most `lengthMax` characters. A cut text ends in "…"; no character is cut in two. */
export function truncate(text: string, lengthMax: number): string {
  const chars = [...text];
  return chars.length > lengthMax ? `${chars.slice(0, lengthMax - 1).join("")}…` : text;
}

/** The items without `false` and undefined, so that a list can be written with items that depend on a condition. */
export function present<T>(items: readonly (T | false | undefined)[]): T[] {
  return items.filter((item): item is T => item !== undefined && item !== false);
}

/** The first `max` texts. If there are more, the text of `rest` follows, such as "and 3 more". */
export function firstOf(texts: readonly string[], max: number, rest: (more: number) => string): readonly string[] {
  const more = texts.length - max;
  return more > 0 ? [...texts.slice(0, max), rest(more)] : texts;
}

/** "a, b and 3 more" */
export function firstNames(names: readonly string[], max: number): string {
  const more = names.length - max;
  return `${names.slice(0, max).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

export function shellQuoted(word: string): string {
  return /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** At most 1,000 characters of the text, without what Postgres refuses: NUL, and half of a surrogate pair. */
export function storableText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll("\0", "")
    .slice(0, 1_000)
    .replace(/[\ud800-\udbff]$/, "");
}
