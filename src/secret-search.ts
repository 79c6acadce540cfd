// Searches a text for a secret in any encoding by decoding the text, not by listing the forms of the secret. Pure. Meant for a
// line or two: the result of each decoding is decoded again.

/** This many consecutive characters of a secret are no coincidence; fewer reveal little. */
const RUN_LENGTH = 8;
/** Eight bytes fill at least this many characters of base64, at any offset. */
const RUN_LENGTH_BASE64 = 10;
/** How many encodings may be nested: hex of base64 of a key is found. */
const DEPTH_MAX = 2;

/** Whether no part of the secret can be read from the text: plain, reversed, split or encoded. */
export function isFreeOf(text: string, secret: string): boolean {
  const runs = runsOf(secret);
  const seen = new Set<string>();
  let level = [text];
  for (let depth = 0; depth <= DEPTH_MAX; depth++) {
    const next: string[] = [];
    for (const reading of level) {
      if (reading.length < RUN_LENGTH || seen.has(reading)) continue;
      seen.add(reading);
      if (holdsRun(reading, runs)) return false;
      if (depth < DEPTH_MAX) next.push(...decodingsOf(reading));
    }
    level = next;
  }
  return true;
}

type Runs = { readonly plain: ReadonlySet<string>; readonly base64: ReadonlySet<string> };

/** Base64 whose case was changed can't be decoded, so the encoded secret itself is searched for. */
function runsOf(secret: string): Runs {
  const base64 = [0, 1, 2].flatMap((offset) => base64At(secret, offset));
  return {
    plain: new Set([secret, reversed(secret)].flatMap((text) => slices(core(text), RUN_LENGTH))),
    base64: new Set([...base64, ...base64.map(reversed)].flatMap((text) => slices(core(text), RUN_LENGTH_BASE64))),
  };
}

function holdsRun(text: string, { plain, base64 }: Runs): boolean {
  const letters = core(text);
  return slices(letters, RUN_LENGTH).some((slice, at) => {
    return plain.has(slice) || base64.has(letters.slice(at, at + RUN_LENGTH_BASE64));
  });
}

/** The text without separators and differences of case. */
function core(text: string): string {
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
export function base64At(secret: string, offset: number): string {
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
    ...[text, packed].flatMap((each) => inBase(each, /[A-Za-z0-9+/_-]{10,}/g, base64Value, 6)),
    ...[text, packed].flatMap((each) => inBase(each, /[A-Za-z2-7]{12,}/g, base32Value, 5)),
    ...inBase(hexOnly, /[0-9a-f]{16,}/gi, (char) => Number.parseInt(char, 16), 4),
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
function inBase(text: string, runs: RegExp, bitsOf: (char: string) => number, bits: number): string[] {
  const found = text.match(runs) ?? [];
  if (found.length === 0) return [];
  const places = 8 / gcd(8, bits);
  return Array.from({ length: places }, (_, skipped) =>
    found.map((run) => bytesOf(run.slice(skipped), bitsOf, bits)).join(" "),
  );
}

function bytesOf(run: string, bitsOf: (char: string) => number, bits: number): string {
  let text = "";
  let held = 0;
  let heldBits = 0;
  for (const char of run) {
    held = ((held << bits) | bitsOf(char)) & 0xffff;
    heldBits += bits;
    if (heldBits < 8) continue;
    heldBits -= 8;
    text += String.fromCharCode((held >> heldBits) & 0xff);
  }
  return text;
}

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const base64Value = (char: string) => BASE64.indexOf(char.replace("-", "+").replace("_", "/"));
const base32Value = (char: string) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(char.toUpperCase());

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
