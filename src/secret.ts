// A secret that can't be printed by accident, the scrubber that removes known secrets from text, and the search for a secret in any
// encoding. Pure. reveal() is called where a request is signed, a key is sealed or delivered, a notification is sent, a proxy is used
// or a visitor is checked.

import { inspect } from "node:util";
import { escapeHtml } from "./text.ts";

const REDACTED = "[secret]";

export class Secret {
  readonly #value: string;
  /** What it is called where it may not be shown, such as "env PROD_KEY". Empty if it has no name. */
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

/** Shorter values are not replaced: replacing every "abc" would make a log unreadable and protect nothing. */
const REDACTED_LENGTH_MIN = 8;
/** Two letters are looked up in a table of so many places before anything else: nearly all positions of a text begin no secret. */
const BEGINNINGS = 4_096;

/**
 * Replaces known secrets in text that leaves the process or is stored: an error of the service may contain the key it refuses,
 * and a connection error may contain the URL that failed. It is the last guard, for text of any length. Text that may repeat a
 * key in any encoding is checked with isFreeOfSecret where it enters the process. How long it takes hardly depends on how many
 * secrets are known: there may be thousands.
 */
export class Scrubber {
  /** By their first letters. In lower case, so that a change of case does not hide a secret from the search. */
  readonly #forms = new Map<string, Set<string>>();
  readonly #beginnings = new Uint8Array(BEGINNINGS);
  /** A key is added again with each request that it is read for. */
  readonly #added = new Set<string>();

  /** Returns its argument, for use in an expression. */
  add(secret: Secret): Secret {
    const value = secret.reveal();
    if (value.length < REDACTED_LENGTH_MIN || this.#added.has(value)) return secret;
    this.#added.add(value);
    const hex = Buffer.from(value).toString("hex");
    const base64 = [0, 1, 2].map((offset) => base64At(value, offset));
    for (const form of [
      value,
      [...value].toReversed().join(""),
      JSON.stringify(value).slice(1, -1),
      encodeURIComponent(value),
      escapeHtml(value),
      hex,
      hex.replaceAll(/../g, "%$&"),
      ...base64,
      ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
    ]) {
      this.#addForm(toLowerCaseSameLength(form));
    }
    return secret;
  }

  #addForm(form: string): void {
    const beginning = form.slice(0, REDACTED_LENGTH_MIN);
    const same = this.#forms.get(beginning) ?? new Set();
    this.#forms.set(beginning, same.add(form));
    this.#beginnings[beginningAt(form, 0)] = 1;
  }

  /** Overlapping secrets are replaced together, so that no part of either is left. */
  scrub(text: string): string {
    const lowerCase = toLowerCaseSameLength(text);
    let scrubbed = "";
    let copiedTo = 0;
    for (let at = 0; at <= lowerCase.length - REDACTED_LENGTH_MIN; at++) {
      if (this.#beginnings[beginningAt(lowerCase, at)] === 0) continue;
      const end = this.#endOfSecret(lowerCase, at);
      if (end === undefined) continue;
      if (at >= copiedTo) scrubbed += text.slice(copiedTo, at) + REDACTED;
      copiedTo = Math.max(copiedTo, end);
    }
    return scrubbed + text.slice(copiedTo);
  }

  /** Where the longest secret ends that begins at this position; undefined if none does. */
  #endOfSecret(lowerCase: string, at: number): number | undefined {
    let end: number | undefined;
    for (const form of this.#forms.get(lowerCase.slice(at, at + REDACTED_LENGTH_MIN)) ?? []) {
      if (lowerCase.startsWith(form, at)) end = Math.max(end ?? 0, at + form.length);
    }
    return end;
  }
}

function beginningAt(text: string, at: number): number {
  return ((text.charCodeAt(at) << 6) ^ text.charCodeAt(at + 1)) & (BEGINNINGS - 1);
}

/** Keeps a letter whose lower case has another length, such as İ, so that positions in both texts are the same. */
function toLowerCaseSameLength(text: string): string {
  const lowerCase = text.toLowerCase();
  if (lowerCase.length === text.length) return lowerCase;
  const letters = Array.from(text, (letter) => {
    const lower = letter.toLowerCase();
    return lower.length === letter.length ? lower : letter;
  });
  return letters.join("");
}

// Searches a text for a secret in any encoding by decoding the text, not by listing the forms of the secret. Meant for a
// line or two: the result of each decoding is decoded again.

/** This many consecutive characters of a secret are no coincidence; fewer reveal little. */
const RUN_LENGTH = 8;
/** Eight bytes fill at least this many characters of base64, at any offset. */
const RUN_LENGTH_BASE64 = 10;
/** How many encodings may be nested: hex of base64 of a key is found. */
const NESTED_ENCODINGS_MAX = 2;

/** Whether no part of the secret can be read from the text: plain, reversed, split or encoded. */
export function isFreeOfSecret(text: string, secret: string): boolean {
  const runs = runsOf(secret);
  const seen = new Set<string>();
  let level = [text];
  for (let depth = 0; depth <= NESTED_ENCODINGS_MAX; depth++) {
    const next: string[] = [];
    for (const reading of level) {
      if (reading.length < RUN_LENGTH || seen.has(reading)) continue;
      seen.add(reading);
      if (holdsRun(reading, runs)) return false;
      if (depth < NESTED_ENCODINGS_MAX) next.push(...decodingsOf(reading));
    }
    level = next;
  }
  return true;
}

type SecretRuns = { readonly plain: ReadonlySet<string>; readonly base64: ReadonlySet<string> };

/** Base64 whose case was changed can't be decoded, so the text is also searched for the secret's base64. */
function runsOf(secret: string): SecretRuns {
  const base64 = [0, 1, 2].flatMap((offset) => base64At(secret, offset));
  return {
    plain: new Set([secret, reversed(secret)].flatMap((text) => slices(lettersAndDigits(text), RUN_LENGTH))),
    base64: new Set(
      [...base64, ...base64.map(reversed)].flatMap((text) => slices(lettersAndDigits(text), RUN_LENGTH_BASE64)),
    ),
  };
}

function holdsRun(text: string, { plain, base64 }: SecretRuns): boolean {
  const letters = lettersAndDigits(text);
  return slices(letters, RUN_LENGTH).some((slice, at) => {
    return plain.has(slice) || base64.has(letters.slice(at, at + RUN_LENGTH_BASE64));
  });
}

/** The text without separators and differences of case. */
function lettersAndDigits(text: string): string {
  return text.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, "");
}

