// A key that cannot be printed by accident, and the last guard behind it. reveal() is called where a request is signed, a
// key is sealed or delivered, a notice is sent, a proxy is asked or a visitor of the monitor is checked, nowhere else.

import { inspect } from "node:util";
import { withEntities } from "./entities.ts";
import { base64At } from "./secret-search.ts";

const HIDDEN = "[secret]";

export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  equals(other: Secret): boolean {
    return this.#value === other.#value;
  }

  toString(): string {
    return HIDDEN;
  }

  toJSON(): string {
    return HIDDEN;
  }

  [inspect.custom](): string {
    return HIDDEN;
  }
}

/** Shorter values are left alone: hiding every "abc" of a log would hide nothing but the log. */
const HIDEABLE_LENGTH_MIN = 8;

/**
 * Replaces known secrets in text that leaves the process or is stored: an error of the service may contain the key it refuses,
 * and a connection error may contain the URL that failed. It is the last guard, for text of any length. Text that may repeat a
 * key in any encoding is searched with isFreeOf where it enters the process.
 */
export class Scrubber {
  /** In lower case, so that a change of case does not hide a secret from the search. */
  readonly #forms = new Set<string>();

  /** The same secret, for use in an expression. */
  add(secret: Secret): Secret {
    const value = secret.reveal();
    if (value.length < HIDEABLE_LENGTH_MIN) return secret;
    const hex = Buffer.from(value).toString("hex");
    const base64 = [0, 1, 2].map((offset) => base64At(value, offset));
    for (const form of [
      value,
      [...value].toReversed().join(""),
      JSON.stringify(value).slice(1, -1),
      encodeURIComponent(value),
      withEntities(value),
      hex,
      hex.replaceAll(/../g, "%$&"),
      ...base64,
      ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
    ]) {
      this.#forms.add(inSmallLetters(form));
    }
    return secret;
  }

  scrub(text: string): string {
    let scrubbed = text;
    for (const form of this.#forms) scrubbed = hide(scrubbed, form);
    return scrubbed;
  }
}

function hide(text: string, form: string): string {
  const small = inSmallLetters(text);
  let hidden = "";
  let from = 0;
  for (let at = small.indexOf(form); at !== -1; at = small.indexOf(form, from)) {
    hidden += text.slice(from, at) + HIDDEN;
    from = at + form.length;
  }
  return hidden + text.slice(from);
}

/** As long as the text. A letter whose small form has another length, such as İ, stays: else places would not match. */
function inSmallLetters(text: string): string {
  const small = text.toLowerCase();
  if (small.length === text.length) return small;
  const letters = Array.from(text, (letter) => {
    const lower = letter.toLowerCase();
    return lower.length === letter.length ? lower : letter;
  });
  return letters.join("");
}
