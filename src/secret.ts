// A secret that can't be printed by accident, and the scrubber that removes known secrets from text. Pure.

import { inspect } from "node:util";
import { escapeHtml } from "./text.ts";

const REDACTED = "[secret]";

export class Secret {
  readonly #value: string;
  /** Where the secret comes from, such as "env PROD_KEY". Logs, and the table of call pauses, name a key by it. May be empty. */
  readonly name: string;

  constructor(value: string, name = "") {
    this.#value = value;
    this.name = name;
  }

  named(name: string): Secret {
    return new Secret(this.#value, name);
  }

  reveal(): string {
    return this.#value;
  }

  equals(other: Secret): boolean {
    return this.#value === other.#value;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}

/** The credentials of a URL, as written and decoded: the password, and `user:password`, which HTTP sends in base64. */
export function urlSecrets(text: string): readonly Secret[] {
  const { username = "", password = "" } = URL.parse(text) ?? {};
  if (username + password === "") return [];
  // Each half is decoded on its own: the other one may hold an escape that is not valid UTF-8.
  const [plainUser, plainPassword] = [decoded(username) ?? username, decoded(password) ?? password];
  const forms = [password, plainPassword, `${username}:${password}`, `${plainUser}:${plainPassword}`];
  return forms.map((form) => new Secret(form));
}

/** Undefined if an escape in the text is not valid UTF-8, such as %ff. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Shorter values are not replaced: replacing every "abc" would make a log unreadable and protect nothing. */
const REDACTED_LENGTH_MIN = 8;

/** Replaces known secrets in text that leaves the process or is stored: an error of the service may quote the key that it refuses. */
export class Scrubber {
  /** All forms in which a secret may appear, in lower case, under their first REDACTED_LENGTH_MIN letters. */
  readonly #forms = new Map<string, Set<string>>();
  /** For each result of `twoLettersAt`, 1 if a form begins with these letters. It rules out nearly every position of a text at once. */
  readonly #beginnings = new Uint8Array(16_384);
  /** Saves work: a key is added again whenever a request reads it. */
  readonly #added = new Set<string>();

  add(secret: Secret): Secret {
    const value = secret.reveal();
    if (value.length < REDACTED_LENGTH_MIN || this.#added.has(value)) return secret;
    this.#added.add(value);
    const hex = Buffer.from(value).toString("hex");
    const base64 = [0, 1, 2].map((offset) => base64At(value, offset));
    const base64Url = base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"));
    const reversed = [...value].toReversed().join("");
    const escaped = [JSON.stringify(value).slice(1, -1), encodeURIComponent(value), escapeHtml(value)];
    const forms = [value, reversed, ...escaped, hex, hex.replaceAll(/../g, "%$&"), ...base64, ...base64Url];
    for (const form of forms) this.#addForm(toLowerCaseSameLength(form));
    return secret;
  }

  #addForm(form: string): void {
    const beginning = form.slice(0, REDACTED_LENGTH_MIN);
    const forms = this.#forms.get(beginning) ?? new Set();
    this.#forms.set(beginning, forms.add(form));
    this.#beginnings[twoLettersAt(form, 0)] = 1;
  }

  /** Overlapping secrets are replaced together, so that no part of either is left. */
  readonly scrub = (text: string): string => {
    const lowerCase = toLowerCaseSameLength(text);
    let scrubbed = "";
    let copiedTo = 0;
    for (let at = 0; at <= lowerCase.length - REDACTED_LENGTH_MIN; at++) {
      if (this.#beginnings[twoLettersAt(lowerCase, at)] === 0) continue;
      const end = this.#endOfSecret(lowerCase, at);
      if (end === undefined) continue;
      if (at >= copiedTo) scrubbed += text.slice(copiedTo, at) + REDACTED;
      copiedTo = Math.max(copiedTo, end);
    }
    return scrubbed + text.slice(copiedTo);
  };

  /** The end of the longest secret that begins at this position; undefined if none does. */
  #endOfSecret(lowerCase: string, at: number): number | undefined {
    let end: number | undefined;
    for (const form of this.#forms.get(lowerCase.slice(at, at + REDACTED_LENGTH_MIN)) ?? []) {
      if (lowerCase.startsWith(form, at)) end = Math.max(end ?? 0, at + form.length);
    }
    return end;
  }
}

/** The two letters from this position on as a number below 16,384. Two ASCII letters have their own number; others may share one. */
function twoLettersAt(text: string, at: number): number {
  return ((text.charCodeAt(at) << 7) ^ text.charCodeAt(at + 1)) & 16_383;
}

/** İ is the only letter whose lower case has another length. With i in its place, positions in both texts are the same. */
function toLowerCaseSameLength(text: string): string {
  return text.replaceAll("İ", "i").toLowerCase();
}

/** Whether the text contains neither a part of the secret (eight characters in a row) nor the secret in a form that is scrubbed. */
export function isFreeOfSecret(text: string, secret: string): boolean {
  const lowerCase = text.toLowerCase();
  // Eight consecutive characters of a secret are no coincidence; fewer reveal little. A shorter secret is searched as a whole.
  const lastPartAt = Math.max(secret.length - REDACTED_LENGTH_MIN, 0);
  for (let at = 0; at <= lastPartAt; at++) {
    if (lowerCase.includes(secret.slice(at, at + REDACTED_LENGTH_MIN).toLowerCase())) return false;
  }
  const scrubber = new Scrubber();
  scrubber.add(new Secret(secret));
  return scrubber.scrub(text) === text;
}

/** The base64 of the secret after `offset` other bytes, without the characters at its ends that also depend on neighbouring bytes. */
function base64At(secret: string, offset: number): string {
  const bytes = Buffer.from(secret);
  const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
  return encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
}
