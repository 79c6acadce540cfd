// A key that cannot be printed by accident, and the last guard behind it. reveal() is called where a request is signed, a
// key is sealed or delivered, a notice is sent, a proxy is asked or a visitor of the monitor is checked, nowhere else.

import { inspect } from "node:util";
import { withEntities } from "./entities.ts";

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
 * Replaces the secrets it has been told of, in text that leaves the process or is stored: the service's own words may
 * hold the key they refuse, and an error may hold the URL that failed.
 */
export class Scrubber {
  readonly #forms = new Set<string>();

  /** The same secret, for use in an expression. */
  add(secret: Secret): Secret {
    const value = secret.reveal();
    if (value.length < HIDEABLE_LENGTH_MIN) return secret;
    this.#forms.add(value);
    this.#forms.add(JSON.stringify(value).slice(1, -1));
    this.#forms.add(encodeURIComponent(value));
    this.#forms.add(Buffer.from(value).toString("base64"));
    this.#forms.add(withEntities(value));
    return secret;
  }

  scrub(text: string): string {
    let scrubbed = text;
    for (const form of this.#forms) scrubbed = scrubbed.replaceAll(form, HIDDEN);
    return scrubbed;
  }
}
