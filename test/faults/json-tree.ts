// A JSON parser for the tests, independent of the one that the program uses. It keeps the order of members, repeated members, and the
// digits of numbers. Strict by RFC 8259. Pure.

export type JsonTree =
  | { readonly kind: "object"; readonly members: readonly (readonly [name: string, value: JsonTree])[] }
  | { readonly kind: "array"; readonly items: readonly JsonTree[] }
  | { readonly kind: "number"; readonly digits: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "word"; readonly word: "true" | "false" | "null" };

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
/** Between its quotes: no quote, no control character, and escapes that exist. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what JSON forbids here.
const TEXT = /"((?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"/y;
const SPACE = /[ \t\n\r]*/y;

/** Far deeper than any answer; reading deeper would use up the stack. */
const DEPTH_MAX = 1_000;

/** Undefined if the text is not JSON or is nested too deeply. */
export function readTree(text: string): JsonTree | undefined {
  let at = 0;
  let depth = 0;
  const skip = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  const take = (character: string): boolean => {
    skip(SPACE);
    if (text[at] !== character) return false;
    at++;
    return true;
  };
  const list = <T>(end: string, item: () => T): readonly T[] => {
    if (++depth > DEPTH_MAX) throw new NotJson();
    const items: T[] = [];
    if (!take(end)) {
      do items.push(item());
      while (take(","));
      if (!take(end)) throw new NotJson();
    }
    depth--;
    return items;
  };
  const name = (): string => {
    skip(SPACE);
    const quoted = skip(TEXT);
    if (quoted === undefined) throw new NotJson();
    return unescaped(quoted.slice(1, -1));
  };
  const value = (): JsonTree => {
    if (take("{")) return { kind: "object", members: list("}", member) };
    if (take("[")) return { kind: "array", items: list("]", value) };
    if (text[at] === '"') return { kind: "text", text: name() };
    const word = skip(WORD);
    if (word === "true" || word === "false" || word === "null") return { kind: "word", word };
    const digits = skip(NUMBER);
    if (digits === undefined || digits === "") throw new NotJson();
    return { kind: "number", digits };
  };
  const member = (): readonly [string, JsonTree] => {
    const key = name();
    if (!take(":")) throw new NotJson();
    return [key, value()];
  };

  try {
    const whole = value();
    skip(SPACE);
    return at === text.length ? whole : undefined;
  } catch (error) {
    if (error instanceof NotJson) return undefined;
    throw error;
  }
}

class NotJson extends Error {}

const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

function unescaped(text: string): string {
  return text.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/g, (_, code, letter) =>
    code === undefined ? (ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}

export function writeTree(tree: JsonTree): string {
  switch (tree.kind) {
    case "object":
      return `{${tree.members.map(([name, value]) => `${JSON.stringify(name)}:${writeTree(value)}`).join(",")}}`;
    case "array":
      return `[${tree.items.map(writeTree).join(",")}]`;
    case "number":
      return tree.digits;
    case "text":
      return JSON.stringify(tree.text);
    case "word":
      return tree.word;
  }
}

/** The member of that name. An answer with two of one name is refused. */
export function memberOf(tree: JsonTree, name: string): JsonTree | undefined {
  return tree.kind === "object" ? tree.members.findLast(([key]) => key === name)?.[1] : undefined;
}

export function isNull(tree: JsonTree | undefined): boolean {
  return tree === undefined || (tree.kind === "word" && tree.word === "null");
}

/**
 * The same text for all notations of a number: no exponent, no superfluous zeros. Undefined for a number that is not an amount: more
 * than a double holds, or more digits than an amount may have.
 */
export function plainDecimal(digits: string, lengthMax = 400): string | undefined {
  if (!Number.isFinite(Number(digits))) return undefined;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(digits) ?? [];
  const places = fraction.length - Number(exponent);
  if (whole.length + fraction.length > lengthMax || Math.abs(whole.length + Number(exponent)) > lengthMax)
    return undefined;
  const amount = BigInt(whole + fraction);
  if (amount === 0n) return "0";
  if (places <= 0) return `${sign}${amount * 10n ** BigInt(-places)}`;
  const padded = String(amount).padStart(places + 1, "0");
  const text = `${padded.slice(0, -places)}.${padded.slice(-places)}`.replace(/\.?0+$/, "");
  return sign + text;
}
