// The forms in which a program may print a secret.

const each = (secret: string, encode: (code: number) => string) =>
  [...secret].map((character) => encode(character.charCodeAt(0))).join("");
const hex = (code: number, length: number) => code.toString(16).padStart(length, "0");
const base64 = (text: string) => Buffer.from(text).toString("base64");

export const ENCODINGS: Readonly<Record<string, (secret: string) => string>> = {
  raw: (secret) => secret,
  "lower case": (secret) => secret.toLowerCase(),
  "upper case": (secret) => secret.toUpperCase(),
  base64,
  "base64 after one character": (secret) => base64(`:${secret}:`),
  "base64 after two characters": (secret) => base64(`u:${secret}`),
  base64url: (secret) => Buffer.from(`user:${secret}`).toString("base64url"),
  hex: (secret) => Buffer.from(secret).toString("hex"),
  "upper case hex": (secret) => Buffer.from(secret).toString("hex").toUpperCase(),
  "a URL component": encodeURIComponent,
  "percent-encoding of all": (secret) => each(secret, (code) => `%${hex(code, 2)}`),
  "named entities": (secret) => secret.replaceAll("&", "&amp;").replaceAll("<", "&lt;"),
  "sixteen characters": (secret) => secret.slice(7, 23),
  reversed: (secret) => [...secret].toReversed().join(""),
};