/** Every substring of that length; the whole text if it is shorter. */
function slices(text: string, length: number): string[] {
  if (text.length <= length) return text === "" ? [] : [text];
  return Array.from({ length: text.length - length + 1 }, (_, at) => text.slice(at, at + length));
}

function reversed(text: string): string {
  return [...text].toReversed().join("");
}

/** The base64 of the secret after `offset` other bytes, without the characters that also encode those bytes. */
function base64At(secret: string, offset: number): string {
  const bytes = Buffer.from(secret);
  const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
  return encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
}

function decodingsOf(text: string): string[] {
  const packed = text.replaceAll(/\s/g, "");
  // Common ways to write bytes: 6b:65:79, 0x6b, 0x65 or \x6b\x65.
  const hexOnly = text.replaceAll(/0x|\\x|[\s:,;-]/gi, "");
  return [
    unescaped(text),
    reversed(text),
    decimalBytes(text),
    ...[text, packed].flatMap((each) => decodeBase(each, /[A-Za-z0-9+/_-]{10,}/g, base64Value, 6)),
    ...[text, packed].flatMap((each) => decodeBase(each, /[A-Za-z2-7]{12,}/g, base32Value, 5)),
    ...decodeBase(hexOnly, /[0-9a-f]{16,}/gi, (char) => Number.parseInt(char, 16), 4),
  ];
}

function unescaped(text: string): string {
  const toChar = (_: string, digits: string) => String.fromCharCode(Number.parseInt(digits, 16));
  return text
    .replaceAll(/[%=]([0-9a-f]{2})/gi, toChar)
    .replaceAll(/\\+x([0-9a-f]{2})/gi, toChar)
    .replaceAll(/\\+u\{?([0-9a-f]{2,4})\}?/gi, toChar)
    .replaceAll(/&#x([0-9a-f]{1,4});?/gi, toChar)
    .replaceAll(/&#([0-9]{1,5});?/g, (_, digits) => String.fromCharCode(Number(digits)))
    .replaceAll(/\\+([0-3]?[0-7]{2})/g, (_, digits) => String.fromCharCode(Number.parseInt(digits, 8)));
}

function decimalBytes(text: string): string {
  const lists = text.match(/\d{1,3}(?:[\s,;]+\d{1,3}){7,}/g) ?? [];
  return lists.map((list) => String.fromCharCode(...list.split(/[\s,;]+/).map(Number))).join(" ");
}

/** Decodes every run of these characters, starting at each position where a byte may begin. */
function decodeBase(text: string, runs: RegExp, bitsOf: (char: string) => number, bits: number): string[] {
  const found = text.match(runs) ?? [];
  if (found.length === 0) return [];
  const offsets = 8 / gcd(8, bits);
  return Array.from({ length: offsets }, (_, skipped) =>
    found.map((run) => bytesOf(run.slice(skipped), bitsOf, bits)).join(" "),
  );
}

function bytesOf(run: string, bitsOf: (char: string) => number, bits: number): string {
  let text = "";
  let buffer = 0;
  let bufferedBits = 0;
  for (const char of run) {
    buffer = ((buffer << bits) | bitsOf(char)) & 0xffff;
    bufferedBits += bits;
    if (bufferedBits < 8) continue;
    bufferedBits -= 8;
    text += String.fromCharCode((buffer >> bufferedBits) & 0xff);
  }
  return text;
}

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const base64Value = (char: string) => BASE64.indexOf(char.replace("-", "+").replace("_", "/"));
const base32Value = (char: string) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(char.toUpperCase());

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
